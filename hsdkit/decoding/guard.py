"""The repetition guard: document models sometimes go on repeating themselves until the token limit.

Whether a sequence is a loop depends on its tokens alone, looked at whenever their number is a multiple of `EVERY`, so
decoding stops at the same token however many tokens a step emits. Legitimate repetition (empty table cells, dot
leaders, a column of equal values) is left alone: a loop must span `SPAN` tokens and hold `COPIES` copies of at most
`PERIOD` tokens each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

EVERY = 64
SPAN = 768
COPIES = 6
PERIOD = 400


@dataclass(frozen=True, slots=True)
class Loop:
    """`seen` tokens were enough to know; those from `keep` on repeat what was already written."""

    seen: int
    keep: int


class LoopGuard:
    """Watches one growing token sequence."""

    def __init__(self) -> None:
        self._checked = 0

    def check(self, tokens: Sequence[int]) -> Loop | None:
        """The first loop in `tokens`, which must only ever grow between calls."""
        while self._checked + EVERY <= len(tokens):
            self._checked += EVERY
            if period := loop_period(tokens[max(0, self._checked - PERIOD * COPIES) : self._checked]):
                return Loop(self._checked, _first_copy_end(tokens, self._checked, period))
        return None


def loop_period(tail: Sequence[int]) -> int | None:
    """The shortest period with which `tail` ends in a loop, or None."""
    if len(tail) < SPAN:
        return None
    array = np.asarray(tail)
    # Most text is ruled out here: a loop's last tokens occur before at a distance of the period.
    near = array[-1 - PERIOD : -1][::-1] == array[-1]
    for period in (np.flatnonzero(near) + 1).tolist():
        span = max(SPAN, COPIES * period)
        if span <= len(array) and np.array_equal(array[-span + period :], array[-span:-period]):
            return int(period)
    return None


def _first_copy_end(tokens: Sequence[int], end: int, period: int) -> int:
    start = end - period
    while start > 0 and tokens[start - 1] == tokens[start - 1 + period]:
        start -= 1
    return start + period
