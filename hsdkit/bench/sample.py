"""One measurement: one side, one page, one round; and where its output first departs from the baseline's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hsdkit.results import FinishReason, StageResult, final_stage


@dataclass(frozen=True, slots=True)
class Difference:
    """The outputs agree in `at` tokens; then the baseline goes on with the text `baseline`, the side with `other`."""

    at: int
    baseline: str
    other: str


@dataclass(frozen=True, slots=True)
class Output:
    """What a side made of a page, and the wall seconds `verify` it took from page image and draft to tokens. `text` is
    the raw output of a verifier."""

    tokens: tuple[int, ...]
    finish_reason: FinishReason
    stages: tuple[StageResult, ...]
    verify: float
    text: str = ""

    @property
    def page_prefill(self) -> float:
        """Image encoding and prefill of the page itself, which every side pays."""
        return sum(s.times.encode + s.times.prefill for s in self.stages if s.name == "page")


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds of one page in one round. `render` (page to image) and, for sides that draft, `draft` are measured once
    a page and round, and count for each side."""

    document: str
    page: int
    round: int
    side: str
    render: float
    draft: float
    output: Output
    difference: Difference | None = None

    @property
    def e2e(self) -> float:
        """Page latency: rendering, drafting, image encoding, prefill and decoding."""
        return self.render + self.draft + self.output.verify

    @property
    def decode(self) -> float:
        """Drafting and verification: all but rendering and the encoding and prefill of the page itself. The encoding
        and prefill of region crops are part of it: they are a price of speculation."""
        return self.draft + self.output.verify - self.output.page_prefill


def page_tokens(stages: Sequence[StageResult]) -> tuple[int, ...]:
    """What was written for the page itself."""
    final = final_stage(stages)
    return tuple(t for s in final.sequences for t in s.tokens) if final else ()


def difference(
    baseline: Sequence[int], other: Sequence[int], text: Callable[[Sequence[int]], str], shown: int = 12
) -> Difference | None:
    """Where two token sequences first differ, with the next `shown` tokens of each as text; None when they do not."""
    if tuple(baseline) == tuple(other):
        return None
    shortest = min(len(baseline), len(other))
    at = next((i for i in range(shortest) if baseline[i] != other[i]), shortest)
    return Difference(at, text(baseline[at : at + shown]), text(other[at : at + shown]))
