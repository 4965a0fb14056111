"""Words inside a table to rows of cells, and those to HTML."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hsdkit_plugins.drafters._lines import bounding, join_words

from hsdkit.regions import Box
from hsdkit.textlayer import Word

#: White space between words of neighbouring cells, in font sizes.
CELL_GAP = 0.7

#: A cell of more lines than this is not one: the rules part groups of rows.
_MOST_LINES = 8

#: Rules and edges nearer than this belong together, in pixels.
TOUCH = 5.0


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbouring words of one row, part of one cell (or a cell across several columns)."""

    words: tuple[Word, ...]
    box: Box


#: Rows of cells; a cell is (text, columns it spans).
Grid = list[list[tuple[str, int]]]


def to_html(grid: Grid) -> str:
    def cell(text: str, span: int) -> str:
        attribute = f' colspan="{span}"' if span > 1 else ""
        return f"<td{attribute}>{escape(text, quote=False)}</td>"

    rows = ("".join(cell(*c) for c in row) for row in grid)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def make_grid(words: Sequence[Word], rules: Sequence[Box], gap: float = CELL_GAP) -> Grid:
    """Words inside a table as rows of cells. Rules part cells where there are any, white space elsewhere."""
    if not words:
        return []
    area = bounding([*rules, *(w.box for w in words)])
    across = positions([(r.y0 + r.y1) / 2 for r in rules if r.width > r.height and r.width > 0.3 * area.width])
    down = positions([(r.x0 + r.x1) / 2 for r in rules if r.height > r.width])
    rows = [p for row in rows_of(words) if (p := pieces_of(row, down, gap))]
    columns = _columns(rows, down, area, 2.0 if gap else -0.25 * words[0].box.height)
    if len(columns) < 2:
        return []
    placed = [[(*_place(piece, columns), piece) for piece in row] for row in rows]
    merged = _join_wrapped(
        placed, across, boxed=len(across) > 2 and any(area.x0 + TOUCH < x < area.x1 - TOUCH for x in down)
    )
    return [_cells(row, len(columns)) for row in merged]


def positions(values: Sequence[float]) -> list[float]:
    """Sorted, values closer than a few pixels taken as one."""
    distinct: list[float] = []
    for value in sorted(values):
        if not distinct or value - distinct[-1] > TOUCH:
            distinct.append(value)
    return distinct


def rows_of(words: Sequence[Word]) -> list[list[Word]]:
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda w: (w.baseline, w.box.x0)):
        if rows and word.baseline - rows[-1][0].baseline <= 0.4 * min(word.size, rows[-1][0].size):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [sorted(row, key=lambda w: w.box.x0) for row in rows]


def pieces_of(row: Sequence[Word], down: Sequence[float], gap: float) -> list[Piece]:
    runs: list[list[Word]] = []
    for word in row:
        if runs:
            before = runs[-1][-1]
            ruled = any(before.box.x1 - 2 <= x <= word.box.x0 + 2 for x in down)
            if not ruled and word.box.x0 - before.box.x1 < gap * max(word.size, before.size):
                runs[-1].append(word)
                continue
        runs.append([word])
    return [Piece(tuple(run), bounding(w.box for w in run)) for run in runs]


def _columns(
    rows: Sequence[Sequence[Piece]], down: Sequence[float], area: Box, apart: float
) -> list[tuple[float, float]]:
    """The columns as x ranges: between rules, and where white space runs through nearly every row, `apart` wide."""
    edges = positions([area.x0, *down, area.x1])
    strips = list(itertools.pairwise(edges)) or [(area.x0, area.x1)]
    columns: list[tuple[float, float]] = []
    for left, right in strips:
        pieces = [p.box for row in rows for p in row if left <= (p.box.x0 + p.box.x1) / 2 <= right]
        spans = _occupied(pieces, len(rows), apart)
        if len(spans) < 2 or (len(down) > 2 and not _parts_rows(rows, spans)):
            columns.append((left, right))
        else:
            middles = [(a[1] + b[0]) / 2 for a, b in itertools.pairwise(spans)]
            bounds = [left, *middles, right]
            columns += itertools.pairwise(bounds)
    return columns


def _occupied(boxes: Sequence[Box], rows: int, apart: float) -> list[tuple[float, float]]:
    """x ranges that text takes in more than a stray row (a heading across columns may bridge a gap)."""
    if not boxes:
        return []
    # A heading that is far wider than cells usually are does not close the gaps under it.
    widths = sorted(b.width for b in boxes)
    usual = widths[len(widths) // 2]
    narrow = [b for b in boxes if b.width <= 2.5 * usual] if rows > 3 else list(boxes)
    spans: list[tuple[float, float]] = []
    for box in sorted(narrow, key=lambda b: b.x0):
        if spans and box.x0 < spans[-1][1] + apart:
            spans[-1] = (spans[-1][0], max(spans[-1][1], box.x1))
        else:
            spans.append((box.x0, box.x1))
    return spans


def _parts_rows(rows: Sequence[Sequence[Piece]], spans: Sequence[tuple[float, float]]) -> bool:
    """Whether most rows have text in each of the ranges: then white space parts cells that no rule parts."""
    filled = sum(
        all(any(left <= (p.box.x0 + p.box.x1) / 2 <= right for p in row) for left, right in spans) for row in rows
    )
    return filled >= max(2, 0.6 * len(rows))


def _place(piece: Piece, columns: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """First column and number of columns: those whose middle the piece covers, else the one it overlaps most."""
    covered = [k for k, (left, right) in enumerate(columns) if piece.box.x0 <= (left + right) / 2 <= piece.box.x1]
    if len(covered) > 1:
        return covered[0], len(covered)
    shared = [min(piece.box.x1, right) - max(piece.box.x0, left) for left, right in columns]
    return shared.index(max(shared)), 1


Placed = list[tuple[int, int, Piece]]


def _join_wrapped(rows: Sequence[Placed], across: Sequence[float], boxed: bool) -> list[Placed]:
    """Lines of text as rows of the table. In a table whose cells are ruled all round (`boxed`), what stands between two
    rules is one row, unless it holds columns of numbers. Otherwise a line is a row, unless it only goes on with one
    cell of the line before."""
    bands = [sum(y < row[0][2].words[0].baseline for y in across) for row in rows]
    merged: list[Placed] = []
    full = False  # whether the last row has a line that fills most columns
    for row, band in zip(rows, bands, strict=True):
        one_row = boxed and bands.count(band) <= _MOST_LINES
        wide = 2 * len({p[0] for p in row}) > max(len({p[0] for p in r}) for r in rows)
        same_band = bool(merged) and not _rule_between(merged[-1], row, across)
        if same_band and one_row and (not _numeric(row) or not (full and wide)):
            merged[-1].extend(row)
            full = full or wide
        elif same_band and not one_row and _goes_on(merged[-1], row):
            merged[-1].extend(row)
        else:
            merged.append(list(row))
            full = wide
    return merged


def _numeric(row: Placed) -> bool:
    texts = [w.text for p in row for w in p[2].words]
    return 2 * sum(any(ch.isdigit() for ch in t) for t in texts) >= len(texts)


def _goes_on(above: Placed, row: Placed) -> bool:
    filled = {p[0] for p in row}
    first, last = row[0][2].words[0], max((p[2].words[0] for p in above), key=lambda w: w.baseline)
    near = first.baseline - last.baseline < 1.35 * first.size
    return len(filled) == 1 and 0 not in filled and filled <= {p[0] for p in above} and near


def _rule_between(above: Placed, below: Placed, across: Sequence[float]) -> bool:
    top = max(p[2].words[0].baseline for p in above)
    bottom = min(p[2].words[0].baseline for p in below)
    return any(top - 2 <= y <= bottom for y in across)


def _cells(row: Placed, columns: int) -> list[tuple[str, int]]:
    cells: list[tuple[str, int]] = []
    column = 0
    while column < columns:
        here = [p for p in row if p[0] == column]
        span = max((p[1] for p in here), default=1)
        # A cell across columns yields to a cell of its own in one of them.
        taken = [p[0] for p in row if column < p[0] < column + span]
        span = min([span, *(t - column for t in taken)])
        cells.append((" ".join(join_words(p[2].words) for p in here), span))
        column += span
    return cells
