"""How many nodes a step verifies: as many as the measured cost of a pass justifies.

On a GPU a pass of 128 tokens costs little more than one of a single token; on a CPU it costs many times as much. So the
cost is measured, and the width K maximises the expected tokens per second of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

#: Most packed tokens of a row (paper: 128).
MAX_PACKED = 128
#: A width that costs this many single-token passes is never worth it: no wider one is measured.
HOPELESS = 24.0
#: Seconds after which none wider than `ENOUGH` is measured either: a large model on a CPU should start decoding.
PATIENCE, ENOUGH = 10.0, 16
#: After so many steps in a row that left all drafts out, verify some again, this wide.
PROBE_EVERY, PROBE_WIDTH = 16, 4


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds of a verification pass by the number of packed tokens of all rows together."""

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]

    @classmethod
    def measure(cls, run: Callable[[int], float], rows: int, rounds: int = 6, patience: float = 0.5) -> CostCurve:
        """Measure widths 1, 2, 4, ... up to `MAX_PACKED`; `run(width)` makes one pass over `rows` rows and returns its
        seconds. The widths take turns, so that a busy moment of the machine does not hit one of them alone, for up to
        `rounds` rounds or about `patience` seconds; the fastest run of each counts."""
        spent = run(1)
        fastest: dict[int, float] = {}
        width = 1
        while width <= ENOUGH or (width <= MAX_PACKED and spent < PATIENCE):
            fastest[width] = run(width)
            spent += fastest[width]
            if fastest[width] > HOPELESS * fastest[1]:
                break
            width *= 2
        for _ in range(rounds - 1):
            if spent > patience:
                break
            for width in fastest:
                seconds = run(width)
                spent += seconds
                fastest[width] = min(fastest[width], seconds)
        # Noise only ever adds: a width takes no longer than any wider one did.
        least = np.minimum.accumulate(list(fastest.values())[::-1])[::-1]
        return cls(tuple(rows * width for width in fastest), tuple(least.tolist()))

    def at(self, tokens: np.ndarray) -> np.ndarray:
        """Interpolated seconds; beyond the last measurement the last slope goes on."""
        seconds = np.interp(tokens, self.tokens, self.seconds)
        slope = self.seconds[-1] / self.tokens[-1]
        if len(self.tokens) > 1:
            slope = (self.seconds[-1] - self.seconds[-2]) / (self.tokens[-1] - self.tokens[-2])
        return seconds + slope * np.maximum(0, tokens - self.tokens[-1])

    def by_width(self, rows: int) -> np.ndarray:
        """(MAX_PACKED,) seconds of a pass over so many rows, for the widths 1, 2, ..."""
        return self.at(rows * np.arange(1, MAX_PACKED + 1))


class Costs(Protocol):
    """What a pass costs: a curve, or several."""

    def by_width(self, rows: int) -> np.ndarray:
        """(MAX_PACKED,) seconds of a pass over so many rows, for the widths 1, 2, ..."""
        ...


class MeasuredCosts:
    """Curves for a few numbers of rows, each measured the first time that more rows run together than before; between
    them costs are interpolated. `measure(rows)` makes a curve; never are more than `most` rows measured."""

    def __init__(self, measure: Callable[[int], CostCurve], most: int) -> None:
        self._measure = measure
        self._most = most
        self._curves: dict[int, CostCurve] = {}
        self._by_width: dict[int, np.ndarray] = {}

    def known(self, rows: int) -> CostCurve | None:
        return self._curves.get(rows)

    def curve(self, rows: int) -> CostCurve:
        """The curve measured with exactly so many rows."""
        if rows not in self._curves:
            self._curves[rows] = self._measure(rows)
            self._by_width.clear()
        return self._curves[rows]

    def by_width(self, rows: int) -> np.ndarray:
        if rows > max(self._curves, default=0):
            self.curve(max(rows, min(_power_of_four(rows), self._most)))
        if rows not in self._by_width:
            above = min(r for r in self._curves if r >= rows)
            below = max((r for r in self._curves if r <= rows), default=above)
            seconds = self._curves[below].by_width(rows if below == above else below)
            if below < above:
                share = (rows - below) / (above - below)
                seconds = seconds + share * (self._curves[above].by_width(above) - seconds)
            self._by_width[rows] = seconds
        return self._by_width[rows]


def _power_of_four(rows: int) -> int:
    power = 1
    while power < rows:
        power *= 4
    return power


def choose_width(survivals: Sequence[np.ndarray], seconds: np.ndarray) -> int:
    """The width K, root included, at which the expected tokens per second are highest.

    `survivals` holds the survival probabilities of each live row's draft nodes; with width K every row verifies its
    K - 1 likeliest, and gains their sum and the bonus token. `seconds[K - 1]` is what a step of width K takes.
    """
    longest = min(len(seconds), 1 + max(map(len, survivals)))
    expected = np.full(longest, float(len(survivals)))
    for survival in survivals:
        likeliest = np.sort(survival)[::-1][: longest - 1]
        gains = np.cumsum(likeliest)
        expected[1 : len(gains) + 1] += gains
        expected[len(gains) + 1 :] += gains[-1] if len(gains) else 0.0
    return int(np.argmax(expected / seconds[:longest])) + 1


@dataclass(slots=True)
class _Seen:
    """Running means over steps of one kind: how their passes compare to what was measured (the cache grows, the machine
    gets busy or idle), and the seconds a row that they spent outside the model."""

    steps: int = 0
    ratio: float = 1.0
    host: float = 0.0

    def add(self, ratio: float, host: float) -> None:
        self.steps += 1
        weight = max(0.1, 1 / self.steps)
        self.ratio += weight * (ratio - self.ratio)
        self.host += weight * (host - self.host)

    def expect(self, predicted: np.ndarray, rows: int) -> np.ndarray:
        return predicted * self.ratio + self.host * rows


class Budget:
    """Chooses the width of each step: `max_packed` where it is given, else by cost. It may serve any rows of any
    callers, which may come and go.

    A matcher learns how good its drafts are only from verified ones. So where cost says "one token" although there are
    drafts, a few of them are tried again every now and then.
    """

    def __init__(self, max_packed: int | None, costs: Costs | None) -> None:
        self._fixed = max_packed
        self._costs = costs
        self._narrow = _Seen()
        self._wide = _Seen()
        self._left_out = 0

    def width(self, survivals: Sequence[np.ndarray], rows: int | None = None) -> int:
        """Packed tokens of each row, root included, given the survival probabilities of the draft nodes of its rows.
        `rows` are in the pass, with those of other budgets."""
        rows = len(survivals) if rows is None else rows
        drafted = 1 + max(map(len, survivals))
        if drafted == 1:
            return 1
        if self._fixed is not None or self._costs is None:
            return min(drafted, self._fixed or 1)
        width = choose_width(survivals, self._expected_seconds(self._costs.by_width(rows), rows))
        self._left_out = self._left_out + 1 if width == 1 else 0
        if self._left_out < PROBE_EVERY:
            return width
        self._left_out = 0
        return min(drafted, PROBE_WIDTH)

    def spent(self, rows: int, width: int, verifying: float, host: float) -> None:
        """Seconds that a step of so many rows really took in the model and outside it."""
        if self._costs is not None:
            seen = self._narrow if width == 1 else self._wide
            seen.add(verifying / float(self._costs.by_width(rows)[width - 1]), host / rows)

    def _expected_seconds(self, predicted: np.ndarray, rows: int) -> np.ndarray:
        """By width: the measured pass, put right by what steps of that kind have taken."""
        seconds = (self._wide if self._wide.steps else self._narrow).expect(predicted, rows)
        seconds[0] = (self._narrow if self._narrow.steps else self._wide).expect(predicted[:1], rows)[0]
        return np.maximum(seconds, seconds[0])  # two separate means must not make a tree cheaper than a token
