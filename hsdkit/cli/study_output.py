"""What `sweep` and `report` print: the table of cells, and a cell in one line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from hsdkit.cli.console import plain
from hsdkit.study.figures import figures
from hsdkit.study.records import CellRecord
from hsdkit.study.tables import cells_table, reason, written

_MOST_REASON = 100

#: Drift of the machine beyond which speedups are not to be trusted.
MOST_DRIFT = 0.1


def print_table(out: Console, axes: Sequence[str], records: Sequence[CellRecord]) -> None:
    """The cells that were measured; below it the others, those of one reason together."""
    measured = [r for r in records if r.pages]
    if measured:
        made = cells_table(axes, measured)
        shown = Table(caption=made.caption, caption_justify="left")
        width = len(made.header) - (made.header[-1] == "reason")
        for i, name in enumerate(made.header[:width]):
            shown.add_column(plain(name), justify="left" if i < len(axes) else "right", overflow="fold")
        for row in made.rows:
            shown.add_row(*(plain(text) for text in row[:width]))
        out.print(shown)
    drifted = sum(r.drift is not None and abs(r.drift - 1) > MOST_DRIFT for r in measured)
    if drifted:
        out.print(
            f"[yellow]note:[/] during {drifted} of {len(measured)} cells the machine was faster or slower than when "
            "plain decoding was measured: see drift; paired=true measures both in turn",
            soft_wrap=True,
        )
    reasons: dict[str, list[CellRecord]] = {}
    for record in records:
        if why := reason(record):
            reasons.setdefault(why, []).append(record)
    for why, of in reasons.items():
        first = " ".join(f"{k}={v}" for k, v in of[0].at.items())
        more = f" and {len(of) - 1} more" if len(of) > 1 else ""
        colour = "yellow" if of[0].status == "invalid" else "red"
        out.print(f"[{colour}]{plain(first)}{more}:[/] {plain(why)}", soft_wrap=True)


def cell_line(record: CellRecord) -> str:
    """`2.31 (2.20-2.44) times as fast, 4.1 tokens a step, text as plain decoding's`, as rich markup."""
    f = figures(record)
    if f is None:
        why = reason(record)
        return f"[red]{plain(why[:_MOST_REASON])}{'...' if len(why) > _MOST_REASON else ''}[/]"
    parts = [f"{written(f.sr_e2e, '.2f')} times as fast"] if f.sr_e2e else []
    parts.append(f"{f.tokens_per_step:.2f} tokens a step")
    if f.same == 1:
        parts.append("text as plain decoding's")
    elif f.same is not None and f.edit is not None:
        parts.append(f"{f.same:.0%} of pages as plain decoding's, edit distance {f.edit:.4f}")
    if f.drift is not None and abs(f.drift - 1) > MOST_DRIFT:
        how = f"{f.drift:.2f} times slower" if f.drift > 1 else f"{1 / f.drift:.2f} times faster"
        parts.append(f"[yellow]machine {how} than for plain decoding[/]")
    if record.status == "partial":
        parts.append(f"[red]{plain(reason(record)[:_MOST_REASON])}[/]")
    return ", ".join(parts)
