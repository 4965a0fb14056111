"""OTSL, the table language of Docling's models and PaddleOCR-VL: one tag a cell, read from left to right.

`<fcel>text` a cell, `<ecel>` an empty one, `<ched>`, `<rhed>`, `<srow>` heads of columns, rows and sections, `<lcel>`,
`<ucel>`, `<xcel>` a place covered by the cell to the left, above, or both; `<nl>` ends a row. (Lysak et al., Optimized
Table Tokenization for Table Structure Recognition, 2023.)
"""

from __future__ import annotations

import re
from dataclasses import replace

from hsdkit_plugins.targets.tables import Cell, Grid, places

_TAG = re.compile(r"<(fcel|ecel|ched|rhed|srow|lcel|ucel|xcel|nl)>")
#: A table within other text: from its first tag to the end of a row that no row follows.
OTSL = re.compile(r"<(?:[fe]cel|[cr]hed|srow)>.*?(?:<nl>(?!\s*<(?:[feluxr]cel|[cr]hed|srow)>)|(?=\n\n)|\Z)", re.DOTALL)
_CUT = re.compile(r"<[a-z]{0,4}\Z")

#: The tags, which are single tokens of models that write OTSL.
TOKENS = tuple(f"<{tag}>" for tag in ("fcel", "ecel", "ched", "rhed", "srow", "lcel", "ucel", "xcel", "nl"))
_LEFT, _UP, _BOTH = "lcel", "ucel", "xcel"


def is_otsl(text: str) -> bool:
    return _TAG.search(text) is not None


def otsl_table(rows: Grid, heads: bool = False) -> str:
    """The table in OTSL; `heads`: head cells are written as `<ched>`."""
    full = places(rows)
    width = max(map(len, full), default=0)
    out = []
    for row in full:
        for place in [*row, *[None] * (width - len(row))]:
            if place is None:
                out.append("<ecel>")
                continue
            cell, down, right = place
            if down or right:
                out.append(f"<{_BOTH if down and right else _UP if down else _LEFT}>")
            elif not cell.text:
                out.append("<ecel>")
            else:
                out.append(f"<{'ched' if heads and cell.head else 'fcel'}>{cell.text}")
        out.append("<nl>")
    return "".join(out)


def otsl_grid(text: str) -> Grid:
    """The cells of an OTSL table, whole, cut or broken: no text is lost, and a covered place that nothing covers is an
    empty cell."""
    matrix = _matrix(_CUT.sub("", text))
    covered: set[tuple[int, int]] = set()
    grid: Grid = []
    for r, row in enumerate(matrix):
        out = []
        for c, place in enumerate(row):
            if (r, c) in covered:
                continue
            if isinstance(place, str):  # what should cover it is not there
                out.append(Cell())
                continue
            columns = 1
            while _at(matrix, r, c + columns) == _LEFT and (r, c + columns) not in covered:
                columns += 1
            rows = 1
            while _covers(matrix, covered, r + rows, c, columns):
                rows += 1
            covered |= {(r + i, c + j) for i in range(rows) for j in range(columns)}
            out.append(replace(place, rows=rows, columns=columns))
        grid.append(out)
    return grid


def _covers(matrix: list[list[Cell | str]], covered: set[tuple[int, int]], r: int, c: int, columns: int) -> bool:
    """Whether a cell above reaches over the places c.. of a row."""
    if _at(matrix, r, c) != _UP or (r, c) in covered:
        return False
    return all(_at(matrix, r, c + j) in (_UP, _BOTH, _LEFT) and (r, c + j) not in covered for j in range(1, columns))


def _at(matrix: list[list[Cell | str]], r: int, c: int) -> Cell | str | None:
    return matrix[r][c] if r < len(matrix) and c < len(matrix[r]) else None


def _matrix(text: str) -> list[list[Cell | str]]:
    """Rows of cells and of names of covered places; text before a row's first tag is a cell of its own."""
    parts = _TAG.split(text)
    rows: list[list[Cell | str]] = [[]]
    if lead := " ".join(parts[0].split()):
        rows[-1].append(Cell(lead))
    for tag, rest in zip(parts[1::2], parts[2::2], strict=True):
        content = " ".join(rest.split())
        if tag == "nl":
            rows.append([Cell(content)] if content else [])
        elif tag in (_LEFT, _UP, _BOTH) and not content:
            rows[-1].append(tag)
        else:
            rows[-1].append(Cell(content, head=tag in ("ched", "rhed", "srow")))
    return [row for row in rows if row]
