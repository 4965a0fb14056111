"""Displayed formulas come in pieces (numerators, limits, roots): here they become one region each.

The text is what the file has, seldom what LaTeX would say; the region's box is what matters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hsdkit_plugins.drafters._lines import bounding

from hsdkit.regions import Box, Label, Region

#: Two words in a row, or a few characters of Chinese, Japanese or Korean: language, not a formula.
_WORDS = re.compile(r"[^\W\d_]{3,}[ ,]+[^\W\d_]{3,}|^[^\W\d_]{4,}\W*$|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{3,}")


def formulas_whole(regions: Sequence[Region], size: float) -> list[Region]:
    """Regions with neighbours that are short, no words, and less than two thirds of a font `size` apart joined."""
    whole: list[Region] = []
    for region in regions:
        last = whole[-1] if whole else None
        if last and _is_piece(last) and _is_piece(region) and _near(last.box, region.box, size):
            box, text = bounding((last.box, region.box)), f"{last.text} {region.text}"
            whole[-1] = Region(box, Label.FORMULA, text)
        else:
            whole.append(region)
    return whole


def _is_piece(region: Region) -> bool:
    if region.label == Label.FORMULA:
        return len(region.text) < 200
    return region.label in (Label.TEXT, Label.HEADING) and len(region.text) < 30 and not _WORDS.search(region.text)


def _near(a: Box, b: Box, size: float) -> bool:
    x = max(a.x0, b.x0) - min(a.x1, b.x1)
    y = max(a.y0, b.y0) - min(a.y1, b.y1)
    return x < 0.67 * size and y < 0.67 * size
