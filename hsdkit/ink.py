"""How much is printed on a page, told from its ink alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

#: Ink outline of one character, squared, over its ink area; measured on born-digital pages at 72 to 144 dpi.
_OUTLINE_PER_CHARACTER = 56.0

#: A page denser than this is a picture, not text: characters of 6 x 9 pixels, edge to edge.
_SMALLEST_CHARACTER = 54.0


def characters_on(image: Image) -> float:
    """`printed_characters` of a page image."""
    return printed_characters(np.asarray(image.convert("L")))


def printed_characters(grey: NDArray[np.uint8]) -> float:
    """Roughly how many characters are printed on a page: (H, W) luminance; mostly within a factor of two on text.

    The outline of a glyph grows with font size, its ink area with the square, so outline**2 / ink counts glyphs
    whatever the size. Ink is what is clearly darker (or, on a dark page, lighter) than the paper.
    """
    if grey.size == 0:
        return 0.0
    levels = grey.astype(np.int16)
    ink = np.abs(levels - int(np.median(levels))) > 64
    area = int(ink.sum())
    if not area:
        return 0.0
    outline = int((ink[:, 1:] != ink[:, :-1]).sum()) + int((ink[1:] != ink[:-1]).sum())
    return min(outline**2 / area / _OUTLINE_PER_CHARACTER, grey.size / _SMALLEST_CHARACTER)
