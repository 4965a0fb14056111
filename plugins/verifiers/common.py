"""What verifiers share: their options, and the two stages as one function each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

from hsdkit.protocols import DecodeRequest, DecodeSettings, Engine, OnText, Target, Verdict
from hsdkit.regions import Box, Draft
from hsdkit.results import StageResult

if TYPE_CHECKING:
    from hsdkit.documents import Page


@dataclass(frozen=True)
class PlainConfig:
    """Options of every verifier.

    max_new_tokens: limit for one sequence, a page or a region: a page's budget of tokens.
    stop_loops: end a sequence that only goes on repeating itself.
    """

    max_new_tokens: int = 4096
    stop_loops: bool = True

    def __post_init__(self) -> None:
        if problem := self.settings.problem:
            raise ValueError(problem)

    @property
    def settings(self) -> DecodeSettings:
        """The decoding settings these options spell; without drafts and look-up, so one token a step."""
        return DecodeSettings(
            max_packed=1, self_lookup=False, max_new_tokens=self.max_new_tokens, stop_loops=self.stop_loops
        )


@dataclass(frozen=True)
class SpeculativeConfig(PlainConfig):
    """Options of verifiers that speculate.

    tau: accept a draft token whose probability is at least `tau` times that of the model's own choice (paper, section
        3.2); 1 is exact: the output is that of plain decoding. The paper's setting is 0.75.
    matching: how drafts are looked up: `aligned` follows the draft being read, `paper` looks for the last n tokens,
        `suffix` for the longest suffix of the output (suffix trees of arctic-inference, a baseline).
    n: tokens of the reference window of `paper`; in `aligned`, longest n-gram looked up in what the model has written.
    max_packed: most tokens verified in a step (paper: 128); `auto` spends as many as their measured cost justifies.
    self_lookup: also draft from what the model has written already.
    """

    tau: float = 1.0
    matching: Literal["aligned", "paper", "suffix"] = "aligned"
    n: int = 3
    max_packed: int | str = "auto"
    self_lookup: bool = True

    @property
    def settings(self) -> DecodeSettings:
        shared = {f.name for f in fields(DecodeSettings)}
        return DecodeSettings(**{f.name: getattr(self, f.name) for f in fields(self) if f.name in shared})


def page_stage(
    page: Page,
    drafts: Sequence[str],
    target: Target,
    engine: Engine,
    settings: DecodeSettings,
    on_text: OnText | None = None,
) -> StageResult:
    """Decode the page from its whole image (paper: Stage 2), with `drafts` in the target's syntax, in reading order."""
    request = DecodeRequest(
        target.view(page.image), target.prompt(None), tuple(d for d in drafts if d), target.separator
    )
    decoded = engine.decode([request], settings, on_text)
    return StageResult("page", decoded.sequences, decoded.times, decoded.forwards)


def page_verdict(
    stage: StageResult, page: Page, target: Target, notes: Sequence[str] = (), before: Sequence[StageResult] = ()
) -> Verdict:
    """The page stage's output as the verdict, after the stages `before` it."""
    (sequence,) = stage.sequences
    return Verdict(sequence.text, sequence.finish_reason, (*before, stage), (*target.notes(page.image), *notes))


class WholePage:
    """A verifier of the page stage alone, which drafts from the drafter's own text if it `uses_draft`."""

    name: str
    uses_draft = False

    def __init__(self, config: PlainConfig) -> None:
        self.settings = config.settings

    def verify(
        self, page: Page, draft: Draft, target: Target, engine: Engine, on_text: OnText | None = None
    ) -> Verdict:
        drafts = target.page_drafts(draft.regions, page.image) if self.uses_draft else ()
        return page_verdict(page_stage(page, drafts, target, engine, self.settings, on_text), page, target)


@dataclass(frozen=True, slots=True)
class Crop:
    """A region to read: its index in the draft, its crop's box (whole or part pixels, within the page), its draft in
    the target's syntax."""

    index: int
    box: Box
    draft: str

    def tokens(self, target: Target) -> int:
        """How many tokens the draft makes."""
        return max(1, len(target.tokenizer(self.draft)["input_ids"]))


def crops_of(page: Page, draft: Draft, target: Target, margin: float) -> list[Crop]:
    """The readable regions in drafter order, boxes grown by `margin` pixels and cut at the page's edges; those outside
    the page are left out."""
    crops = []
    for index, region in enumerate(draft.regions):
        box = region.box.grown(margin).clamped(page.width, page.height)
        inside = region.box.clamped(page.width, page.height)
        if region.readable and inside.area > 0 and (text := target.render(region)):
            crops.append(Crop(index, box, text))
    return crops


def region_stage(
    page: Page, draft: Draft, crops: Sequence[Crop], target: Target, engine: Engine, settings: DecodeSettings
) -> StageResult:
    """Decode all crops in one batch, each with its own region's draft (paper: Stage 1)."""
    requests = [
        DecodeRequest(target.crop(page.image, c.box), target.prompt(draft.regions[c.index].label), (c.draft,))
        for c in crops
    ]
    decoded = engine.decode(requests, settings)
    return StageResult("regions", decoded.sequences, decoded.times, decoded.forwards, tuple(c.index for c in crops))
