"""What decoding a page yields: text, tokens, step records, times, finish reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hsdkit.regions import Draft, Region

#: `eos`: the model ended; `length`: `max_new_tokens`; `time`: `page_seconds`; `loop`: the repetition guard; `error`:
#: nothing decoded.
FinishReason = Literal["eos", "length", "time", "loop", "error"]


@dataclass(frozen=True, slots=True)
class Step:
    """One verification step of one sequence.

    `nodes` draft tokens were verified (the root not counted), the first `accepted` of the walk were kept, and the
    model's own token was appended unless the sequence ended inside the draft (`bonus`). `source` names the matcher
    source of the accepted path ("" when nothing was accepted). `seconds` is the step's wall time, which all
    rows of the batch have in common, those of other pages too.

    `rejected` is how the likeliest draft went on behind the accepted tokens, some tokens of it as text: what the model
    did not write there. "" where nothing was left of it or there was none. With `nodes` 0 it was proposed, and the
    budget had no node for it. None: nobody was asked for a draft (plain decoding), or it is not known (older files).
    """

    nodes: int
    accepted: int
    bonus: bool
    source: str
    seconds: float
    rejected: str | None = None

    @property
    def emitted(self) -> int:
        return self.accepted + self.bonus


@dataclass(frozen=True, slots=True)
class SequenceResult:
    """One decoded sequence (a page or a region crop).

    `tokens` are the emitted ids, a final end token included; the first comes from the prefill, the rest from `steps`.
    `pieces` is the text of each token; joined they are `text`. Of the `prompt_tokens`, `image_tokens` stand for the
    image (0 where the model's config does not say which).
    """

    tokens: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    steps: tuple[Step, ...] = ()
    pieces: tuple[str, ...] = ()
    prompt_tokens: int = 0
    image_tokens: int = 0

    @property
    def aal(self) -> float:
        """Average accepted length: draft tokens accepted per verification step, the bonus token not counted."""
        return sum(s.accepted for s in self.steps) / len(self.steps) if self.steps else 0.0


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Seconds: image preprocessing and vision tower; the rest of the prompt; all verification steps.

    `host` is the part of `decode` spent outside the model: matching, trees, masks, walk, bookkeeping. Of a step that
    several pages had sequences in, each is charged the share of its sequences; waiting for the prompts of others is
    charged to nobody. So the times of all pages add up to those of the machine, and a page decoded alone has its wall
    seconds.
    """

    encode: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    host: float = 0.0

    @property
    def total(self) -> float:
        return self.encode + self.prefill + self.decode


@dataclass(frozen=True, slots=True)
class StageResult:
    """One stage: `regions` (Stage 1, a sequence a region crop, `region_index` into the draft's regions) or `page`."""

    name: Literal["regions", "page"]
    sequences: tuple[SequenceResult, ...]
    times: StageTimes = StageTimes()
    forwards: int = 0
    region_index: tuple[int, ...] = ()

    @property
    def steps(self) -> int:
        return sum(len(s.steps) for s in self.sequences)

    @property
    def tokens(self) -> int:
        return sum(len(s.tokens) for s in self.sequences)

    @property
    def accepted(self) -> int:
        return sum(step.accepted for s in self.sequences for step in s.steps)


def final_stage(stages: Sequence[StageResult]) -> StageResult | None:
    """The stage whose text is the page: the page stage, or where there is none the last (Stage 1's tokens are a means,
    not the product)."""
    return next((s for s in stages if s.name == "page"), stages[-1] if stages else None)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a page of which the first failed.

    `action` is "read" for the first, then what `on_failure` names ("rotate 90" for a page turned clockwise by that);
    `failure` the kind of failure it ended in ("" for none) and `reason` that in words. The page's result is that of the
    attempt that was `kept`.
    """

    action: str
    failure: str = ""
    reason: str = ""
    seconds: float = 0.0
    kept: bool = False


@dataclass(frozen=True, slots=True)
class PageResult:
    """One page. `number` counts from 1 in the source file. `error` is set when the page failed; `text` is the raw model
    output, `markdown` the target's clean-up of it, `regions` what it names with boxes, in page pixels (() for models
    that write no boxes). `tau` is the threshold that made it; `exact` says that the output is that of plain decoding of
    the page (tau is 1, and the model was asked nothing else). `attempts` are all that were made where the first failed,
    () where it did not. `origin` "draft": the text is the drafter's, put in the place of one that the model did not
    write."""

    number: int
    markdown: str = ""
    text: str = ""
    finish_reason: FinishReason = "error"
    verifier: str = ""
    tau: float = 1.0
    width: int = 0
    height: int = 0
    draft: Draft = field(default_factory=Draft)
    stages: tuple[StageResult, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    error: str | None = None
    regions: tuple[Region, ...] = ()
    exact: bool = True
    attempts: tuple[Attempt, ...] = ()
    origin: Literal["model", "draft"] = "model"

    @property
    def saved_by(self) -> str:
        """What of `on_failure` saved the page ("rotate" for all turns); "" where nothing had to, or nothing did."""
        if self.error is not None:
            return ""
        return next((a.action.split()[0] for a in self.attempts[1:] if a.kept), "")

    @property
    def turned(self) -> int:
        """The degrees by which the page was turned clockwise before it was read, by an attempt that saved it; all boxes
        are on the turned page."""
        kept = next((a.action for a in self.attempts if a.kept), "")
        return int(kept.removeprefix("rotate ")) if kept.startswith("rotate ") else 0

    @property
    def steps(self) -> int:
        return sum(s.steps for s in self.stages)

    @property
    def page_tokens(self) -> int:
        """Tokens of the page output itself, without those of the stage before."""
        final = final_stage(self.stages)
        return final.tokens if final else 0

    @property
    def aal(self) -> float:
        return sum(s.accepted for s in self.stages) / self.steps if self.steps else 0.0
