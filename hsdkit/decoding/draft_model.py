"""A smaller model as a matcher: it reads the page itself and guesses the next tokens one by one.

Speculative decoding as Leviathan et al. have it (arXiv 2211.17192), greedy; the baseline VSD of the paper's Table 4.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hsdkit.decoding.batch import best_tokens, pack_batch
from hsdkit.decoding.cache import RaggedCache
from hsdkit.decoding.matching.rates import Rate
from hsdkit.decoding.protocol import Candidate, TargetModel
from hsdkit.decoding.tree import PackedTree
from hsdkit.protocols import DecodeRequest


class ModelMatcher:
    """`Matcher` of one sequence; `request` is the page as the smaller model reads it, with its own prompt.

    It keeps a cache of its own, which holds the tokens of `_held` behind the prompt. What the target did not take is
    forgotten by shortening the row. The prompt is read at the first guess, so that its time counts as decoding.
    """

    def __init__(self, model: TargetModel, request: DecodeRequest, tokens: int) -> None:
        self._model = model
        self._request = request
        self._tokens = tokens
        self._cache: RaggedCache | None = None
        self._prompt = 0
        self._position = 0
        self._emitted: list[int] = []
        self._held: list[int] = []
        self._agreed = 0
        self._offered = 0
        self._rate = Rate(0.7, 6.0)

    @torch.inference_mode()
    def propose(self, limit: int) -> list[Candidate]:
        self._offered = min(limit, self._tokens)
        if self._offered < 1 or not self._emitted:
            self._offered = 0
            return []
        cache = self._read_prompt() if self._cache is None else self._cache
        self._forget(cache)
        guesses = [self._next(cache, self._emitted[len(self._held) :])]
        while len(guesses) < self._offered and guesses[-1] not in self._model.eos_ids:
            guesses.append(self._next(cache, guesses[-1:]))
        self._offered = len(guesses)
        return [Candidate(guesses, "model", self._rate.value, self._rate.value)]

    def update(self, tokens: Sequence[int], accepted: int, source: str) -> None:
        if self._offered:
            self._rate.observe(accepted, min(accepted + 1, self._offered))
        self._emitted += tokens

    def _read_prompt(self) -> RaggedCache:
        self._cache = RaggedCache()
        prefill = self._model.prefill(self._model.prepare([self._request]), self._cache)
        self._prompt, self._position = prefill.lengths[0], prefill.positions[0]
        return self._cache

    def _forget(self, cache: RaggedCache) -> None:
        """Keep what the target emitted as well; of that the last token is read again if nothing newer is there."""
        last = min(len(self._held), len(self._emitted) - 1)
        while self._agreed < last and self._held[self._agreed] == self._emitted[self._agreed]:
            self._agreed += 1
        del self._held[self._agreed :]
        cache.lengths[:] = self._prompt + self._agreed

    def _next(self, cache: RaggedCache, tokens: Sequence[int]) -> int:
        """The model's token behind `tokens`, which are read behind what the cache holds."""
        chain = PackedTree(tokens[0])
        if len(tokens) > 1:
            chain.append(0, tokens[1:], 1, "")
        packed, positions, mask = pack_batch([chain], [self._position + len(self._held)], cache.lengths)
        cache.begin(len(chain))
        logits = self._model.verify(packed, positions, mask, cache)
        cache.keep([range(len(chain))])
        self._held += tokens
        return int(best_tokens(logits[0, -1:])[0])
