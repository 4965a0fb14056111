"""Running headers, footers and page numbers, told from one page alone: what stands by itself at its edges."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hsdkit_plugins.drafters._lines import Line

from hsdkit.regions import Label, Region

#: Where running titles stand, as parts of the page's height; with a page number among them they may be further inside.
_TOP, _BOTTOM = 0.09, 0.92
_TOP_NUMBERED, _BOTTOM_NUMBERED = 0.16, 0.86
#: A page number all by itself may stand above a wide margin.
_TOP_ALONE, _BOTTOM_ALONE = 0.2, 0.75
_NUMBER = re.compile(r"[-–—]?\s*(page\s+)?(\d{1,4}|[ivxlc]{1,6})(\s*(of|/)\s*\d{1,4})?\s*[-–—]?", re.I)


def part_furniture(lines: Sequence[Line], height: float) -> tuple[list[Line], list[Region]]:
    """The lines without furniture, and the furniture as regions. Careful: a line is only taken when it stands apart
    from the text by more than lines do, is no larger than the text, which must be there, and not bold as headings."""
    taken = {k: Region(n.box, n.label, n.text) for k, n in enumerate(lines) if n.label in (Label.HEADER, Label.FOOTER)}
    sizes = sorted(line.size for line in lines)
    body = sizes[len(sizes) // 2] if sizes else 0.0
    for at_top in (True, False) if len(lines) > 5 else ():
        for k in _edge(lines, height, body, at_top):
            text, box = lines[k].text, lines[k].box
            label = Label.HEADER if at_top else Label.FOOTER
            taken[k] = Region(box, Label.PAGE_NUMBER if _NUMBER.fullmatch(text) else label, text)
    return [n for k, n in enumerate(lines) if k not in taken], list(taken.values())


def _edge(lines: Sequence[Line], height: float, body: float, at_top: bool) -> list[int]:
    """Indices of the lines at the top or bottom edge that a white space parts from the rest."""
    order = sorted(range(len(lines)), key=lambda k: lines[k].box.y0 if at_top else -lines[k].box.y1)
    for count in range(min(6, len(order) - 5), 0, -1):
        edge, inside = order[:count], order[count:]
        numbers = [_NUMBER.fullmatch(lines[k].text) is not None for k in edge]
        top, bottom = (
            (_TOP_ALONE, _BOTTOM_ALONE)
            if all(numbers)
            else (_TOP_NUMBERED, _BOTTOM_NUMBERED)
            if any(numbers)
            else (_TOP, _BOTTOM)
        )
        if at_top:
            limit = max(lines[k].box.y1 for k in edge)
            gap, within = min(lines[k].box.y0 for k in inside) - limit, limit < top * height
        else:
            limit = min(lines[k].box.y0 for k in edge)
            gap, within = limit - max(lines[k].box.y1 for k in inside), limit > bottom * height
        small = all(lines[k].size <= 1.1 * body and len(lines[k].text) < 150 for k in edge)
        small = small and all(n or lines[k].share("bold") < 0.9 for k, n in zip(edge, numbers, strict=True))
        if within and small and gap > (0.7 if all(numbers) else 0.9) * body:
            return edge
    return []
