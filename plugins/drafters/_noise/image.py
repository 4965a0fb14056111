"""Image noise: the page as a poor scanner would hand it to the drafter. The target sees the page as it is."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hsdkit_plugins.drafters._noise.seeds import share

from hsdkit.regions import Box

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image


@dataclass(frozen=True)
class ImageNoise:
    """blur: radius of a Gaussian blur, in pixels of the page image.
    noise: standard deviation of Gaussian noise, in grey levels (of 255).
    jpeg: how hard the page is compressed, 0 (not at all) to 99; the JPEG quality is 100 minus this.
    resolution: share of the resolution that is lost: 0.5 scales the page down to half its size and up again.
    skew: degrees by which the page is turned clockwise, -45 to 45; the boxes of the draft are turned back.
    contrast: share of the contrast that is lost.
    """

    blur: float = 0.0
    noise: float = 0.0
    jpeg: int = 0
    resolution: float = 0.0
    skew: float = 0.0
    contrast: float = 0.0

    def __post_init__(self) -> None:
        for name, most in (("blur", 100), ("noise", 255), ("jpeg", 99)):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"image.{name}={getattr(self, name):g}: must be between 0 and {most}")
        if not 0 <= self.resolution <= 0.98:
            raise ValueError(f"image.resolution={self.resolution:g}: must be between 0 and 0.98 (a fiftieth is left)")
        if not -45 <= self.skew <= 45:
            raise ValueError(f"image.skew={self.skew:g}: must be between -45 and 45; rotate=90 turns whole pages")
        share("image.contrast", self.contrast)


def degraded(image: Image, how: ImageNoise, rng: np.random.Generator) -> Image:
    """A degraded copy of an RGB image, of the same size: fading and skew of the paper, then the faults of the scanner
    in the order in which one makes them."""
    from PIL import Image, ImageEnhance, ImageFilter

    size = image.size
    if how.contrast:
        image = ImageEnhance.Contrast(image).enhance(1 - how.contrast)
    if how.skew:
        image = image.rotate(-how.skew, Image.Resampling.BICUBIC, fillcolor=_paper(image))
    if how.blur:
        image = image.filter(ImageFilter.GaussianBlur(how.blur))
    if how.resolution:
        small = [max(1, round(side * (1 - how.resolution))) for side in size]
        image = image.resize((small[0], small[1]), Image.Resampling.BOX).resize(size, Image.Resampling.BICUBIC)
    if how.noise:
        import numpy as np

        values = np.asarray(image, np.float32)
        values = values + how.noise * rng.standard_normal(values.shape, dtype=np.float32)
        image = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    if how.jpeg:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=100 - how.jpeg)
        image = Image.open(file).convert("RGB")
    return image


def turned_upright(box: Box, skew: float, width: int, height: int) -> Box:
    """A box found on the skewed page, where its middle is on the page as it is; its sides stay as long as they are."""
    turn = math.radians(-skew)
    x, y = (box.x0 + box.x1 - width) / 2, (box.y0 + box.y1 - height) / 2
    dx = x * math.cos(turn) - y * math.sin(turn) - x
    dy = x * math.sin(turn) + y * math.cos(turn) - y
    return Box(box.x0 + dx, box.y0 + dy, box.x1 + dx, box.y1 + dy).clamped(width, height)


def _paper(image: Image) -> tuple[int, ...]:
    """The colour of most of the page."""
    import numpy as np

    thumbnail = np.asarray(image.resize((64, 64))).reshape(-1, 3)
    return tuple(int(v) for v in np.median(thumbnail, axis=0))
