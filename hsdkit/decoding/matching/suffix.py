"""`suffix` matching: the suffix trees of arctic-inference over the drafts and the own output, as a baseline.

SuffixDecoding (Oliaro et al., 2024, arXiv 2411.04975): the longest suffix of the output that occurs in the tree, and of
what followed it the continuations that were seen most often.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hsdkit.decoding.matching.rates import Rate
from hsdkit.decoding.protocol import Candidate

#: Depth of the suffix trees and so the longest guess: the library's default.
DEPTH = 64
#: Kept by the library for guesses from other requests; 0 for none, so that a page does not depend on those before it.
NO_OTHERS = 0
#: The trees give shares of what was seen (1.0 for what was seen once), not chances: this much of them comes true, until
#: the target has shown how much does.
TRUST = 0.9


class SuffixMatcher:
    """`drafts` are token ids in reading order; `own` is whether the output is looked up as well.

    The library's own settings: a guess is at most as long as the match before it, less likely tokens than one in ten
    are left out, and it is a tree.
    """

    def __init__(self, drafts: Sequence[int], own: bool) -> None:
        from arctic_inference.suffix_decoding import SuffixDecodingCache

        self._cache: Any = SuffixDecodingCache(max_tree_depth=DEPTH, max_cached_requests=NO_OTHERS)
        self._cache.start_request(0, list(drafts))
        self._own = own
        self._recent: list[int] = []
        self._offered = 0
        self._rate = Rate(TRUST, 12.0)

    def propose(self, limit: int) -> list[Candidate]:
        self._offered = 0
        if limit < 1 or not self._recent:
            return []
        found = self._cache.speculate(0, self._recent, max_spec_tokens=min(limit, DEPTH), use_tree_spec=True)
        chains = chains_of(found.token_ids, found.parents, found.probs)
        self._offered = max((len(chain.tokens) for chain in chains), default=0)
        return [self._candidate(chain) for chain in chains]

    def _candidate(self, chain: Chain) -> Candidate:
        """A candidate's token at depth d (from 1) survives with first * rest ** (d - 1). For the chain's first own
        token that has to be its share, and every token on the way held."""
        held, own = self._rate.value, len(chain.tokens) - chain.fork
        rest = held * (chain.last / chain.first) ** (1 / max(1, own - 1))
        first = chain.first * held ** (chain.fork + 1) / rest**chain.fork
        return Candidate(chain.tokens, "suffix", first, rest)

    def update(self, tokens: Sequence[int], accepted: int, source: str) -> None:
        if self._offered:
            self._rate.observe(accepted, min(accepted + 1, self._offered))
        self._recent = [*self._recent, *tokens][-DEPTH:]
        if self._own:
            self._cache.add_active_response(0, list(tokens))


@dataclass(slots=True)
class Chain:
    """A path from the root of a tree. Its first `fork` tokens are those of an earlier chain; `first` and `last` are the
    shares of its first own token and of its last."""

    tokens: list[int]
    fork: int
    first: float
    last: float


def chains_of(tokens: Sequence[int], parents: Sequence[int], shares: Sequence[float]) -> list[Chain]:
    """The tree as chains, likeliest first. `parents[i]` is the index of token i's parent, -1 for the root; `shares[i]`
    is that of the whole path to i."""
    children: dict[int, list[int]] = {}
    for index, parent in enumerate(parents):
        children.setdefault(parent, []).append(index)
    for below in children.values():
        below.sort(key=lambda i: -shares[i])
    chains: list[Chain] = []
    starts: list[tuple[int, list[int]]] = [(node, []) for node in children.get(-1, ())]
    while starts:
        starts.sort(key=lambda start: -shares[start[0]])
        node, path = starts.pop(0)
        chain = Chain([*path, tokens[node]], len(path), shares[node], shares[node])
        while below := children.get(node, []):
            starts += [(other, list(chain.tokens)) for other in below[1:]]
            node = below[0]
            chain.tokens.append(tokens[node])
        chain.last = shares[node]
        chains.append(chain)
    return chains
