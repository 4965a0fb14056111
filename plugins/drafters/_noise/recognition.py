"""Recognition noise: the text of the draft's regions as a poor reader would have it. Boxes and order stay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hsdkit_plugins.drafters._noise.characters import misread, without_spaces
from hsdkit_plugins.drafters._noise.lines import with_swapped_cells, without_lines
from hsdkit_plugins.drafters._noise.markup import glyphs, safe
from hsdkit_plugins.drafters._noise.seeds import numbers, share

from hsdkit.regions import Region

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class RecognitionNoise:
    """char_error_rate: share of the printed characters that are read wrongly (edits per character); tags, LaTeX
    commands and list marks are left alone.
    deletions: of these errors, the share in which a character is lost.
    insertions: of these errors, the share in which a character is added; in the rest one is taken for another that
    looks like it.
    space_loss: share of the spaces between words that are lost.
    line_loss: share of the printed lines (of lists: items; of HTML tables: rows) that are lost.
    cell_swaps: share of the cells of HTML tables that hold what belongs into the cell beside.
    """

    char_error_rate: float = 0.0
    deletions: float = 0.15
    insertions: float = 0.1
    space_loss: float = 0.0
    line_loss: float = 0.0
    cell_swaps: float = 0.0

    def __post_init__(self) -> None:
        for name in ("char_error_rate", "deletions", "insertions", "space_loss", "line_loss", "cell_swaps"):
            share(f"recognition.{name}", getattr(self, name))
        if self.deletions + self.insertions > 1:
            total = f"{self.deletions + self.insertions:g}"
            raise ValueError(f"recognition.deletions and .insertions: shares of all errors, together {total}, above 1")


def misread_region(region: Region, how: RecognitionNoise, seed: int, page: str, index: int) -> Region:
    """`index` is the region's place in the draft that the base drafter made."""

    def rng(purpose: str) -> np.random.Generator:
        return numbers(seed, page, purpose, index)

    if not region.text:
        return region
    if how.line_loss:
        region = replace(region, text=without_lines(region, how.line_loss, rng("lines")))
    if how.cell_swaps and region.format == "html":
        region = replace(region, text=with_swapped_cells(region.text, how.cell_swaps, rng("cells")))
    if not region.text or not (how.space_loss or how.char_error_rate):
        return region
    pieces = glyphs(region)
    if how.space_loss:
        pieces = without_spaces(pieces, how.space_loss, rng("spaces"))
    text = misread(pieces, how.char_error_rate, how.deletions, how.insertions, safe(region.format), rng("characters"))
    return replace(region, text=text)
