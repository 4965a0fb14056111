"""A matcher that reads its candidates off a known continuation and spoils them in a chosen way."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hsdkit.decoding.protocol import Candidate

Spoiling = Literal["perfect", "noisy", "empty", "shuffled", "repeating", "branching", "endless"]
SPOILINGS: tuple[Spoiling, ...] = ("perfect", "noisy", "empty", "shuffled", "repeating", "branching", "endless")


@dataclass
class Scripted:
    """Proposes what follows in `truth`. `vocabulary` bounds the wrong tokens, `ends` are put into every draft."""

    truth: Sequence[int]
    spoiling: Spoiling = "perfect"
    vocabulary: int = 370
    ends: tuple[int, ...] = ()
    seed: int = 0
    position: int = 0
    accepted: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._shuffled = self._random.sample(list(self.truth), len(self.truth))

    def _wrong(self, count: int) -> list[int]:
        return [self._random.randrange(self.vocabulary) for _ in range(count)]

    def _noisy(self, tokens: Sequence[int], rate: float) -> list[int]:
        return [self._wrong(1)[0] if self._random.random() < rate else token for token in tokens]

    def propose(self, limit: int) -> list[Candidate]:
        ahead = list(self.truth[self.position : self.position + limit])
        match self.spoiling:
            case "perfect":
                drafts = [ahead]
            case "noisy":
                drafts = [self._noisy(ahead, 0.1) for _ in range(3)]
            case "empty":
                drafts = [[], []] if self.position % 2 else []
            case "shuffled":
                drafts = [self._shuffled[self.position :][:limit]]
            case "repeating":
                drafts = [ahead[:1] * limit, ahead[:2] * (limit // 2), self._wrong(1) * limit]
            case "branching":
                # Wrong ones first, many that share prefixes with each other and with the truth.
                drafts = [ahead[:k] + self._wrong(3) for k in range(5)] + [self._wrong(4), ahead[:6], ahead]
            case "endless":
                drafts = [ahead + self._wrong(50_000)]
        cut = len(self.ends) and self._random.randrange(6)
        drafts = [draft[:cut] + list(self.ends) + draft[cut:] for draft in drafts]
        return [Candidate(draft, f"draft {k}", 0.9 - 0.05 * k, 0.9) for k, draft in enumerate(drafts)]

    def update(self, tokens: Sequence[int], accepted: int, source: str) -> None:
        self.position += len(tokens)
        self.accepted.append((accepted, source))
