"""How sure a figure is: bootstrap intervals, paired by page, seeded; pure functions.

The pages of a measurement are drawn again and again with replacement, and of each drawn page its rounds; the middle 95%
of the figures found so are the interval. What drawing cannot show it does not hold: a drift of the machine between two
measurements, and pages unlike those measured. With fewer than about five pages intervals are too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 2000
LEVEL = 0.95
SEED = 0

#: Seconds of each page, one a round.
Rounds = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and its interval; `low` and `high` are `value` where there is nothing to draw from."""

    value: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Whether the figure differs from `value` by more than noise."""
        return value < self.low or value > self.high


def mean_interval(values: Sequence[float], seed: int = SEED, resamples: int = RESAMPLES) -> Interval:
    """The mean over pages. Raises `ValueError` for no values."""
    import numpy as np

    if not values:
        raise ValueError("no values")
    found = np.asarray(values, dtype=float)
    if len(found) == 1 or np.ptp(found) == 0:
        return Interval(float(found[0]), float(found[0]), float(found[0]))
    rng = np.random.default_rng(seed)
    means = np.array([found[rng.integers(0, len(found), len(found))].mean() for _ in range(resamples)])
    return _interval(float(found.mean()), means)


def ratio_interval(over: Rounds, under: Rounds, seed: int = SEED, resamples: int = RESAMPLES) -> Interval:
    """Total of `over` by total of `under`, the same pages in the same order, of each page the median over its rounds:
    how many times longer all pages took. Raises `ValueError` when the pages do not pair up, or there are none."""
    import numpy as np

    if not over or len(over) != len(under) or not all(map(len, [*over, *under])):
        raise ValueError("the pages do not pair up")
    a, b = _table(over), _table(under)
    value = float(np.median(a, axis=1).sum() / np.median(b, axis=1).sum())
    if a.size == b.size == 1:
        return Interval(value, value, value)
    rng = np.random.default_rng(seed)
    step = max(1, _MOST_DRAWN // (a.size + b.size))
    drawn = []
    for start in range(0, resamples, step):
        pages = rng.integers(0, len(a), (min(step, resamples - start), len(a)))
        drawn.append(_drawn(a, pages, rng) / _drawn(b, pages, rng))
    return _interval(value, np.concatenate(drawn))


#: Numbers held at once while drawing.
_MOST_DRAWN = 5_000_000


def _table(rounds: Rounds) -> np.ndarray:
    """(pages, rounds). Where pages have unlike numbers of rounds, their medians stand for them."""
    import numpy as np

    alike = len({len(r) for r in rounds}) == 1
    return np.array(rounds if alike else [[float(np.median(r))] for r in rounds], dtype=float)


def _drawn(table: np.ndarray, pages: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Totals of the drawn `pages` (draws, pages), of each page the median of rounds drawn from it: (draws,)."""
    import numpy as np

    count = table.shape[1]
    rounds = rng.integers(0, count, (*pages.shape, count))
    totals: np.ndarray = np.median(table[pages[:, :, None], rounds], axis=2).sum(axis=1)
    return totals


def _interval(value: float, drawn: np.ndarray) -> Interval:
    import numpy as np

    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, float(low), float(high))
