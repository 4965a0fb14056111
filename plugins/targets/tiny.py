"""`tiny`: the embedded model, a few million parameters trained from scratch, whose weights ship with hsdkit.

It reads printed English pages and needs neither a GPU nor a download. Nothing here depends on its architecture: the
checkpoint folder says what it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.images import grid_scale, grid_size, padded, rgb, scaled, without_extremes
from hsdkit_plugins.targets.transformers_target import CheckpointConfig, TransformersTarget

from hsdkit.components import Component, Requirement
from hsdkit.hookspecs import hookimpl
from hsdkit.regions import Box, Label

if TYPE_CHECKING:
    from PIL.Image import Image

CHECKPOINT = Path(__file__).parent / "tiny_checkpoint"


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
        from dataclasses import replace

        super().__init__(
            replace(config, model=config.model or str(CHECKPOINT)),
            Dialect(tables="html", ascii=True, fence=False),
        )

    def prompt(self, label: Label | None) -> str:
        """It was trained to do one thing, and needs no words for it."""
        return ""

    @property
    def cell(self) -> int:
        """Pixels of a visual token's side."""
        return int(self.image_processor.patch_size * self.image_processor.merge_size)

    def prepare(self, image: Image) -> Image:
        """Scaled down if it is larger than the model reads, and padded with white to whole cells: the processor would
        stretch the image to the grid instead, and blurred text is read worse."""
        least, most = self.pixel_bounds
        image = without_extremes(rgb(image))
        image = scaled(image, grid_scale(image.width, image.height, self.cell, most))
        return padded(image, *grid_size(image.width, image.height, self.cell, least))

    def crop(self, image: Image, box: Box) -> Image:
        """Scaled as the page is, so that its text has the same height."""
        part = super().crop(image, box)
        return scaled(part, grid_scale(image.width, image.height, self.cell, self.pixel_bounds[1]))


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
