"""Exact-window matching as published (paper, section 3.2): the reference for studies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hsdkit.decoding.protocol import Candidate

#: All candidates survive alike, so a tree cut at its budget keeps the shallow nodes of every hit first: the
#: breadth-first cut of the authors' code. The paper gives no probabilities.
SURVIVAL = 0.99


class PaperMatcher:
    """Candidates C = { y~[j+n:] : y~ in drafts, y~[j:j+n-1] = w }, w the last n tokens; every hit, the whole suffix.

    There is no bootstrap and no back-off: with fewer than n tokens so far, or no hit, nothing is proposed and the step
    is one of plain decoding.
    """

    def __init__(self, drafts: Sequence[Sequence[int]], n: int) -> None:
        self._drafts = [tuple(draft) for draft in drafts]
        self._n = n
        self._window: tuple[int, ...] = ()

    @cached_property
    def _hits(self) -> dict[tuple[int, ...], list[tuple[int, int]]]:
        """Where each window occurs: (draft, position after it)."""
        hits: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for number, draft in enumerate(self._drafts):
            windows = zip(*(draft[offset:] for offset in range(self._n)), strict=False)
            for start, window in enumerate(windows):
                hits.setdefault(window, []).append((number, start + self._n))
        return hits

    def propose(self, limit: int) -> list[Candidate]:
        # More hits than nodes cannot all be in a tree; without the bound a draft that repeats itself takes quadratic
        # time.
        hits = self._hits.get(self._window, ())[: max(limit, 0)]
        suffixes = dict.fromkeys(self._drafts[draft][start : start + limit] for draft, start in hits)
        return [Candidate(list(suffix), "draft", SURVIVAL, SURVIVAL) for suffix in suffixes if suffix]

    def update(self, tokens: Sequence[int], accepted: int, source: str) -> None:
        self._window = (*self._window, *tokens)[-self._n :]
