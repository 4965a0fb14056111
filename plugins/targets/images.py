"""What a page image goes through before a model's own image processor: RGB, sane shape, scaling, white margins."""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

T = TypeVar("T")

#: Image processors of this family refuse images longer than 200 times their width.
MAX_ASPECT = 180

#: How `text_height` measures: what differs this much from the paper is ink, in so many strips (at least so many pixels
#: and font sizes wide); lower runs are specks; so many runs are text.
_INK, _STRIPS, _NARROWEST, _LETTERS, _SPECK, _ENOUGH = 64, 24, 24, 2.5, 4, 8
_OF_FONT_SIZE = 0.74


def rgb(image: Image) -> Image:
    """RGB, transparent parts white."""
    if image.mode == "RGB":
        return image
    from hsdkit.image_file import to_rgb

    return to_rgb(image)


def padded(image: Image, width: int, height: int) -> Image:
    """White to the right and below, so that pixel coordinates keep their meaning."""
    if image.size == (width, height):
        return image
    from PIL import Image as images

    paper = images.new("RGB", (width, height), (255, 255, 255))
    paper.paste(image, (0, 0))
    return paper


def without_extremes(image: Image) -> Image:
    """At least one side is padded when the other is more than `MAX_ASPECT` times as long."""
    least = math.ceil(max(image.size) / MAX_ASPECT)
    return padded(image, max(image.width, least), max(image.height, least))


class OfLastImage(Generic[T]):
    """A function of an image that remembers what it said of the last one: a page is asked about several times. For each
    thread by itself: pages in flight have one each."""

    def __init__(self, function: Callable[[Image], T]) -> None:
        self._function = function
        self._of_thread = threading.local()

    def __call__(self, image: Image) -> T:
        last: tuple[weakref.ref[Image], T] | None = getattr(self._of_thread, "last", None)
        if last is None or last[0]() is not image:
            last = self._of_thread.last = weakref.ref(image), self._function(image)
        return last[1]


def without_blank_foot(image: Image, margin: int, inked: NDArray[np.bool_] | None = None) -> Image:
    """Cut `margin` pixels below the last ink: blank paper costs a vision tower as much as text. Coordinates keep their
    meaning; an image without ink stays whole. `inked` is `ink(image)` where it is known."""
    import numpy as np

    rows = np.flatnonzero((ink(image) if inked is None else inked).any(axis=1))
    if not len(rows) or rows[-1] + 1 + margin >= image.height:
        return image
    return image.crop((0, 0, image.width, int(rows[-1]) + 1 + margin))


def ink(image: Image) -> NDArray[np.bool_]:
    """(H, W): what differs clearly from the paper."""
    import numpy as np

    grey = np.asarray(image.convert("L")).astype(np.int16)
    return np.abs(grey - int(np.median(grey))) > _INK


def scaled(image: Image, scale: float) -> Image:
    """Resampled with an area filter: text drawn smaller stays as sharp as it can be."""
    if scale == 1.0:
        return image
    from PIL import Image as images

    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, images.Resampling.LANCZOS, reducing_gap=3.0)


def text_height(image: Image, inked: NDArray[np.bool_] | None = None) -> float | None:
    """Font size, in pixels, of most of the text on an image; None when there is hardly any. `inked` is `ink(image)`
    where it is known.

    Measured as the median height of what stands between two white gaps in narrow vertical strips, which is about three
    quarters of the font size (0.70 to 0.78 for sans and serif fonts of 13 to 60 px). Needs no straight columns; rules
    and pictures are outvoted.
    """
    import numpy as np

    inked = ink(image) if inked is None else inked
    width, found = image.width / _STRIPS, None
    # A strip narrower than a few letters shows parts of letters: measure again with wider ones.
    for _ in range(3):
        strips = np.array_split(inked, max(1, int(image.width / max(width, _NARROWEST))), axis=1)
        rows = np.stack([strip.any(axis=1) for strip in strips]).astype(np.int8)
        changes = np.diff(np.pad(rows, ((0, 0), (1, 1))), axis=1)
        begins, ends = np.nonzero(changes == 1), np.nonzero(changes == -1)  # in one order: by strip, then by row
        heights = ends[1] - begins[1]
        heights = heights[heights >= _SPECK]
        if len(heights) < _ENOUGH:
            return found
        found = float(np.median(heights)) / _OF_FONT_SIZE
        if width >= _LETTERS * found:
            break
        width = (_LETTERS + 0.5) * found
    return found


def grid_scale(width: int, height: int, cell: int, max_pixels: int, wanted: float = 1.0) -> float:
    """The largest factor up to `wanted` at which the page, padded to whole cells, has at most `max_pixels`."""

    def area(scale: float) -> int:
        w, h = grid_size(max(1, round(width * scale)), max(1, round(height * scale)), cell)
        return w * h

    scale = min(wanted, math.sqrt(max_pixels / (width * height)))
    while area(scale) > max_pixels and max(width, height) * scale > 1:
        scale *= 0.99
    return scale


def grid_size(width: int, height: int, cell: int, min_pixels: int = 0) -> tuple[int, int]:
    """The smallest size in whole cells that holds `width` x `height` and has at least `min_pixels`."""
    w, h = math.ceil(width / cell) * cell, math.ceil(height / cell) * cell
    if w * h < min_pixels:
        h = math.ceil(min_pixels / w / cell) * cell
    return w, h
