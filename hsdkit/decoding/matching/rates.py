"""Online estimates of how often a guess holds, from what the target made of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Rate:
    """How often, with a prior worth `weight` trials and a memory of about `memory` trials. In (0, 1)."""

    prior: float
    weight: float
    memory: float = 200.0
    hits: float = 0.0
    trials: float = 0.0

    @property
    def value(self) -> float:
        return (self.prior * self.weight + self.hits) / (self.weight + self.trials)

    def observe(self, hits: float, trials: float) -> None:
        keep = max(0.0, 1.0 - trials / self.memory)
        self.hits = self.hits * keep + min(hits, trials)
        self.trials = self.trials * keep + trials


@dataclass(slots=True)
class Calibration:
    """A factor that makes stated probabilities come true on average: hits seen over hits expected."""

    prior: float
    weight: float
    memory: float = 200.0
    hits: float = 0.0
    expected: float = 0.0

    def apply(self, stated: float) -> float:
        return min(0.99, stated * (self.prior * self.weight + self.hits) / (self.weight + self.expected))

    def observe(self, stated: float, hit: bool) -> None:
        keep = 1.0 - 1.0 / self.memory
        self.hits = self.hits * keep + hit
        self.expected = self.expected * keep + stated


@dataclass(slots=True)
class Rates:
    """What a sequence has taught: how often the draft's next token holds, and for each kind of guess how good it is at
    its first token and at those behind."""

    draft: Rate
    first: dict[str, Calibration] = field(default_factory=dict)
    rest: dict[str, Rate] = field(default_factory=dict)

    def first_of(self, kind: str) -> Calibration:
        return self.first.setdefault(kind, Calibration(0.8, 6.0))

    def rest_of(self, kind: str) -> Rate:
        return self.rest.setdefault(kind, Rate(0.7, 6.0))
