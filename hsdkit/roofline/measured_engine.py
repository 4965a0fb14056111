"""The very engine and model of a recording, measured: seconds of its passes, prompts and images, interpolated.

Tells what this model takes here, and nothing of another model: for that there is `MeasuredMachine`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hsdkit.roofline.costs import Pass
from hsdkit.roofline.shape import Shape


@dataclass(frozen=True, slots=True)
class Line:
    """Seconds at some numbers of tokens, both rising; linear between them, and as the last two go on beyond. Beyond a
    single one in proportion: what was measured was one image, and several are so many times that."""

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]

    def at(self, tokens: float) -> float:
        if len(self.tokens) == 1:
            return self.seconds[0] * max(1.0, tokens / self.tokens[0])
        return interpolated(tokens, self.tokens, lambda i: self.seconds[i])


@dataclass(frozen=True, slots=True)
class MeasuredEngine:
    """passes[r][k][c]: seconds of a verification pass over `rows[r]` rows of `widths[k]` tokens behind `cached[c]`
    ones. prompts: of prompts, by tokens of all rows, padding included. images: of preparing and encoding an image, by
    the tokens it becomes."""

    name: str
    rows: tuple[int, ...]
    widths: tuple[int, ...]
    cached: tuple[int, ...]
    passes: tuple[tuple[tuple[float, ...], ...], ...]
    prompts: Line
    images: Line

    def pass_seconds(self, shape: Shape, p: Pass, dtype: str) -> float:
        if p.cached == 0:
            return self.prompts.at(p.tokens)

        def by_rows(r: int) -> float:
            return interpolated(p.width, self.widths, lambda k: by_width(r, k))

        def by_width(r: int, k: int) -> float:
            return interpolated(p.cached, self.cached, lambda c: self.passes[r][k][c])

        return interpolated(p.rows, self.rows, by_rows)

    def vision_seconds(self, shape: Shape, image_tokens: int, dtype: str) -> float:
        return self.images.at(image_tokens)


def interpolated(x: float, known: Sequence[float], value: Callable[[int], float]) -> float:
    """At `x`, from `value(i)` at `known[i]`, which rise: linear, the last slope going on, the first value before it."""
    if len(known) == 1 or x <= known[0]:
        return value(0)
    i = min(int(np.searchsorted(known, x)), len(known) - 1)
    below, above = value(i - 1), value(i)
    return below + (above - below) * (x - known[i - 1]) / (known[i] - known[i - 1])
