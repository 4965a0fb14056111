"""Lines that OCR has read, and the areas a layout model sees, as regions. Pure geometry: no model is needed here."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hsdkit_plugins.drafters._grid import make_grid, to_html
from hsdkit_plugins.drafters._lines import Line, bounding, join_lines, overlap
from hsdkit_plugins.drafters._page import page_regions
from hsdkit_plugins.drafters._tables import Table, find_tables

from hsdkit.regions import Box, Label, Region
from hsdkit.spelling import is_cjk
from hsdkit.textlayer import Word

if TYPE_CHECKING:
    import numpy as np

#: Box, label and confidence of what the layout model sees.
Area = tuple[Box, Label, float]

#: How far detected boxes reach beyond the ink, in their heights.
_MARGIN = 0.14

#: A line runs through a column if this part of it lies there.
_CROSSED = 0.12

#: A "figure" of which text covers more than this is text: the layout model takes small pages for pictures.
_MOST_TEXT = 0.15


def without_overlaps(areas: Sequence[Area]) -> list[Area]:
    """Layout areas, likeliest first, without those that mostly lie in (or around) a likelier one of whatever class."""
    kept: list[Area] = []
    for area in sorted(areas, key=lambda a: -a[2]):
        if all(max(overlap(area[0], k[0]), overlap(k[0], area[0])) < 0.6 for k in kept):
            kept.append(area)
    return kept


def split_at_columns(quads: Sequence[np.ndarray], areas: Sequence[Area]) -> list[np.ndarray]:
    """Lines found as one across a narrow gutter are cut where one text area ends and the next begins. A quad is the
    four corners (4, 2) from the top left clockwise."""
    columns = sorted((box for box, label, _ in areas if label not in (Label.FIGURE, Label.TABLE)), key=lambda b: b.x0)
    return [part for quad in quads for part in _split(quad, columns)]


def _split(quad: np.ndarray, columns: Sequence[Box]) -> list[np.ndarray]:
    left, right = float(quad[:, 0].min()), float(quad[:, 0].max())
    middle = float(quad[:, 1].mean())
    crossed: list[Box] = []
    for box in columns:
        shared = min(right, box.x1) - max(left, box.x0)
        beside = not crossed or box.x0 > crossed[-1].x1 - 4
        if beside and box.y0 - 4 < middle < box.y1 + 4 and shared > _CROSSED * (right - left):
            crossed.append(box)
    cuts = [(a.x1 + b.x0) / 2 for a, b in itertools.pairwise(crossed)]
    shares = [0.0, *((cut - left) / (right - left) for cut in cuts), 1.0]
    top, bottom = quad[1] - quad[0], quad[2] - quad[3]
    return [_strip(quad, top, bottom, a, b) for a, b in itertools.pairwise(shares)]


def _strip(quad: np.ndarray, top: np.ndarray, bottom: np.ndarray, a: float, b: float) -> np.ndarray:
    """The part of a quad between two shares of its width."""
    part = quad.copy()
    part[0], part[1] = quad[0] + a * top, quad[0] + b * top
    part[3], part[2] = quad[3] + a * bottom, quad[3] + b * bottom
    return part


def ocr_line(quad: np.ndarray, text: str) -> Line:
    xs, ys = quad[:, 0], quad[:, 1]
    # Slant makes the box taller, not the print: the height is that of the quadrangle.
    height = float(((quad[3] - quad[0]) ** 2).sum() ** 0.5)
    margin = _MARGIN * min(height, float(xs.max() - xs.min()))
    box = Box(float(xs.min()) + margin, float(ys.min()) + margin, float(xs.max()) - margin, float(ys.max()) - margin)
    size = box.width / _ems(text) if len(text) > 3 else 0.75 * height
    return Line((Word(text, box, (box.y0 + box.y1) / 2 + 0.3 * size, size),))


def _ems(text: str) -> float:
    """Width of the text in font sizes in a usual print. How wide a line is says more about the size of its print than
    how high: boxes are found on a coarse grid, and "on" is lower than "Only"."""
    return sum(1.0 if is_cjk(ch) else _EMS.get(ch, 0.67 if ch.isupper() else 0.53) for ch in text)


_EMS = dict.fromkeys(" ijlI.,:;'|!", 0.26) | dict.fromkeys("frt()[]-/", 0.34) | dict.fromkeys("mwMW%@", 0.83)


def regions_of_lines(lines: list[Line], areas: list[Area], width: int, height: int) -> list[Region]:
    columns = [line for line in lines if _vertical(line)]
    if sum(len(line.text) for line in columns) > sum(len(line.text) for line in lines) / 2:
        return _vertical_regions(columns, [line for line in lines if not _vertical(line)])
    lines = _same_sizes(lines)
    members: dict[int, list[Line]] = {}
    for line in lines:
        shares = [overlap(line.box, box) for box, _, _ in areas]
        best = max(range(len(areas)), key=lambda k: shares[k], default=-1)
        members.setdefault(best if best >= 0 and shares[best] > 0.5 else -1, []).append(line)
    text = list(members.pop(-1, []))
    tables: list[Table] = []
    pictures: list[Box] = []
    for k, (box, label, _) in enumerate(areas):
        inside = members.get(k, [])
        words = [w for line in inside for w in line.words]
        if label == Label.FIGURE:
            whole = box.area > 0.5 * width * height and len(inside) > 2
            if not whole and sum(line.box.area for line in inside) < _MOST_TEXT * box.area:
                pictures.append(box)
            else:
                text += inside
        elif label == Label.TABLE and (grid := make_grid(words, (), gap=0)):
            tables.append(Table(bounding([box, *(w.box for w in words)]), to_html(grid), frozenset()))
        else:
            text += [replace(line, label=None if label == Label.TABLE else label, area=box) for line in inside]
    # Tables the layout model has missed (it was not run, or takes them for text).
    unlabelled = [w for line in text if line.label in (None, Label.TEXT) for w in line.words]
    missed = find_tables(unlabelled, (), gap=0)
    in_missed = {unlabelled[i].box for table in missed for i in table.words}
    text = [line for line in text if line.words[0].box not in in_missed]
    return page_regions(text, [*tables, *missed], pictures, height)


def _same_sizes(lines: list[Line]) -> list[Line]:
    """Sizes waver: lines within an eighth of the usual size have the usual size, and so have lines that spaces stretch
    to the same edges as others (justified text)."""
    if not lines:
        return []
    sizes = sorted(line.size for line in lines)
    usual = sizes[len(sizes) // 2]

    def is_usual(line: Line) -> bool:
        if abs(line.size - usual) < 0.125 * usual:
            return True
        box = line.box
        beside = [n for n in lines if abs(n.box.x0 - box.x0) < 0.5 * usual and abs(n.box.x1 - box.x1) < 0.5 * usual]
        return usual < line.size < 1.6 * usual and len(line.text.split()) > 3 and len(beside) > 2

    return [
        replace(line, words=tuple(replace(w, size=usual) for w in line.words)) if is_usual(line) else line
        for line in lines
    ]


def _vertical(line: Line) -> bool:
    """Chinese or Japanese written from top to bottom."""
    return line.box.height > 2 * line.box.width and len(line.text) > 2 and is_cjk(line.text[0])


def _vertical_regions(columns: list[Line], others: list[Line]) -> list[Region]:
    """Vertical lines are read from right to left, as one text; what stands across them (headings, menus) around it."""
    columns = sorted(columns, key=lambda line: -line.box.x1)
    body = Region(bounding(line.box for line in columns), Label.TEXT, join_lines(columns))
    rest = [Region(line.box, Label.TEXT, line.text) for line in sorted(others, key=lambda line: line.box.y0)]
    above = [r for r in rest if r.box.y0 < body.box.y0]
    return [*above, body, *(r for r in rest if r not in above)]


def mean_inside(box: Box, scores: dict[Box, float]) -> float | None:
    values = [score for line, score in scores.items() if overlap(line, box) > 0.9]
    return sum(values) / len(values) if values else None


def notes_on(lines: list[Line]) -> tuple[str, ...]:
    words = " ".join(line.text for line in lines if line.text.isascii()).split()
    if len(words) > 20 and sum(map(len, words)) / len(words) > 9:
        return ("OCR has left out many spaces",)
    return ()
