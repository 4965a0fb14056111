"""Where tables are on a page. One is only claimed where ruling lines or clear columns of short cells show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hsdkit_plugins.drafters._grid import (
    CELL_GAP,
    TOUCH,
    Grid,
    Piece,
    make_grid,
    pieces_of,
    positions,
    rows_of,
    to_html,
)
from hsdkit_plugins.drafters._lines import bounding

from hsdkit.regions import Box
from hsdkit.textlayer import Word

#: A page with more rules than this is a drawing.
_MOST_RULES = 1200
#: Cells of text this long on average are no table's: two columns of running text with a rule above and below.
_MOST_WORDS = 9
#: The same where no vertical rule parts the columns.
_MOST_WORDS_UNPARTED = 3.5


@dataclass(frozen=True, slots=True)
class Table:
    """`words` are the indices of the words inside."""

    box: Box
    html: str
    words: frozenset[int]


def find_tables(words: Sequence[Word], rules: Sequence[Box], gap: float = CELL_GAP) -> list[Table]:
    """Ruled tables first, then unruled ones among the words that are left. `gap` is the white space in font sizes that
    parts cells no rule parts; 0 if the words are whole cells already."""
    tables: list[Table] = []
    taken: set[int] = set()
    for group in sorted(_rule_groups(rules), key=lambda g: -bounding(g).area):
        box = bounding(group)
        inside = [i for i, w in enumerate(words) if i not in taken and _centre_in(w.box, box.grown(3))]
        grid = make_grid([words[i] for i in inside], group, gap)
        if grid and _plausible(grid, group):
            tables.append(Table(box, to_html(grid), frozenset(inside)))
            taken.update(inside)
    for run in _aligned_runs(words, taken, gap):
        grid = make_grid([words[i] for i in run], (), gap)
        if grid and len(grid) >= 3 and _plausible(grid, ()):
            tables.append(Table(bounding(words[i].box for i in run), to_html(grid), frozenset(run)))
    return tables


def _plausible(grid: Grid, rules: Sequence[Box]) -> bool:
    """At least two rows and columns with text in them, and cells rather than running text."""
    texts = [[text for text, _ in row] for row in grid]
    filled = [t for row in texts for t in row if t]
    full_rows = sum(sum(bool(t) for t in row) > 1 for row in texts)
    if full_rows < 2 or len(filled) < 4:
        return False
    words = sum(len(t.split()) for t in filled) / len(filled)
    box = bounding(rules) if rules else None
    parted = box is not None and any(r.height > r.width and box.x0 + 5 < r.x0 < box.x1 - 5 for r in rules)
    numbers = sum(any(ch.isdigit() for ch in t) for t in filled)
    prose = words > _MOST_WORDS_UNPARTED and not parted and len(grid) > 5 and 3 * numbers < len(filled)
    if words > _MOST_WORDS or prose:
        return False
    return len(filled) >= 0.3 * sum(len(row) for row in texts)


def _centre_in(box: Box, area: Box) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return area.x0 <= x <= area.x1 and area.y0 <= y <= area.y1


def _rule_groups(rules: Sequence[Box]) -> list[list[Box]]:
    """Rules that touch, or are horizontal and of one width (tables ruled above, below and under the head only)."""
    if len(rules) > _MOST_RULES:
        return []
    parent = list(range(len(rules)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    order = sorted(range(len(rules)), key=lambda i: rules[i].x0)
    for k, i in enumerate(order):
        a = rules[i].grown(TOUCH / 2)
        for j in order[k + 1 :]:
            b = rules[j].grown(TOUCH / 2)
            if b.x0 > a.x1:
                break
            touching = a.y0 <= b.y1 and b.y0 <= a.y1
            alike = (
                rules[i].width > rules[i].height
                and abs(rules[i].x0 - rules[j].x0) < TOUCH
                and abs(rules[i].x1 - rules[j].x1) < TOUCH
            )
            if touching or alike:
                parent[root(i)] = root(j)
    groups: dict[int, list[Box]] = {}
    for i, rule in enumerate(rules):
        groups.setdefault(root(i), []).append(rule)
    return [g for g in groups.values() if _is_frame(g)]


def _is_frame(group: Sequence[Box]) -> bool:
    across = len(positions([r.y0 for r in group if r.width > r.height]))
    box = bounding(group)
    return across >= 2 and box.width > 60 and box.height > 20


def _aligned_runs(words: Sequence[Word], taken: set[int], gap: float) -> list[list[int]]:
    """Runs of at least three rows of cells that stand in the same three columns or more (two if the last is numbers).
    Running text in other columns of the page beside them does not disturb."""
    free = [i for i in range(len(words)) if i not in taken]
    index = {id(words[i]): i for i in free}
    rows = [pieces_of(row, (), gap) for row in rows_of([words[i] for i in free])]
    widths = sorted(p.box.width for row in rows for p in row)
    widest = 0.7 * widths[int(0.9 * len(widths))] if widths else 0.0
    runs: list[list[int]] = []
    current: list[list[Piece]] = []

    def close() -> None:
        if len(current) >= 3:
            runs.append([index[id(w)] for row in current for p in row for w in p.words])
        current.clear()

    for row in rows:
        chains = _chains(row, widest)
        if not current:
            current += chains[:1]
            continue
        left, right = min(p.box.x0 for p in current[-1]), max(p.box.x1 for p in current[-1])
        if not any(p.box.x0 < right and p.box.x1 > left for p in row):
            continue
        # What follows may lack a cell.
        near = [p for p in row if p.box.x0 < right and p.box.x1 > left]
        if len(near) > 1 and all(_is_cell(p, widest) for p in near) and _lines_up(current[-1], near):
            current.append(near)
        else:
            close()
            current += chains[:1]
    close()
    return runs


def _chains(row: Sequence[Piece], widest: float) -> list[list[Piece]]:
    """Neighbouring pieces that could be cells: three or more, or two of which the second ends in a number."""
    chains: list[list[Piece]] = [[]]
    for piece in row:
        if _is_cell(piece, widest):
            chains[-1].append(piece)
        else:
            chains.append([])
    return [
        chain
        for chain in chains
        if len(chain) > 2 or (len(chain) == 2 and any(ch.isdigit() for ch in chain[1].words[-1].text))
    ]


def _is_cell(piece: Piece, widest: float) -> bool:
    return piece.box.width <= widest and sum(len(w.text.split()) for w in piece.words) <= 5


def _lines_up(above: Sequence[Piece], below: Sequence[Piece]) -> bool:
    """Same number of pieces (or nearly), each over the other, and not far apart."""
    size = below[0].words[0].size
    if below[0].words[0].baseline - above[0].words[0].baseline > 3 * size or abs(len(above) - len(below)) > 1:
        return False
    fewer, more = sorted((above, below), key=len)
    return all(any(min(p.box.x1, q.box.x1) > max(p.box.x0, q.box.x0) for q in more) for p in fewer)
