"""`tiny`: the embedded model, a few million parameters trained from scratch, whose weights ship with hsdkit.

It reads printed English pages and needs neither a GPU nor a download. Nothing here depends on its architecture: the
checkpoint folder says what it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.images import (
    OfLastImage,
    grid_scale,
    grid_size,
    ink,
    padded,
    rgb,
    scaled,
    text_height,
    without_blank_foot,
    without_extremes,
)
from hsdkit_plugins.targets.transformers_target import CheckpointConfig, TransformersTarget

from hsdkit import hookimpl
from hsdkit.components import Component, Requirement
from hsdkit.regions import Box, Label

if TYPE_CHECKING:
    from PIL.Image import Image

CHECKPOINT = Path(__file__).parent / "tiny_checkpoint"

#: Font size in pixels that it was trained on most, and the bounds outside of which a page is scaled to it. Enlarging
#: helps as well: a visual token holds 16 x 16 px, and of smaller text that is more letters than it can tell apart.
TEXT_HEIGHT, SMALLEST_TEXT, LARGEST_TEXT = 14, 13.0, 15.5
#: What is too small to be read at all is not worth more.
LARGEST_SCALE = 1.6


@dataclass(frozen=True)
class TinyConfig(CheckpointConfig):
    """Options of `tiny`.

    model: another checkpoint of the same kind (for those who train one); empty for the embedded one.
    dpi: at 120, text of 8.5 pt is as high as it was trained on; a page with larger text is scaled down.
    """

    dpi: int = 120


class TinyTarget(TransformersTarget):
    name = "tiny"

    def __init__(self, config: TinyConfig) -> None:
        super().__init__(
            replace(config, model=config.model or str(CHECKPOINT)),
            Dialect(tables="html", fence=False),
        )
        self._ink = OfLastImage(ink)
        self._wanted = OfLastImage(self._measured_scale)
        self._scale = OfLastImage(self._fitting_scale)

    def prompt(self, label: Label | None) -> str:
        """It was trained to do one thing, and needs no words for it."""
        return ""

    @property
    def cell(self) -> int:
        """Pixels of a visual token's side."""
        return int(self.image_processor.patch_size * self.image_processor.merge_size)

    def view(self, image: Image) -> Image:
        """Scaled so that its text is about as high as the text the model was trained on."""
        return scaled(image, self._scale(image))

    def _measured_scale(self, image: Image) -> float:
        """The factor that makes the text as high as it should be."""
        height = text_height(image, self._ink(image))
        if height is None or SMALLEST_TEXT <= height <= LARGEST_TEXT:
            return 1.0
        return min(TEXT_HEIGHT / height, LARGEST_SCALE)

    def _fitting_scale(self, image: Image) -> float:
        """The factor by which a page image is scaled before it is read: what is printed on it has to fit the model."""
        inked = self._inked(image)
        return grid_scale(inked.width, inked.height, self.cell, self.pixel_bounds[1], self._wanted(image))

    def _inked(self, image: Image) -> Image:
        image = rgb(image)
        return without_blank_foot(image, self.cell // 2, self._ink(image))

    def notes(self, image: Image) -> tuple[str, ...]:
        if (scale := self._scale(image)) == self._wanted(image):
            return ()
        return (
            f"page image of {image.width} x {image.height} px is read at {100 * scale:.0f}% of its size, which makes "
            f"its text small: target 'tiny', a demonstration, takes at most {self.pixel_bounds[1]} px (choose another "
            "with target=NAME)",
        )

    def prepare(self, image: Image) -> Image:
        """Scaled down if it is larger than the model takes, and padded with white to whole cells: the processor would
        stretch the image to the grid instead, and blurred text is read worse."""
        least, most = self.pixel_bounds
        image = without_extremes(self._inked(image))
        image = scaled(image, grid_scale(image.width, image.height, self.cell, most))
        return padded(image, *grid_size(image.width, image.height, self.cell, least))

    def crop(self, image: Image, box: Box) -> Image:
        """Scaled as the page is, so that its text has the same height."""
        return scaled(super().crop(image, box), self._scale(image))


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [
        Component(
            kind="target",
            name="tiny",
            summary="embedded small model for printed English pages; CPU, no download",
            config=TinyConfig,
            factory=TinyTarget,
            requires=(Requirement("torch", "hsdkit"), Requirement("transformers", "hsdkit")),
        )
    ]
