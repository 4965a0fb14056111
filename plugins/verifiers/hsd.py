"""`hsd`: Hierarchical Speculative Decoding. Stage 1 reads the regions, Stage 2 the page, drafting from Stage 1."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from hsdkit_plugins.verifiers.common import Crop, crops_of, page_stage, page_verdict, region_stage
from hsdkit_plugins.verifiers.forecast import Expectations, ImageCost, wrong_characters
from hsdkit_plugins.verifiers.region import RegionConfig

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.deadline import half_time, is_over
from hsdkit.errors import ConfigError, described
from hsdkit.protocols import DecodeRequest, Engine, OnText, Target, Verdict
from hsdkit.regions import Draft
from hsdkit.results import StageResult

if TYPE_CHECKING:
    from hsdkit.documents import Page

log = logging.getLogger("hsdkit.verifiers.hsd")


@dataclass(frozen=True)
class HSDConfig(RegionConfig):
    """Options of `hsd`.

    stage1: whether regions are read before the page. `auto`: where a forecast says that it is faster than drafting the
        page from the drafter's own text; `always` (as in the paper); `never` (then it is `page`). Pages with fewer than
        two regions to read never have a Stage 1.
    """

    stage1: Literal["auto", "always", "never"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stage1 not in ("auto", "always", "never"):
            raise ValueError(f"stage1={self.stage1}: must be auto, always or never")


class HSD:
    name = "hsd"
    uses_draft = True

    def __init__(self, config: HSDConfig) -> None:
        self.settings = config.settings
        self._stage1 = config.stage1
        self._margin = config.region_margin
        self._expectations = Expectations()
        self._learning = threading.Lock()
        self._image_cost: ImageCost | None = None

    def verify(
        self, page: Page, draft: Draft, target: Target, engine: Engine, on_text: OnText | None = None
    ) -> Verdict:
        crops = crops_of(page, draft, target, self._margin)
        why_not = self._why_not(page, draft, crops, target, engine)
        before: list[StageResult] = []
        read: dict[int, str] = {}
        if why_not is None:
            try:
                first = self._read_regions(page, draft, crops, target, engine)
                before, read = [first], _read(crops, first)
            except ConfigError:
                raise
            except Exception as e:  # a batch of crops may not fit into memory where the page alone does
                log.debug("Stage 1 failed", exc_info=True)
                why_not = f"Stage 1 failed, the page was read with the drafter's text: {described(e)}"
        drafts = target.page_drafts(draft.regions, page.image, read)
        stage = page_stage(page, drafts, target, engine, self.settings, on_text)
        if drafts and self._stage1 == "auto":  # a fixed choice needs no forecast, and none of its measurements
            wrong = None if before else wrong_characters(draft.readable)
            with self._learning:
                self._expectations.learn(stage, page.width * page.height, wrong, engine)
        return page_verdict(stage, page, target, (why_not,) if why_not else (), before)

    def _why_not(self, page: Page, draft: Draft, crops: Sequence[Crop], target: Target, engine: Engine) -> str | None:
        """Why the page is read without reading its regions first; None when they are read, "" when nobody need know."""
        if self._stage1 == "never" or not crops:
            return ""
        if len(crops) < 2:
            return "Stage 1 left out: the draft has only one region to read"
        if is_over(engine):
            return "Stage 1 left out: the page's time (page_seconds) was over before"
        if self._stage1 == "always":
            return None
        regions = [(draft.regions[c.index], c.tokens(target)) for c in crops]
        if self._image_cost is None:
            self._image_cost = _image_cost(page, draft, crops, target)
        paper = float(page.width * page.height)
        area = paper * sum(self._image_cost.share(c.box.area / paper) for c in crops)
        forecast = self._expectations.forecast(
            engine, regions, area, self._image_cost.page_tokens * area / paper, self.settings.max_new_tokens
        )
        if forecast.pays:
            return None
        return (
            f"Stage 1 left out: reading {len(crops)} regions first should take {forecast.staged:.2g} s, the page "
            f"with the drafter's text {forecast.alone:.2g} s (verifier.stage1=always reads them all the same)"
        )

    def _read_regions(
        self, page: Page, draft: Draft, crops: Sequence[Crop], target: Target, engine: Engine
    ) -> StageResult:
        """Stage 1. A crop that sends the model astray must not cost more than the page: texts much longer than their
        drafts are given up, and all that are not done when half of the page's time is over."""
        longest = max(c.tokens(target) for c in crops)
        limit = min(self.settings.max_new_tokens, 64 + 2 * longest)
        settings = replace(self.settings, max_new_tokens=limit, deadline=half_time(engine))
        return region_stage(page, draft, crops, target, engine, settings)


def _image_cost(page: Page, draft: Draft, crops: Sequence[Crop], target: Target) -> ImageCost:
    """From the page and its smallest crop."""

    def tokens(request: DecodeRequest) -> int:
        return int(target.inputs([request])["input_ids"].shape[1])

    least = min(crops, key=lambda c: c.box.area)
    prompt = target.prompt(draft.regions[least.index].label)
    whole = tokens(DecodeRequest(target.view(page.image), target.prompt(None)))
    part = tokens(DecodeRequest(target.crop(page.image, least.box), prompt))
    return ImageCost.between(whole, part, least.box.area / (page.width * page.height))


def _read(crops: Sequence[Crop], stage: StageResult) -> dict[int, str]:
    """What the model read in each crop, by region; crops where it did not come to an end or found nothing are left to
    the drafter's own text."""
    texts = ((c.index, s.text.strip()) for c, s in zip(crops, stage.sequences, strict=True) if s.finish_reason == "eos")
    return {index: text for index, text in texts if text}


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [
        Component(
            kind="verifier",
            name="hsd",
            summary="Hierarchical Speculative Decoding: regions in one batch, then the page",
            config=HSDConfig,
            factory=HSD,
        )
    ]
