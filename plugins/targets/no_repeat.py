"""The n-gram ban that DeepSeek-OCR and its descendants are published with, against endless repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


class NoRepeatNgrams:
    """A logits processor: a token that would repeat an n-gram of the last `window` tokens gets no probability, unless
    it is in `allowed`. As the official clients apply it: vLLM's `NGramPerReqLogitsProcessor` with its whitelist, and
    without one `no_repeat_ngram_window_size` of `transformers`.
    """

    def __init__(self, size: int, window: int, allowed: frozenset[int] = frozenset()) -> None:
        self.size, self.window, self.allowed = size, window, allowed

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """`input_ids` (B, L) all tokens so far, `scores` (B, V) logits of the next one."""
        for row, ids in enumerate(input_ids[:, -self.window :].tolist()):
            if banned := self.banned(ids):
                scores[row, list(banned)] = -float("inf")
        return scores

    def banned(self, ids: list[int]) -> set[int]:
        """What may not follow these tokens."""
        before = self.size - 1
        last = ids[len(ids) - before :]
        starts = range(len(ids) - before)
        return {ids[at + before] for at in starts if ids[at : at + before] == last} - self.allowed
