"""A measured machine: what passes cost on it, from a few timed layers. A roofline whose roof is measured at each width.

A pass takes a fixed time, one for each layer, one for each weight that a layer multiplies with, and one for each key
that its tokens look at. All of them depend on the number of tokens; between measured numbers they are interpolated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hsdkit.roofline.costs import Pass, seen, vision_cost
from hsdkit.roofline.shape import Shape


@dataclass(frozen=True, slots=True)
class MeasuredMachine:
    """Seconds by number of tokens `tokens` (T,), which rise.

    base: of a pass beside its layers. layers (S, T): of one layer with `weights` (S,) weights, rising. keys: of one
    layer, for every row, cached token and number of a query (heads times head size), where every head has keys of its
    own. dtype: the type measured.
    """

    name: str
    dtype: str
    tokens: tuple[int, ...]
    weights: tuple[int, ...]
    base: tuple[float, ...]
    layers: tuple[tuple[float, ...], ...]
    keys: tuple[float, ...]

    def pass_seconds(self, shape: Shape, p: Pass, dtype: str) -> float:
        d = shape.decoder
        per_layer = d.always_read / d.layers
        found = self._at(self.base, p.tokens) + d.layers * self.layer_seconds(p.tokens, per_layer)
        found += d.head_weights * self.weight_seconds(p.rows * p.logits)
        # One query's keys are read once for its group; what more queries take is computing, by each head.
        reading, computing = self.keys[0], max(0.0, self._at(self.keys, p.width) - self.keys[0])
        found += p.rows * d.head_dim * seen(d, p) * (d.kv_heads * reading + d.heads * computing)
        if d.experts:
            e = d.experts
            touched = e.count * (1 - (1 - e.used / e.count) ** p.tokens)
            each = max(1.0, p.tokens * e.used / touched)
            found += e.layers * touched * d.expert_weights * self.weight_seconds(each)
        return found

    def vision_seconds(self, shape: Shape, image_tokens: int, dtype: str) -> float:
        """From its operations alone, at the speed of wide passes."""
        if shape.vision is None:
            return 0.0
        return vision_cost(shape.vision, image_tokens, dtype).flops / self.peak

    def layer_seconds(self, tokens: float, weights: float) -> float:
        """Of one layer, but for what it looks at in the cache: interpolated between sizes, and beyond the largest with
        its last slope."""
        seconds = [self._at(row, tokens) for row in self.layers]
        beyond = max(0.0, weights - self.weights[-1]) * self.weight_seconds(tokens)
        return float(np.interp(weights, self.weights, seconds)) + beyond

    def weight_seconds(self, tokens: float) -> float:
        """Of one more weight in a large matrix, for so many tokens."""
        (less, more), rows = self.weights[-2:], self.layers[-2:]
        return (self._at(rows[1], tokens) - self._at(rows[0], tokens)) / (more - less)

    @property
    def peak(self) -> float:
        """Operations a second in the widest pass measured."""
        return 2 * self.tokens[-1] / self.weight_seconds(self.tokens[-1])

    @property
    def bandwidth(self) -> float:
        """Weights read a second in a pass of one token."""
        return 1 / self.weight_seconds(1)

    def _at(self, seconds: Sequence[float], tokens: float) -> float:
        """Beyond the widest pass, in proportion to its slope."""
        (t1, t2), (s1, s2) = self.tokens[-2:], seconds[-2:]
        beyond = max(0.0, tokens - t2) * max(0.0, s2 - s1) / (t2 - t1)
        return float(np.interp(tokens, self.tokens, seconds)) + beyond
