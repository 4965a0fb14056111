"""Plots of a sweep, drawn with matplotlib (extra `plots`), as SVG and PNG."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hsdkit.components import Requirement
from hsdkit.study.records import CellRecord
from hsdkit.study.series import Series, bars, ends, lines, numeric_axes, panels
from hsdkit.study.statistics import Interval
from hsdkit.study.tables import Column

MATPLOTLIB = Requirement("matplotlib", "hsdkit[plots]")

#: Told apart by colour-blind readers too (Okabe and Ito).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666", "#f0e442")
_MARKS = "osD^vP*X"

_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "svg.hashsalt": "hsdkit",
    "legend.frameon": False,
}


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawn figure; `name` fits a file."""

    name: str
    title: str
    svg: bytes
    png: bytes


def draw(axes: Sequence[str], records: Sequence[CellRecord]) -> list[Plot]:
    """A plot for each axis of numbers, or where there is none one of bars; [] when no cell has figures. Raises
    `ImportError` without matplotlib."""
    import matplotlib

    measured = [r for r in records if r.pages]
    if not measured:
        return []
    with matplotlib.rc_context(_STYLE):
        along = numeric_axes(axes, measured)
        if not along:
            return [_bars(axes, measured)]
        return [_lines(axis, axes, measured) for axis in along]


def _lines(axis: str, axes: Sequence[str], records: Sequence[CellRecord]) -> Plot:
    series = lines(axis, axes, records)
    shown = panels([f for s in series for _, f in s.points])
    figure, drawn = _figure(len(shown), height=3.2)
    for ax, column in zip(drawn, shown, strict=True):
        for i, one in enumerate(series):
            _line(ax, one, column, _COLOURS[i % len(_COLOURS)], _MARKS[i // len(_COLOURS) % len(_MARKS)])
        ax.set(xlabel=axis, title=column.header)
        ax.set_ylim(bottom=0)
    if len(series) > 1:
        handles, names = drawn[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper", fontsize=8)
    return _plot(figure, f"by_{axis}", f"By {axis}")


def _line(ax: Any, series: Series, column: Column, colour: str, mark: str) -> None:
    points = [(x, *ends(v)) for x, f in series.points if (v := column.value(f)) is not None]
    if not points:
        return
    x, y, less, more = zip(*points, strict=True)
    ax.errorbar(x, y, (less, more), color=colour, marker=mark, ms=4, lw=1.4, capsize=2, label=series.name)


def _bars(axes: Sequence[str], records: Sequence[CellRecord]) -> Plot:
    found = bars(axes, records)
    shown = panels([f for _, f in found])
    figures = [[column.value(f) for _, f in found] for column in shown]
    return _panels_of_bars("cells", "All cells", [n for n, _ in found], [c.header for c in shown], figures)


def draw_bars(name: str, title: str, rows: Sequence[tuple[str, Mapping[str, float]]]) -> Plot:
    """A panel for each figure of the rows, a bar for each row that has it. Raises `ImportError` without matplotlib."""
    import matplotlib

    heads = list(dict.fromkeys(head for _, figures in rows for head in figures))
    with matplotlib.rc_context(_STYLE):
        figures = [[f.get(head) for _, f in rows] for head in heads]
        return _panels_of_bars(name, title, [row for row, _ in rows], heads, figures)


def _panels_of_bars(
    name: str,
    title: str,
    rows: Sequence[str],
    heads: Sequence[str],
    figures: Sequence[Sequence[float | Interval | None]],
) -> Plot:
    """`figures` has for each head the values of the rows."""
    figure, drawn = _figure(len(heads), height=1.1 + 0.32 * len(rows))
    places = list(range(len(rows)))[::-1]
    for i, (ax, head, column) in enumerate(zip(drawn, heads, figures, strict=True)):
        values = [ends(v) if v is not None else (0.0, 0.0, 0.0) for v in column]
        length, less, more = zip(*values, strict=True)
        spread = (less, more) if any(less) or any(more) else None
        ax.barh(places, length, xerr=spread, color=_COLOURS[i], height=0.62, error_kw={"lw": 1, "capsize": 2})
        ax.set(title=head, yticks=places)
        ax.set_yticklabels(rows if i == 0 else [])
        ax.grid(axis="y", visible=False)
    return _plot(figure, name, title)


def _figure(count: int, height: float) -> tuple[Any, list[Any]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * count + 1.2, height), layout="constrained")
    return figure, list(figure.subplots(1, count, squeeze=False)[0])


def _plot(figure: Any, name: str, title: str) -> Plot:
    found = {}
    for form in ("svg", "png"):
        out = io.BytesIO()
        figure.savefig(out, format=form, dpi=160, metadata={"Date": None} if form == "svg" else None)
        found[form] = out.getvalue()
    return Plot(re.sub(r"[^\w.-]+", "_", name), title, found["svg"], found["png"])
