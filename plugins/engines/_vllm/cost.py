"""What a step of this engine costs, learned while it runs, and how many draft tokens are worth verifying.

A pass over n tokens takes about `step + n * token` seconds: on a GPU the second part is next to nothing, on a CPU it is
most of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: How much a step is forgotten with each later one: the last hundred count.
MEMORY = 0.99
#: Believed before anything was measured: so many more tokens double the time of a pass. It counts as much as one step.
DOUBLES = 32
#: After so many steps that left all drafts out, verify some again, this many: costs and drafts may have changed.
PROBE_EVERY, PROBE = 16, 3


class StepCost:
    """A line through the seconds of recent steps over their tokens."""

    def __init__(self) -> None:
        self._sums = np.zeros(5)  # of weights, n, n * n, seconds, n * seconds
        self._left_out = 0

    def observe(self, tokens: int, seconds: float) -> None:
        """A step without prompts in it; `tokens` of all rows together."""
        self._sums *= MEMORY
        self._sums += np.array([1.0, tokens, tokens * tokens, seconds, tokens * seconds])

    @property
    def line(self) -> tuple[float, float]:
        """Seconds of a step, and of each token in it; (0, 0) before the first."""
        w, n, nn, s, ns = self._sums
        if not w:
            return 0.0, 0.0
        # One more step, `DOUBLES` tokens wider than the mean, that took what is believed of it.
        mean, seconds = n / w, s / w
        wide, slow = mean + DOUBLES, seconds * (mean + 2 * DOUBLES) / (mean + DOUBLES)
        w, n, nn, s, ns = w + 1, n + wide, nn + wide * wide, s + slow, ns + wide * slow
        token = max(0.0, (w * ns - n * s) / (w * nn - n * n))
        step = (s - token * n) / w
        if step < 0:  # noise; a line through the origin then
            return 0.0, float(ns / nn)
        return float(step), float(token)

    def worthwhile(self, survivals: Sequence[np.ndarray], rows: int) -> list[int]:
        """How many draft tokens of each row to verify, for the most tokens per second; `survivals` are the rows'
        probabilities that a token is accepted, which only fall along a row. `rows` are all that decode."""
        every = np.sort(np.concatenate(survivals))[::-1] if survivals else np.zeros(0)
        if not len(every):
            return [0] * len(survivals)
        step, token = self.line
        if not step and not token:
            return [len(row) for row in survivals]
        gained = rows + np.concatenate([[0.0], np.cumsum(every)])
        best = int(np.argmax(gained / (step + token * (rows + np.arange(len(gained))))))
        self._left_out = 0 if best else self._left_out + 1
        if best:
            least = every[best - 1]
            return [int(np.count_nonzero(row >= least)) for row in survivals]
        if self._left_out < PROBE_EVERY:
            return [0] * len(survivals)
        self._left_out = 0
        return [min(len(row), PROBE) for row in survivals]
