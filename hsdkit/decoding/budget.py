"""How many nodes a step verifies: as many as the measured cost of a pass justifies.

On a GPU a pass of 128 tokens costs little more than one of a single token; on a CPU it costs many times as much. So the
cost is measured, and the width K maximises the expected tokens per second of the step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

#: Most packed tokens of a row (paper: 128).
MAX_PACKED = 128
#: A width that costs this many single-token passes is never worth it: no wider one is measured.
HOPELESS = 24.0
#: After so many steps in a row that left all drafts out, verify some again, this wide.
PROBE_EVERY, PROBE_WIDTH = 16, 4


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds of a verification pass by the number of packed tokens of all rows together."""

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]

    @classmethod
    def measure(cls, run: Callable[[int], float], rows: int, patience: float = 0.5) -> CostCurve:
        """Measure widths 1, 2, 4, ... up to `MAX_PACKED`; `run(width)` makes one pass over `rows` rows and returns its
        seconds. Each width is run up to four times, for about `patience` seconds, and its fastest run counts."""
        tokens, seconds = [], []
        width = 1
        while width <= MAX_PACKED:
            times = [run(width)]
            while len(times) < 4 and sum(times) < patience:
                times.append(run(width))
            tokens.append(rows * width)
            seconds.append(min(times))
            if seconds[-1] > HOPELESS * seconds[0]:
                break
            width *= 2
        return cls(tuple(tokens), tuple(np.maximum.accumulate(seconds).tolist()))

    def at(self, tokens: np.ndarray) -> np.ndarray:
        """Interpolated seconds; beyond the last measurement the last slope goes on."""
        seconds = np.interp(tokens, self.tokens, self.seconds)
        slope = self.seconds[-1] / self.tokens[-1]
        if len(self.tokens) > 1:
            slope = (self.seconds[-1] - self.seconds[-2]) / (self.tokens[-1] - self.tokens[-2])
        return seconds + slope * np.maximum(0, tokens - self.tokens[-1])


def choose_width(survivals: Sequence[np.ndarray], curve: CostCurve, overhead: float = 0.0) -> int:
    """The width K, root included, at which the expected tokens per second are highest.

    `survivals` holds the survival probabilities of each live row's draft nodes; with width K every row verifies its K -
    1 likeliest, and gains their sum and the bonus token. `overhead` is the seconds a step costs besides the pass.
    """
    longest = min(MAX_PACKED - 1, max(len(s) for s in survivals))
    if not longest:
        return 1
    expected = np.full(longest + 1, float(len(survivals)))
    for survival in survivals:
        gains = np.zeros(longest)
        likeliest = -np.sort(-survival)[:longest]
        gains[: len(likeliest)] = likeliest
        expected[1:] += np.cumsum(gains)
    widths = np.arange(1, longest + 2)
    return int(widths[np.argmax(expected / (curve.at(len(survivals) * widths) + overhead))])


class Budget:
    """Chooses the width of each step: `max_packed` where it is given, else by cost.

    A matcher learns how good its drafts are only from verified ones. So where cost says "one token" although there are
    drafts, a few of them are tried again every now and then.
    """

    def __init__(self, max_packed: int | None, curve: CostCurve | None) -> None:
        self._fixed = max_packed
        self._curve = curve
        self._narrow = 0
        self._overhead = 0.0

    def width(self, survivals: Sequence[np.ndarray]) -> int:
        """Packed tokens of each row, root included, given the survival probabilities of every live row's draft
        nodes."""
        drafted = 1 + max(len(s) for s in survivals)
        if self._fixed is not None or self._curve is None:
            return min(drafted, self._fixed or 1)
        width = choose_width(survivals, self._curve, self._overhead)
        self._narrow = self._narrow + 1 if width < drafted and width == 1 else 0
        if self._narrow < PROBE_EVERY:
            return width
        self._narrow = 0
        return min(drafted, PROBE_WIDTH)

    def spent(self, overhead: float) -> None:
        """Tell how many seconds the last step took besides the pass (a running mean is kept)."""
        self._overhead += 0.1 * (overhead - self._overhead)
