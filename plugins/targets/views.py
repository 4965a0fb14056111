"""A page as DeepSeek-OCR and its descendants see it: a square view of the whole, and square tiles of it at more detail.

`transformers` has this as image processors of one mode each, some of them on torchvision only; here every mode works on
PIL images, with the same pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

#: Pixels of a side that become one image token: patches of 16, merged 4 by 4 on the way to the language model.
CELL = 64

#: The paper around a page that is not square.
GREY = (127, 127, 127)


@dataclass(frozen=True, slots=True)
class Mode:
    """A resolution: sides in pixels of the view of the whole page and of tiles (None: no tiles). `stretched`: the page
    fills the view, whatever its shape, instead of lying in the middle of grey paper."""

    side: int
    tile: int | None = None
    stretched: bool = False

    def grid(self, size: tuple[int, int], most: int) -> tuple[int, int]:
        """Columns and rows of tiles for a page of that width and height; (0, 0) where it is seen as a whole only."""
        if self.tile is None or max(size) <= self.tile:
            return 0, 0
        from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import get_optimal_tiled_canvas

        width, height = size
        columns, rows = get_optimal_tiled_canvas((height, width), (self.tile, self.tile), 2, most)
        return int(columns), int(rows)

    def scale(self, size: tuple[int, int], most: int) -> float:
        """Pixels that the model sees for one of the page, across or down, whichever are fewer."""
        columns, rows = self.grid(size, most)
        width, height = size
        if columns and self.tile is not None:
            return min(columns * self.tile / width, rows * self.tile / height)
        return self.side / max(size)


@dataclass(frozen=True, slots=True)
class Views:
    """`whole` (3, S, S), `tiles` (rows * columns, 3, T, T) row by row: float32, -1 black to 1 white."""

    whole: torch.Tensor
    tiles: torch.Tensor | None
    columns: int = 0
    rows: int = 0

    @property
    def cells(self) -> tuple[int, int]:
        """Image tokens along a side of the whole, and of a tile (0 without tiles)."""
        return self.whole.shape[-1] // CELL, 0 if self.tiles is None else self.tiles.shape[-1] // CELL


def views(image: Image, mode: Mode, most: int) -> Views:
    """The views of an RGB image with at most so many tiles."""
    import torch
    from PIL.Image import Resampling

    size = (mode.side, mode.side)
    whole = _pixels(image.resize(size, Resampling.BICUBIC) if mode.stretched else _centred(image, mode.side))
    columns, rows = mode.grid(image.size, most)
    if not columns or mode.tile is None:
        return Views(whole, None)
    tile = mode.tile
    sheet = _pixels(image.resize((columns * tile, rows * tile), Resampling.BICUBIC))
    tiles = [
        sheet[:, row * tile : (row + 1) * tile, column * tile : (column + 1) * tile]
        for row in range(rows)
        for column in range(columns)
    ]
    return Views(whole, torch.stack(tiles), columns, rows)


def _centred(image: Image, side: int) -> Image:
    """As large as fits, in the middle of grey paper."""
    from PIL import Image as images

    scale = side / max(image.size)
    width, height = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    paper = images.new("RGB", (side, side), GREY)
    page = image.resize((width, height), images.Resampling.BICUBIC)
    paper.paste(page, ((side - width) // 2, (side - height) // 2))
    return paper


def _pixels(image: Image) -> torch.Tensor:
    """(3, H, W), mean and deviation 0.5."""
    import numpy as np
    import torch

    values = np.asarray(image, dtype=np.float32) * np.float32(1 / 255)
    return torch.from_numpy((values - np.float32(0.5)) / np.float32(0.5)).permute(2, 0, 1)
