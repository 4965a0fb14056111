"""What the readers of PDF and image files hand over: a page's image, and how large it may be."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from PIL.Image import Image

    from hsdkit.textlayer import TextLayer

#: Longest side of a page image: image libraries count rows in 16 bits in places.
MAX_SIDE = 30_000


@dataclass(frozen=True, slots=True)
class PageImage:
    """A page as a file reader hands it over: RGB image, its resolution, remarks, how to read its text layer and how to
    make a PDF of the page alone."""

    image: Image
    dpi: float
    notes: tuple[str, ...] = ()
    read_text: Callable[[], TextLayer] | None = None
    read_pdf: Callable[[], bytes] | None = None


class PageReader(Protocol):
    """An open file of pages; `index` counts from 0. `page` raises `DocumentError` for a page that cannot be read."""

    count: int

    def page(self, index: int) -> PageImage: ...

    def close(self) -> None: ...


def bounded_scale(width: float, height: float, scale: float, max_pixels: int) -> float:
    """The largest factor up to `scale` at which a `width` x `height` page, sides rounded up, is within `max_pixels`."""
    scale = min(scale, MAX_SIDE / max(width, height))
    pixels = max(1.0, width * scale) * max(1.0, height * scale)
    if pixels > max_pixels:
        # A side that has shrunk to one pixel cannot shrink further: then only the other side gives.
        scale = min(scale * (max_pixels / pixels) ** 0.5, max_pixels / max(width, height))
    while math.ceil(width * scale) * math.ceil(height * scale) > max_pixels:
        scale *= 0.995
    return scale
