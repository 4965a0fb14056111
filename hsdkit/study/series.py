"""What a plot shows: which axis lies below, which lines it has, which figures stand one above another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hsdkit.study.figures import Figures, figures
from hsdkit.study.records import CellRecord
from hsdkit.study.statistics import Interval
from hsdkit.study.tables import Column


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its name, and the figures at each x."""

    name: str
    points: tuple[tuple[float, Figures], ...]


def numeric_axes(axes: Sequence[str], records: Sequence[CellRecord]) -> list[str]:
    """Axes along which a line can be drawn: two or more values, all of them numbers."""
    return [a for a in axes if len(vs := {_number(r.at.get(a)) for r in records}) > 1 and None not in vs]


def lines(axis: str, axes: Sequence[str], records: Sequence[CellRecord]) -> list[Series]:
    """A line for each combination of the other axes, by growing x. Cells without figures are left out."""
    found: dict[str, list[tuple[float, Figures]]] = {}
    others = _telling([a for a in axes if a != axis], records)
    for record in records:
        x, f = _number(record.at.get(axis)), figures(record)
        if x is not None and f is not None:
            found.setdefault(label(record, others), []).append((x, f))
    return [Series(name, tuple(sorted(points, key=lambda p: p[0]))) for name, points in found.items()]


def bars(axes: Sequence[str], records: Sequence[CellRecord]) -> list[tuple[str, Figures]]:
    """A bar a cell that has figures."""
    shown = _telling(axes, records)
    return [(label(r, shown), f) for r in records if (f := figures(r)) is not None]


def label(record: CellRecord, axes: Sequence[str]) -> str:
    """`tau 0.75, n 3`: the last part of an option's name tells it."""
    values = [(a.rpartition(".")[2].replace("_", " "), record.at.get(a, "-")) for a in axes]
    return ", ".join(value if _number(value) is None else f"{name} {value}" for name, value in values)


def panels(found: Sequence[Figures]) -> list[Column]:
    """What is worth a panel: speed, tokens a step, the price in text where there is one, and a benchmark's main
    metric."""
    chosen = [
        Column("speed-up, end to end", lambda f: f.sr_e2e),
        Column("tokens a step", lambda f: f.tokens_per_step),
    ]
    if any(f.edit for f in found):
        chosen.append(Column("edit distance to plain decoding", lambda f: f.edit))
    if main := next((name for f in found for name in f.metrics), None):
        chosen.append(Column(main, lambda f: f.metrics.get(main)))
    return [c for c in chosen if any(c.value(f) is not None for f in found)]


def ends(value: float | Interval) -> tuple[float, float, float]:
    """(value, how far it may be less, how far more)."""
    if isinstance(value, Interval):
        return value.value, max(0.0, value.value - value.low), max(0.0, value.high - value.value)
    return value, 0.0, 0.0


def _telling(axes: Sequence[str], records: Sequence[CellRecord]) -> list[str]:
    """Axes on which the cells with figures differ."""
    return [a for a in axes if len({r.at.get(a) for r in records if r.pages}) > 1]


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
