"""Figures as Markdown tables, for the terminal and for reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

#: Column heads of what a side costs: (head, part of the summary, name, digits).
_COST = (
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


def by_group(summary: dict[str, Any], group: str) -> str:
    """A row for each value of the group and side."""
    rows = [
        (f"{value} ({name})" if len(found["sides"]) > 1 else value, found["pages"], side)
        for value, found in summary["groups"][group].items()
        for name, side in found["sides"].items()
    ]
    return _table(group, rows)


def _table(head: str, rows: Sequence[tuple[str, int | None, dict[str, Any]]]) -> str:
    """Of the figures of quality those without a slash: the others are too many for a table."""
    metrics = [m for m in dict.fromkeys(m for _, _, side in rows for m in side["quality"]) if "/" not in m]
    costs = [c for c in _COST if any(_part(side, c[1]).get(c[2]) is not None for _, _, side in rows)]
    counted = any(pages is not None for _, pages, _ in rows)
    lines = [[head, *(["pages"] if counted else []), *metrics, *(c[0] for c in costs)]]
    for name, pages, side in rows:
        figures = [_number(side["quality"].get(m), 1 if _percent(side["quality"].get(m)) else 3) for m in metrics]
        spent = [_number(_part(side, part).get(key), digits) for _, part, key, digits in costs]
        lines.append([name, *([str(pages)] if counted else []), *figures, *spent])
    return _lines(lines)


def _part(side: dict[str, Any], name: str) -> dict[str, Any]:
    return side[name] or {}


def _percent(value: float | None) -> bool:
    return value is not None and value > 1


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
