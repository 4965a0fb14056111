"""The order in which a person reads boxes on a page: an XY-cut that keeps columns together.

The page is cut into horizontal bands at white space that crosses it. Neighbouring bands are joined as long as one
gutter runs through all of them, so that columns whose paragraphs happen to end at the same height stay columns, while a
heading across both of them ends the run. What has a gutter is cut there, left part first; each part is ordered the same
way.
"""

from __future__ import annotations

from collections.abc import Sequence

from hsdkit.regions import Box

#: How far boxes may overlap and still be apart, as a part of the smaller side, and at most in pixels.
_OVERLAP, _OVERLAP_PIXELS = 0.2, 6.0

#: A column fills this part of the height it runs along, and takes this part of the width: less are remarks beside the
#: text, such as equation numbers, line numbers or dates.
_FILLED, _WIDE = 0.4, 0.12

#: White space above a band, in its heights, that ends columns unless the band has text in several of them.
_FAR = 2.5

#: More boxes than this in one tangle are not a layout: they are read by row.
_MOST_TANGLED = 100

Span = tuple[float, float]


def reading_order(boxes: Sequence[Box], gutter: float = 1.0) -> list[int]:
    """Indices of `boxes` in reading order: top to bottom, columns from left to right.

    `gutter` is the least width in pixels of the white space between two columns. Boxes may overlap.
    """
    return _ordered(list(range(len(boxes))), boxes, gutter)


def _ordered(indices: list[int], boxes: Sequence[Box], gutter: float) -> list[int]:
    if len(indices) < 2:
        return indices
    groups = _groups(_bands(indices, boxes), boxes, gutter)
    if len(groups) > 1:
        return [i for group in groups for i in _ordered(group, boxes, gutter)]
    columns = _cut(indices, boxes, gutter)
    if len(columns) > 1:
        return [i for column in columns for i in _ordered(column, boxes, gutter)]
    return _tangled(indices, boxes, gutter)


def _bands(indices: list[int], boxes: Sequence[Box]) -> list[list[int]]:
    """Runs of boxes between white space that crosses the page, top to bottom."""
    bands: list[list[int]] = []
    bottom = float("-inf")
    for i in sorted(indices, key=lambda i: (boxes[i].y0, boxes[i].x0, i)):
        top, end = _shrunk(boxes[i].y0, boxes[i].y1)
        if top >= bottom:
            bands.append([])
        bands[-1].append(i)
        bottom = max(bottom, end)
    return bands


def _groups(bands: list[list[int]], boxes: Sequence[Box], gutter: float) -> list[list[int]]:
    """Neighbouring bands joined while columns run through them: from a band with text in several columns downwards, and
    upwards over what lies within one of them."""
    groups: list[list[int]] = []
    k = 0
    while k < len(bands):
        group, spans = list(bands[k]), _spans(bands[k], boxes, gutter)
        k += 1
        if len(spans) > 1:
            while k < len(bands) and (wider := _joined(group, spans, bands[k], boxes, gutter)):
                spans = wider
                group += bands[k]
                k += 1
            while groups and _within(groups[-1], spans, boxes) and _joined(groups[-1], spans, group, boxes, gutter):
                group = groups.pop() + group
        groups.append(group)
    return groups


def _joined(
    above: list[int], spans: list[Span], band: list[int], boxes: Sequence[Box], gutter: float
) -> list[Span] | None:
    """The spans of both together when columns run through them, else `None`."""
    own = _spans(band, boxes, gutter)
    union = _merged(spans + own, gutter)
    # A lone heading far below columns starts something new.
    near = len(own) > 1 or _drop(above, band, boxes) < _FAR
    return union if near and len(union) > 1 and _columns_filled(above + band, union, boxes) else None


def _within(band: list[int], spans: list[Span], boxes: Sequence[Box]) -> bool:
    """Whether all of the band lies in one of the columns."""
    return any(all(boxes[i].x0 > left - 8 and boxes[i].x1 < right + 8 for i in band) for left, right in spans)


def _drop(above: list[int], band: list[int], boxes: Sequence[Box]) -> float:
    """The white space between a group and the next band, in heights of the band's lowest box."""
    space = min(boxes[i].y0 for i in band) - max(boxes[i].y1 for i in above)
    return space / max(1.0, min(boxes[i].height for i in band))


def _columns_filled(indices: list[int], spans: list[Span], boxes: Sequence[Box]) -> bool:
    """Whether what stands at every span is a column, not remarks beside the text."""
    width = spans[-1][1] - spans[0][0]
    for span, members in zip(spans, _parted(indices, spans, boxes), strict=True):
        if not members or span[1] - span[0] < _WIDE * width:
            return False
        extent = max(boxes[i].y1 for i in members) - min(boxes[i].y0 for i in members)
        if sum(boxes[i].height for i in members) < _FILLED * extent:
            return False
    return True


def _parted(indices: list[int], spans: list[Span], boxes: Sequence[Box]) -> list[list[int]]:
    """The boxes at each span, by their middle."""
    parts: list[list[int]] = [[] for _ in spans]
    for i in indices:
        middle = (boxes[i].x0 + boxes[i].x1) / 2
        parts[min(range(len(spans)), key=lambda s: _distance(spans[s], middle))].append(i)
    return parts


def _distance(span: Span, x: float) -> float:
    return max(span[0] - x, x - span[1], 0.0)


def _cut(indices: list[int], boxes: Sequence[Box], gutter: float) -> list[list[int]]:
    """The boxes left and right of each gutter."""
    return [c for c in _parted(indices, _spans(indices, boxes, gutter), boxes) if c]


def _spans(indices: list[int], boxes: Sequence[Box], gutter: float) -> list[Span]:
    return _merged([_shrunk(boxes[i].x0, boxes[i].x1) for i in indices], gutter)


def _merged(spans: list[Span], gutter: float) -> list[Span]:
    """Sorted spans, those less than a gutter apart joined."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start - merged[-1][1] < gutter:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def _shrunk(start: float, end: float) -> Span:
    by = min(_OVERLAP * (end - start) / 2, _OVERLAP_PIXELS / 2)
    return start + by, end - by


def _tangled(indices: list[int], boxes: Sequence[Box], gutter: float) -> list[int]:
    """Boxes that overlap so that no straight cut parts them: order them without the largest, then put that in before
    the first box that starts below it."""
    by_row = sorted(indices, key=lambda i: (boxes[i].y0, boxes[i].x0, i))
    if len(indices) > _MOST_TANGLED:
        return by_row
    if len(indices) == 2:
        first, second = by_row
        same_row = boxes[second].y0 < (boxes[first].y0 + boxes[first].y1) / 2
        return [second, first] if same_row and boxes[second].x0 < boxes[first].x0 else by_row
    largest = max(indices, key=lambda i: (boxes[i].area, -i))
    rest = _ordered([i for i in indices if i != largest], boxes, gutter)
    after = next((k for k, i in enumerate(rest) if boxes[i].y0 > boxes[largest].y0), len(rest))
    return [*rest[:after], largest, *rest[after:]]
