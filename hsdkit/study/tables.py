"""Rows of figures as Markdown, CSV and LaTeX; pure functions."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hsdkit.study.figures import Figures, figures
from hsdkit.study.records import CellRecord
from hsdkit.study.statistics import Interval


@dataclass(frozen=True, slots=True)
class Table:
    """Cells of text under a header. `numbers` has a cell's figures by header in full, for CSV."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    numbers: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """A figure: its header, its value, how it is written."""

    header: str
    value: Callable[[Figures], float | Interval | None]
    form: str = ".2f"

    def text(self, f: Figures) -> str:
        return written(self.value(f), self.form)


COLUMNS = (
    Column("SR_e2e", lambda f: f.sr_e2e),
    Column("SR_decode", lambda f: f.sr_decode),
    Column("tokens/step", lambda f: f.tokens_per_step),
    Column("AAL", lambda f: f.aal),
    Column("passes", lambda f: f.forwards, ".0f"),
    Column("host µs", lambda f: None if f.host_step is None else 1e6 * f.host_step, ".0f"),
    Column("Stage 1", lambda f: f.staged, ".0%"),
    Column("s/page", lambda f: f.seconds, ".3f"),
    Column("draft s", lambda f: f.draft, ".3f"),
    Column("same", lambda f: f.same, ".0%"),
    Column("edit", lambda f: f.edit, ".4f"),
    Column("draft edit", lambda f: f.draft_edit, ".3f"),
    Column("drift", lambda f: f.drift),
)

CAPTION = (
    "SR: seconds of plain decoding over the cell's, all pages together, with the 95% bootstrap interval over pages and "
    "rounds; e2e counts rendering, drafting and prefill, decode counts drafting and region crops. AAL: draft tokens "
    "accepted a step. host: microseconds of a pass outside the model (matching, trees, masks). Stage 1: share of pages "
    "whose regions were read first. same: share of pages with plain decoding's output, token for token; edit, draft "
    "edit: edit distance of text and draft to plain decoding's text, over the longer one's length. drift: how many "
    "times slower the machine was than when plain decoding was measured; far from 1, SR is as wrong (paired=true takes "
    "turns)."
)


def written(value: float | Interval | None, form: str) -> str:
    """`2.31 (2.20-2.44)`, `0.5`, or a dash for what is not known."""
    if value is None:
        return "-"
    if isinstance(value, Interval):
        spread = f" ({value.low:{form}}-{value.high:{form}})" if value.low != value.high else ""
        return f"{value.value:{form}}{spread}"
    return f"{value:{form}}"


def cells_table(axes: Sequence[str], records: Sequence[CellRecord], title: str = "") -> Table:
    """One row a cell. What failed has its reason in the last column, which is there only if needed."""
    found = [(r, figures(r)) for r in records]
    metrics = tuple(dict.fromkeys(name for _, f in found if f for name in f.metrics))
    columns = [*COLUMNS, *map(_metric, metrics)]
    reasons = any(reason(r) for r in records)
    rows, numbers = [], []
    for record, f in found:
        at = tuple(record.at.get(axis, "-") for axis in axes)
        values = tuple(c.text(f) if f else "-" for c in columns)
        rows.append((*at, *values, *((reason(record),) if reasons else ())))
        numbers.append(_numbers(record, f, axes, columns))
    header = (*axes, *(c.header for c in columns), *(("reason",) if reasons else ()))
    return Table(title, header, tuple(rows), CAPTION, tuple(numbers))


def _metric(name: str) -> Column:
    return Column(name, lambda f: f.metrics.get(name), ".4f")


def reason(record: CellRecord) -> str:
    """Why a cell has no figures, or lacks pages; "" for one that is whole."""
    if record.status == "partial":
        return f"{len(record.failures)} failed: {record.failures[0]}"
    return "" if record.status == "ok" else f"{record.status}: {record.reason}"


def _numbers(
    record: CellRecord, f: Figures | None, axes: Sequence[str], columns: Sequence[Column]
) -> dict[str, object]:
    row: dict[str, object] = {axis: record.at.get(axis, "") for axis in axes}
    row |= {"status": record.status, "reason": record.reason, "pages": f.pages if f else 0}
    return row | numbers_of(f, columns) | {"key": record.key}


def numbers_of(f: Figures | None, columns: Sequence[Column]) -> dict[str, object]:
    """Figures in full by header, an interval's ends beside it; "" for what is not known."""
    row: dict[str, object] = {}
    for column in columns:
        value = column.value(f) if f else None
        name = column.header
        if isinstance(value, Interval):
            row |= {name: value.value, f"{name} low": value.low, f"{name} high": value.high}
        else:
            row[name] = "" if value is None else value
    return row


def to_markdown(table: Table) -> str:
    lines = [f"## {table.title}", ""] if table.title else []
    lines += [_row(table.header), _row("---" for _ in table.header)]
    lines += [_row(row) for row in table.rows]
    return "\n".join([*lines, "", *([table.caption, ""] if table.caption else [])])


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(str(c).replace("|", "\\|").replace("\n", " ") for c in cells) + " |"


def to_csv(table: Table) -> str:
    """Figures in full, with the ends of intervals in columns of their own."""
    names = list(dict.fromkeys(name for row in table.numbers for name in row))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(table.numbers)
    return out.getvalue()


def to_latex(table: Table) -> str:
    """A `tabular` with rules of the package booktabs."""
    rows = [" & ".join(map(_tex, row)) + r" \\" for row in table.rows]
    head = " & ".join(map(_tex, table.header)) + r" \\"
    lines = [rf"\begin{{tabular}}{{{'l' * len(table.header)}}}", r"\toprule", head, r"\midrule", *rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def _tex(text: str) -> str:
    return re.sub(r"[\\~^&%$#_{}]", lambda m: _TEX.get(m[0], "\\" + m[0]), text.replace("\n", " "))
