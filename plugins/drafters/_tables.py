"""Tables from words and ruling lines, as HTML. A table is only claimed where lines or clear columns show one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from hsdkit_plugins.drafters._lines import bounding, join_words

from hsdkit.regions import Box
from hsdkit.textlayer import Word

#: How near rules must come to belong together, in pixels.
_TOUCH = 5.0
#: White space between words of neighbouring cells, in font sizes.
_CELL_GAP = 0.7
#: Cells of text this long on average are no table's: two columns of running text with a rule above and below.
_MOST_WORDS = 9


@dataclass(frozen=True, slots=True)
class Table:
    """`words` are the indices of the words inside."""

    box: Box
    html: str
    words: frozenset[int]


@dataclass(frozen=True, slots=True)
class Piece:
    """Neighbouring words of one row, part of one cell (or a cell across several columns)."""

    words: tuple[Word, ...]
    box: Box


def find_tables(words: Sequence[Word], rules: Sequence[Box]) -> list[Table]:
    """Ruled tables first, then unruled ones among the words that are left."""
    tables: list[Table] = []
    taken: set[int] = set()
    for group in sorted(_rule_groups(rules), key=lambda g: -bounding(g).area):
        box = bounding(group)
        inside = [i for i, w in enumerate(words) if i not in taken and _centre_in(w.box, box.grown(3))]
        grid = make_grid([words[i] for i in inside], group)
        if grid and _plausible(grid, group):
            tables.append(Table(box, to_html(grid), frozenset(inside)))
            taken.update(inside)
    for run in _aligned_runs(words, taken):
        grid = make_grid([words[i] for i in run], ())
        if grid and len(grid) >= 3 and _plausible(grid, ()):
            tables.append(Table(bounding(words[i].box for i in run), to_html(grid), frozenset(run)))
    return tables


#: Rows of cells; a cell is (text, columns it spans).
Grid = list[list[tuple[str, int]]]


def to_html(grid: Grid) -> str:
    def cell(text: str, span: int) -> str:
        attribute = f' colspan="{span}"' if span > 1 else ""
        return f"<td{attribute}>{escape(text, quote=False)}</td>"

    rows = ("".join(cell(*c) for c in row) for row in grid)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def make_grid(words: Sequence[Word], rules: Sequence[Box]) -> Grid:
    """Words inside a table as rows of cells. Rules part cells where there are any, white space elsewhere."""
    if not words:
        return []
    area = bounding([*rules, *(w.box for w in words)])
    across = _positions([(r.y0 + r.y1) / 2 for r in rules if r.width > r.height and r.width > 0.3 * area.width])
    down = _positions([(r.x0 + r.x1) / 2 for r in rules if r.height > r.width])
    rows = [p for row in _rows(words) if (p := _pieces(row, down))]
    columns = _columns(rows, down, area)
    if len(columns) < 2:
        return []
    placed = [[(*_place(piece, columns), piece) for piece in row] for row in rows]
    merged = _join_wrapped(placed, across, boxed=len(across) > 2 and len(down) > 1)
    return [_cells(row, len(columns)) for row in merged]


def _positions(values: Sequence[float]) -> list[float]:
    """Sorted, values closer than a few pixels taken as one."""
    distinct: list[float] = []
    for value in sorted(values):
        if not distinct or value - distinct[-1] > _TOUCH:
            distinct.append(value)
    return distinct


def _rows(words: Sequence[Word]) -> list[list[Word]]:
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda w: (w.baseline, w.box.x0)):
        if rows and word.baseline - rows[-1][0].baseline <= 0.4 * min(word.size, rows[-1][0].size):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [sorted(row, key=lambda w: w.box.x0) for row in rows]


def _pieces(row: Sequence[Word], down: Sequence[float]) -> list[Piece]:
    runs: list[list[Word]] = []
    for word in row:
        if runs:
            before = runs[-1][-1]
            ruled = any(before.box.x1 - 2 <= x <= word.box.x0 + 2 for x in down)
            if not ruled and word.box.x0 - before.box.x1 < _CELL_GAP * max(word.size, before.size):
                runs[-1].append(word)
                continue
        runs.append([word])
    return [Piece(tuple(run), bounding(w.box for w in run)) for run in runs]


def _columns(rows: Sequence[Sequence[Piece]], down: Sequence[float], area: Box) -> list[tuple[float, float]]:
    """The columns as x ranges: between rules, and where white space runs through nearly every row."""
    edges = _positions([area.x0, *down, area.x1])
    strips = list(zip(edges, edges[1:], strict=False)) or [(area.x0, area.x1)]
    columns: list[tuple[float, float]] = []
    for left, right in strips:
        pieces = [p.box for row in rows for p in row if left <= (p.box.x0 + p.box.x1) / 2 <= right]
        spans = _occupied(pieces, len(rows))
        if len(spans) < 2 or (len(down) > 2 and not _parts_rows(rows, spans)):
            columns.append((left, right))
        else:
            middles = [(a[1] + b[0]) / 2 for a, b in zip(spans, spans[1:], strict=False)]
            bounds = [left, *middles, right]
            columns += zip(bounds, bounds[1:], strict=False)
    return columns


def _occupied(boxes: Sequence[Box], rows: int) -> list[tuple[float, float]]:
    """x ranges that text takes in more than a stray row (a heading across columns may bridge a gap)."""
    if not boxes:
        return []
    # A heading that is far wider than cells usually are does not close the gaps under it.
    widths = sorted(b.width for b in boxes)
    usual = widths[len(widths) // 2]
    narrow = [b for b in boxes if b.width <= 2.5 * usual] if rows > 3 else list(boxes)
    spans: list[tuple[float, float]] = []
    for box in sorted(narrow, key=lambda b: b.x0):
        if spans and box.x0 < spans[-1][1] + 2:
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
    rules is one row, unless it holds columns of numbers. Otherwise a line is a row, unless it only goes on with one cell
    of the line before."""
    merged: list[Placed] = []
    full = False  # whether the last row has a line that fills most columns
    for row in rows:
        wide = 2 * len({p[0] for p in row}) > max(len({p[0] for p in r}) for r in rows)
        same_band = bool(merged) and not _rule_between(merged[-1], row, across)
        if same_band and boxed and (not _numeric(row) or not (full and wide)):
            merged[-1].extend(row)
            full = full or wide
        elif same_band and not boxed and _goes_on(merged[-1], row):
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


def _plausible(grid: Grid, rules: Sequence[Box]) -> bool:
    """At least two rows and columns with text in them, and cells rather than running text."""
    texts = [[text for text, _ in row] for row in grid]
    filled = [t for row in texts for t in row if t]
    full_rows = sum(sum(bool(t) for t in row) > 1 for row in texts)
    if full_rows < 2 or len(filled) < 4:
        return False
    if sum(len(t.split()) for t in filled) > _MOST_WORDS * len(filled):
        return False
    return len(filled) >= 0.3 * sum(len(row) for row in texts)


def _centre_in(box: Box, area: Box) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return area.x0 <= x <= area.x1 and area.y0 <= y <= area.y1


def _rule_groups(rules: Sequence[Box]) -> list[list[Box]]:
    """Rules that touch, or are horizontal and of one width (tables ruled above, below and under the head only)."""
    parent = list(range(len(rules)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    order = sorted(range(len(rules)), key=lambda i: rules[i].x0)
    for k, i in enumerate(order):
        a = rules[i].grown(_TOUCH / 2)
        for j in order[k + 1 :]:
            b = rules[j].grown(_TOUCH / 2)
            if b.x0 > a.x1:
                break
            touching = a.y0 <= b.y1 and b.y0 <= a.y1
            alike = (
                rules[i].width > rules[i].height
                and abs(rules[i].x0 - rules[j].x0) < _TOUCH
                and abs(rules[i].x1 - rules[j].x1) < _TOUCH
            )
            if touching or alike:
                parent[root(i)] = root(j)
    groups: dict[int, list[Box]] = {}
    for i, rule in enumerate(rules):
        groups.setdefault(root(i), []).append(rule)
    return [g for g in groups.values() if _is_frame(g)]


def _is_frame(group: Sequence[Box]) -> bool:
    across = len(_positions([r.y0 for r in group if r.width > r.height]))
    box = bounding(group)
    return across >= 2 and box.width > 60 and box.height > 20


def _aligned_runs(words: Sequence[Word], taken: set[int]) -> list[list[int]]:
    """Runs of at least three rows whose words stand in the same three columns or more (two if the last is numbers)."""
    free = [i for i in range(len(words)) if i not in taken]
    index = {id(words[i]): i for i in free}
    rows = _rows([words[i] for i in free])
    runs: list[list[int]] = []
    current: list[list[Piece]] = []

    def close() -> None:
        if len(current) >= 3:
            runs.append([index[id(w)] for row in current for p in row for w in p.words])
        current.clear()

    for row in rows:
        pieces = _pieces(row, ())
        short = all(len(p.words) <= 5 for p in pieces)
        numeric = len(pieces) == 2 and any(ch.isdigit() for ch in pieces[1].words[-1].text)
        if not short or not (len(pieces) >= 3 or numeric):
            close()
            continue
        if current and not _lines_up(current[-1], pieces):
            close()
        current.append(pieces)
    close()
    return runs


def _lines_up(above: Sequence[Piece], below: Sequence[Piece]) -> bool:
    """Same number of pieces (or nearly), each over the other, and not far apart."""
    size = below[0].words[0].size
    if below[0].words[0].baseline - above[0].words[0].baseline > 3 * size or abs(len(above) - len(below)) > 1:
        return False
    fewer, more = sorted((above, below), key=len)
    return all(any(min(p.box.x1, q.box.x1) > max(p.box.x0, q.box.x0) for q in more) for p in fewer)
