"""Figures as Markdown tables, for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hsdkit.rejections import REASONS, End

#: Column heads of what a side costs: (head, part of the summary, name, digits).
COST = (
    ("AAL", "cost", "aal", 2),
    ("tokens/step", "cost", "tokens_per_step", 2),
    ("steps", "cost", "steps", 0),
    ("forwards", "cost", "forwards", 0),
    ("s/page", "cost", "seconds_per_page", 2),
    ("SR_decode", "speedup", "decode", 2),
    ("SR_e2e", "speedup", "e2e", 2),
)


def overall(summary: dict[str, Any]) -> str:
    """A row a side: its figures of quality, then what it cost."""
    return _table("verifier", [(name, None, side) for name, side in summary["sides"].items()])


def times(summary: dict[str, Any]) -> str:
    """A row a phase, seconds of all pages."""
    sides = summary["sides"]
    phases = dict.fromkeys(phase for side in sides.values() for phase in side["cost"]["seconds"])
    rows = [[phase, *(_number(side["cost"]["seconds"].get(phase), 2) for side in sides.values())] for phase in phases]
    return _lines([["seconds", *sides], *rows])


def by_prefill_share(summary: dict[str, Any]) -> str:
    """The paper's Table A1: speedups by the part of the baseline's time that no speculation shortens; "" without a
    baseline."""
    rows = [
        [
            prefill_range(row),
            name,
            str(row["pages"]),
            *(_number(row[k], 2) for k in ("decode", "e2e")),
        ]
        for name, found in summary["by_prefill_share"].items()
        for row in found
    ]
    return _lines([["prefill's share", "verifier", "pages", "SR_decode", "SR_e2e"], *rows]) if rows else ""


def prefill_range(row: Mapping[str, Any]) -> str:
    """`10% to 20%`, of a row of Table A1."""
    return f"{row['from']:.0%} to {row['to']:.0%}"


def by_group(summary: dict[str, Any], group: str) -> str:
    """A row for each value of the group and side; a baseline is left out, speedups tell of it."""
    rows = [
        (f"{value} ({name})" if len(found["sides"]) > 2 else value, found["pages"], side)
        for value, found in summary["groups"][group].items()
        for name, side in found["sides"].items()
        if name != summary["baseline"]
    ]
    return _table(group, rows)


def drafts_by_label(summary: dict[str, Any]) -> str:
    """How drafts fared, a row for each label of drafted regions and side; "" where nothing was drafted."""
    rows = [
        (f"{label} ({name})" if len(drafted) > 1 else label, fates)
        for drafted in [_drafting(summary["sides"])]
        for name, drafts in drafted.items()
        for label, fates in [*drafts["labels"].items(), ("all", drafts)]
    ]
    return _fates("region", rows)


def drafts_by_group(summary: dict[str, Any], group: str) -> str:
    """The same for each value of a group of pages; "" where nothing was drafted."""
    rows = [
        (f"{value} ({name})" if len(drafted) > 1 else value, drafts)
        for value, found in summary["groups"][group].items()
        for drafted in [_drafting(found["sides"])]
        for name, drafts in drafted.items()
    ]
    return _fates(f"drafts by {group}", rows)


def _drafting(sides: dict[str, Any]) -> dict[str, Any]:
    """The drafts of the sides that asked for any."""
    drafts = {name: side["drafts"] for name, side in sides.items()}
    return {name: d for name, d in drafts.items() if set(d["ends"]) - {End.UNKNOWN}}


def _fates(head: str, rows: Sequence[tuple[str, dict[str, Any]]]) -> str:
    return _lines(fate_rows([head], [((name,), fates) for name, fates in rows])) if rows else ""


def fate_rows(heads: Sequence[str], rows: Sequence[tuple[Sequence[str], Mapping[str, Any]]]) -> list[tuple[str, ...]]:
    """How drafts fared (`Fates.to_json`), below a header: a row for each entry, which begins with its names under
    `heads`. Ends are in percent of the steps; some have a column only where there are any."""
    columns = [
        *([head, *(names[i] for names, _ in rows)] for i, head in enumerate(heads)),
        ["tokens", *(str(f["tokens"]) for _, f in rows)],
        ["accepted %", *(_percent(f["accepted"], f["tokens"]) for _, f in rows)],
        ["steps", *(str(f["steps"]) for _, f in rows)],
        ["AAL", *(_number(f["aal"], 2) for _, f in rows)],
    ]
    for end in (*REASONS, End.NOT_VERIFIED, End.TAKEN, End.UNKNOWN):
        counts = [f["ends"].get(end, 0) for _, f in rows]
        if end in REASONS or any(counts):
            shares = (_percent(n, f["steps"]) for n, (_, f) in zip(counts, rows, strict=True))
            columns.append([f"{end.replace('_', ' ')} %", *shares])
    return list(zip(*columns, strict=True))


def _percent(part: int, whole: int) -> str:
    return _number(100 * part / whole, 1) if whole else "-"


def _table(head: str, rows: Sequence[tuple[str, int | None, dict[str, Any]]]) -> str:
    """Of the figures of quality those without a slash: the others are too many for a table. No column is empty."""
    sides = [side for _, _, side in rows]
    figures = {
        m: [side["quality"].get(m) for side in sides] for m in dict.fromkeys(m for s in sides for m in s["quality"])
    }
    columns = [
        [metric, *(_number(v, 1 if any((x or 0) > 1 for x in values) else 3) for v in values)]
        for metric, values in figures.items()
        if "/" not in metric and any(v is not None for v in values)
    ]
    for name, part, key, digits in COST:
        spent = [_part(side, part).get(key) for side in sides]
        if any(v is not None for v in spent):
            columns.append([name, *(_number(v, digits) for v in spent)])
    if any(pages is not None for _, pages, _ in rows):
        columns.insert(0, ["pages", *(str(pages) for _, pages, _ in rows)])
    columns.insert(0, [head, *(name for name, _, _ in rows)])
    return _lines(list(zip(*columns, strict=True)))


def _part(side: dict[str, Any], name: str) -> dict[str, Any]:
    return side[name] or {}


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _lines(rows: Sequence[Sequence[str]]) -> str:
    """Columns made as wide as what they hold, so that the text reads as a table too."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    rule = ["-" * w if i == 0 else "-" * (w - 1) + ":" for i, w in enumerate(widths)]
    return "\n".join(_line(row, widths) for row in [cells[0], rule, *cells[1:]])


def _line(row: Iterable[str], widths: Sequence[int]) -> str:
    padded = [c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
    return f"| {' | '.join(padded)} |"
