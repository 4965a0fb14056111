"""The test of a table's cell and its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hsdkit_plugins.benchmarks._olmocr.text import limit, plain
from rapidfuzz import fuzz

LOOSEST = 0.5


@dataclass(eq=False, slots=True)
class Cell:
    """One cell, spans included, and its direct neighbours on each side."""

    text: str
    heading: bool
    up: list[Cell] = field(default_factory=list)
    down: list[Cell] = field(default_factory=list)
    left: list[Cell] = field(default_factory=list)
    right: list[Cell] = field(default_factory=list)


#: Text, row span, column span, whether it is a heading.
Given = tuple[str, int, int, bool]


def table(test: Mapping[str, Any], markdown: str) -> str:
    """Why it fails, "" when some cell like `cell` has all the neighbours that are asked for."""
    wanted = plain(test["cell"])
    tables = [] if test.get("ignore_markdown_tables") else list(markdown_tables(markdown))
    tables += html_tables(markdown)
    if not tables:
        return "no table"
    found = [c for cells in tables for c in cells if _alike(c.text, wanted) >= max(LOOSEST, limit(test, wanted))]
    asked = [(side, plain(test[side])) for side in _SIDES if test.get(side)]
    for cell in found:
        if all(_some(test, text, _SIDES[side](cell)) for side, text in asked):
            return ""
    return "the cell has other neighbours" if found else "no such cell"


def _alike(text: str, wanted: str) -> float:
    return float(fuzz.ratio(wanted, plain(text))) / 100.0


def _some(test: Mapping[str, Any], wanted: str, cells: Sequence[Cell]) -> bool:
    return any(_alike(cell.text, wanted) >= max(LOOSEST, limit(test, wanted)) for cell in cells)


def _headings(cell: Cell, side: Callable[[Cell], list[Cell]]) -> list[Cell]:
    """The headings that way; where there is none, the cells at the table's edge."""
    seen: dict[Cell, None] = {}
    waiting = [cell]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen[one] = None
            waiting += side(one)
    others = [c for c in seen if c is not cell]
    return [c for c in others if c.heading] or [c for c in others if not side(c)]


_SIDES: dict[str, Callable[[Cell], list[Cell]]] = {
    "up": lambda cell: cell.up,
    "down": lambda cell: cell.down,
    "left": lambda cell: cell.left,
    "right": lambda cell: cell.right,
    "left_heading": lambda cell: _headings(cell, lambda c: c.left),
    "top_heading": lambda cell: _headings(cell, lambda c: c.up),
}


def cells(rows: Sequence[Sequence[Given]]) -> list[Cell]:
    """All cells of a table, linked with their neighbours."""
    grid: dict[tuple[int, int], Cell] = {}
    spans: dict[Cell, tuple[range, range]] = {}
    for r, row in enumerate(rows):
        column = 0
        for text, height, width, heading in row:
            while (r, column) in grid:
                column += 1
            cell = Cell(text, heading)
            spans[cell] = range(r, r + height), range(column, column + width)
            # A wide cell that runs into one which reaches down from above ends that one.
            for at in [(y, x) for y, x in grid if y >= r and x in spans[cell][1]]:
                del grid[at]
            grid |= {(y, x): cell for y in spans[cell][0] for x in spans[cell][1]}
            column += width
    if grid:
        _link(grid, spans)
    return list(spans)


def _link(grid: Mapping[tuple[int, int], Cell], spans: Mapping[Cell, tuple[range, range]]) -> None:
    height, width = max(y for y, _ in grid) + 1, max(x for _, x in grid) + 1
    for cell, (ys, xs) in spans.items():
        up, down = range(ys.start - 1, -1, -1), range(ys.stop, height)
        left, right = range(xs.start - 1, -1, -1), range(xs.stop, width)
        cell.up = _first([[(y, x) for y in up] for x in xs], grid, cell)
        cell.down = _first([[(y, x) for y in down] for x in xs], grid, cell)
        cell.left = _first([[(y, x) for x in left] for y in ys], grid, cell)
        cell.right = _first([[(y, x) for x in right] for y in ys], grid, cell)


def _first(ways: Sequence[Sequence[tuple[int, int]]], grid: Mapping[tuple[int, int], Cell], cell: Cell) -> list[Cell]:
    """The first other cell on each way, each once."""
    found = (next((grid[at] for at in way if at in grid and grid[at] is not cell), None) for way in ways)
    return list(dict.fromkeys(c for c in found if c is not None))


def markdown_tables(markdown: str) -> Iterator[list[Cell]]:
    """Runs of two or more lines that hold a bar."""
    run: list[str] = []
    for line in [*markdown.strip().split("\n"), ""]:
        if "|" in line:
            run.append(line)
            continue
        rows = list(_rows(run)) if len(run) >= 2 else []
        run = []
        if rows:
            yield cells([[(text, 1, 1, r == 0 or c == 0) for c, text in enumerate(row)] for r, row in enumerate(rows)])


def _rows(lines: Sequence[str]) -> Iterator[list[str]]:
    rule = next((i for i, line in enumerate(lines) if _is_rule(line.replace("|", "").strip())), None)
    for i, line in enumerate(lines):
        if i == rule or (line.strip() and all(c in "- :|" for c in line)):
            continue
        found = [cell.strip() for cell in line.split("|")]
        found = found[1:] if found[0] == "" else found
        found = found[:-1] if found and found[-1] == "" else found
        if found:
            yield found


def _is_rule(line: str) -> bool:
    return bool(line) and all(c in "- :" for c in line)


def html_tables(markdown: str) -> Iterator[list[Cell]]:
    from bs4 import BeautifulSoup

    for found in BeautifulSoup(markdown, "html.parser").find_all("table"):
        rows = found.find_all("tr")
        given = [
            [_given(cell, len(rows) - r) for cell in row.find_all(["th", "td"], recursive=False)]
            for r, row in enumerate(rows)
        ]
        if table := cells(given):
            yield table


def _given(cell: Any, rows_left: int) -> Given:
    for line_end in cell.find_all("br"):
        line_end.replace_with("\n")
    down = str(cell.get("rowspan") or "").strip()
    height = max(1, rows_left) if down == "0" else _span(down)
    heading = cell.name == "th" or cell.find_parent("thead") is not None
    return cell.get_text(separator="").strip(), height, _span(str(cell.get("colspan") or "")), heading


def _span(text: str) -> int:
    try:
        return max(1, int(text))
    except ValueError:
        return 1
