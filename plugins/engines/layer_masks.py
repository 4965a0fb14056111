"""The masks of a verification pass, one for each kind of attention that the layers of a model have.

Letters: B rows, K packed tokens, L slots of the cache that a pass sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from hsdkit.decoding.cache import RaggedCache
from hsdkit.errors import TargetError

FULL, SLIDING = "full_attention", "sliding_attention"
#: Unlimited-OCR's: every token sees the whole prompt, and of the generated tokens the last `sliding_window`.
REFERENCE = "reference_sliding_attention"

Additive = Callable[[torch.Tensor | None], torch.Tensor | None]


class LayerMasks:
    """Raises `TargetError` for a model with layers of a kind whose rule is not known here."""

    def __init__(self, text_config: Any, model: str) -> None:
        # Some configurations do not list their layers, and give all of them one window.
        all_alike = SLIDING if getattr(text_config, "sliding_window", None) else FULL
        self._kinds = frozenset(getattr(text_config, "layer_types", None) or [all_alike])
        if unknown := self._kinds - {FULL, REFERENCE}:
            raise TargetError(
                f"{model} has layers of type {', '.join(sorted(unknown))}; tree verification knows "
                f"{FULL} and {REFERENCE}"
            )
        self._window = text_config.sliding_window if REFERENCE in self._kinds else None

    def of_pass(
        self, mask: torch.Tensor | None, positions: torch.Tensor, cache: RaggedCache, additive: Additive
    ) -> Any:
        """What the model takes as `attention_mask`: the tree mask (B, 1, K, L), True where a token is seen, or None
        when all is; by kind of layer where there are others than full attention. `positions` (B, K)."""
        if self._window is None:
            return additive(mask)
        near = within_window(mask, positions, cache, self._window)
        return {kind: additive(near if kind == REFERENCE else mask) for kind in self._kinds}


def within_window(mask: torch.Tensor | None, positions: torch.Tensor, cache: RaggedCache, window: int) -> torch.Tensor:
    """Of what `mask` shows, the prompt and the tokens less than `window` positions back, ancestors in the tree too:
    (B, 1, K, L). The token in slot n of a row is at position n, as the accepted path is kept in order; the tokens of
    the pass lie behind the row's own."""
    lengths, prompts = (torch.from_numpy(counts)[:, None] for counts in (cache.lengths, cache.prompts))
    slots = torch.arange(cache.view).expand(len(positions), -1)
    packed = positions.gather(1, (slots - lengths).clamp(0, positions.shape[1] - 1))
    at = torch.where(slots < lengths, slots, packed)
    seen = (slots < prompts)[:, None] | (positions[:, :, None] - at[:, None] < window)
    return seen[:, None] if mask is None else mask & seen[:, None]
