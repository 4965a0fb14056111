"""`region`: Stage 1 only. Regions are read one by one and joined in the drafter's order (first version of the paper).

What the drafter missed or ordered wrongly stays missed and wrong: the page itself is never read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hsdkit_plugins.verifiers.common import SpeculativeConfig, crops_of, region_stage

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.protocols import Engine, OnText, Target, Verdict
from hsdkit.regions import Draft
from hsdkit.results import FinishReason

if TYPE_CHECKING:
    from hsdkit.documents import Page

#: The finish reason of a page is the worst of its regions'.
_WORST: tuple[FinishReason, ...] = ("time", "length", "loop", "eos")


@dataclass(frozen=True)
class RegionConfig(SpeculativeConfig):
    """Options of `region`.

    region_margin: pixels by which a region's box grows on each side before it is cropped (paper: 5).
    """

    region_margin: float = 5.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.region_margin < 0:
            raise ValueError(f"region_margin={self.region_margin}: must not be negative")


class RegionLevel:
    name = "region"
    uses_draft = True
    exact = False  # the model reads crops, never the page

    def __init__(self, config: RegionConfig) -> None:
        self.settings = config.settings
        self._margin = config.region_margin

    def verify(
        self, page: Page, draft: Draft, target: Target, engine: Engine, on_text: OnText | None = None
    ) -> Verdict:
        """An empty text when there is no region to read: without a draft this verifier has nothing to look at."""
        crops = crops_of(page, draft, target, self._margin)
        if not crops:
            why = "nothing was read: the draft has no region with text, and verifier=region reads regions only"
            return Verdict("", "eos", (), (why,))
        stage = region_stage(page, draft, crops, target, engine, self.settings)
        text = "\n\n".join(t for s in stage.sequences if (t := s.text.strip()))
        if on_text is not None:
            on_text(0, text)
        reasons = {s.finish_reason for s in stage.sequences}
        return Verdict(text, next(r for r in _WORST if r in reasons), (stage,), target.notes(page.image))


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [
        Component(
            kind="verifier",
            name="region",
            summary="Stage 1 only: regions read in one batch, joined in the drafter's order",
            config=RegionConfig,
            factory=RegionLevel,
        )
    ]
