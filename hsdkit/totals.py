"""Pages in numbers: counts, tokens per step, accepted lengths and where the time went; sums of one page or of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hsdkit.results import PageResult


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over pages; memory does not grow with their number.

    `page_tokens` are the tokens of the page outputs, `tokens` those of both stages, `emitted` those that came from the
    `steps` verification steps (all but the first of each sequence), `accepted` those of them that a draft had right.
    `seconds` maps a phase to wall seconds: `draft`, then `encode`, `prefill` and `decode` of each stage, and `other`.
    `accepted_lengths` counts the steps that accepted 0, 1, 2, ... draft tokens, `saved` the pages that another attempt
    saved, by what it was (`hsdkit.policy.Action`).
    """

    pages: int = 0
    failed: int = 0
    page_tokens: int = 0
    tokens: int = 0
    steps: int = 0
    accepted: int = 0
    emitted: int = 0
    wall: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    accepted_lengths: Counter[int] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    saved: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, page: PageResult) -> Totals:
        steps = [step for stage in page.stages for sequence in stage.sequences for step in sequence.steps]
        return cls(
            pages=1,
            failed=int(page.error is not None),
            page_tokens=page.page_tokens,
            tokens=sum(stage.tokens for stage in page.stages),
            steps=len(steps),
            accepted=sum(step.accepted for step in steps),
            emitted=sum(step.emitted for step in steps),
            wall=page.seconds,
            seconds=_phases(page),
            accepted_lengths=Counter(step.accepted for step in steps),
            finish_reasons=Counter([page.finish_reason]),
            saved=Counter([page.saved_by] if page.saved_by else []),
        )

    @classmethod
    def over(cls, pages: Iterable[PageResult]) -> Totals:
        return sum(map(cls.of, pages), cls())

    def __add__(self, other: Totals) -> Totals:
        phases = dict.fromkeys([*self.seconds, *other.seconds])
        return Totals(
            self.pages + other.pages,
            self.failed + other.failed,
            self.page_tokens + other.page_tokens,
            self.tokens + other.tokens,
            self.steps + other.steps,
            self.accepted + other.accepted,
            self.emitted + other.emitted,
            self.wall + other.wall,
            {p: self.seconds.get(p, 0.0) + other.seconds.get(p, 0.0) for p in phases},
            self.accepted_lengths + other.accepted_lengths,
            self.finish_reasons + other.finish_reasons,
            self.saved + other.saved,
        )

    @property
    def aal(self) -> float:
        """Average accepted length: draft tokens accepted per verification step, the bonus token not counted."""
        return self.accepted / self.steps if self.steps else 0.0

    @property
    def tokens_per_step(self) -> float:
        return self.emitted / self.steps if self.steps else 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "pages": self.pages,
            "failed": self.failed,
            "page_tokens": self.page_tokens,
            "tokens": self.tokens,
            "steps": self.steps,
            "tokens_per_step": self.tokens_per_step,
            "aal": self.aal,
            "accepted_lengths": {str(length): n for length, n in sorted(self.accepted_lengths.items())},
            "finish_reasons": dict(self.finish_reasons),
            "saved": dict(self.saved),
            "wall_seconds": self.wall,
            "seconds": self.seconds,
        }


def _phases(page: PageResult) -> dict[str, float]:
    found = {"draft": page.draft.seconds}
    for stage in page.stages:
        for phase in ("encode", "prefill", "decode"):
            found[f"{stage.name}_{phase}"] = getattr(stage.times, phase)
    return found | {"other": max(0.0, page.seconds - sum(found.values()))}
