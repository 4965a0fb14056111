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

#: Font size in pixels it reads best, and from which on a page is scaled down to it (it was trained on 11 to 16 px).
TEXT_HEIGHT, LARGEST_TEXT = 13, 17


@dataclass(frozen=True)
class TinyConfig(CheckpointConfig):
    """Options of `tiny`.

    model: another checkpoint of the same kind (for those who train one); empty for the embedded one.
    dpi: it was trained on text about 13 px high, which is 10 to 11 pt text at 90 dpi.
    """

    dpi: int = 90


class TinyTarget(TransformersTarget):
    name = "tiny"

    def __init__(self, config: TinyConfig) -> None:
        super().__init__(
            replace(config, model=config.model or str(CHECKPOINT)),
            Dialect(tables="html", fence=False),
        )
        self._ink = OfLastImage(ink)
        self._fitting = OfLastImage(self._measured_fit)
        self._scale = OfLastImage(self._measured_scale)

    def prompt(self, label: Label | None) -> str:
        """It was trained to do one thing, and needs no words for it."""
        return ""

    @property
    def cell(self) -> int:
        """Pixels of a visual token's side."""
        return int(self.image_processor.patch_size * self.image_processor.merge_size)

    def view(self, image: Image) -> Image:
        """Scaled so that its text is about as high as the text the model was trained on, if it is much higher."""
        return scaled(image, self._scale(image))

    def _measured_scale(self, image: Image) -> float:
        """The factor by which a page image is scaled before it is read; at most 1: what is too small stays blurred."""
        height = text_height(image, self._ink(image))
        scale = TEXT_HEIGHT / height if height is not None and height > LARGEST_TEXT else 1.0
        return min(scale, self._fitting(image))

    def _measured_fit(self, image: Image) -> float:
        """The factor at which what is printed on the image fits the model."""
        inked = self._inked(image)
        return grid_scale(inked.width, inked.height, self.cell, self.pixel_bounds[1])

    def _inked(self, image: Image) -> Image:
        image = rgb(image)
        return without_blank_foot(image, self.cell // 2, self._ink(image))

    def notes(self, image: Image) -> tuple[str, ...]:
        if (scale := self._scale(image)) == 1.0:
            return ()
        why = (
            f"target 'tiny', a demonstration, takes at most {self.pixel_bounds[1]} px (choose another with target=NAME)"
            if scale == self._fitting(image)
            else f"target 'tiny' reads text of about {TEXT_HEIGHT} px, and this is larger"
        )
        return (f"page image of {image.width} x {image.height} px is read at {100 * scale:.0f}% of its size: {why}",)

    def prepare(self, image: Image) -> Image:
        """Scaled down if it is larger than the model reads, and padded with white to whole cells: the processor would
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
