"""The prefix tree of a verification step and its packed sequence P with the tree mask (paper, section 3.2).

A node is one draft token. Candidates are a few long chains, so the tree is kept as *branches*, runs of nodes that
follow one another; whatever is done per node below is done for a whole branch at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence, Set
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from hsdkit.decoding.protocol import Candidate

_NONE, _NO_PROBABILITY = np.zeros(0, np.int64), np.zeros(0)


@dataclass(slots=True)
class Branch:
    """A run of nodes behind node `offset` of branch `parent` (-1: behind the root). `depth` is that of its first node,
    `head` the first node's survival probability; each further one survives with `rest` given the one before."""

    parent: int
    offset: int
    depth: int
    tokens: list[int]
    head: float
    rest: float
    source: str


class PrefixTree:
    """Ranked candidates merged on common prefixes.

    A node shared by candidates keeps the survival probability that the first of them gives it, and a child's is never
    above its parent's. So the n likeliest nodes always form a tree again, and `pack(n)` is the best tree of n nodes.
    Candidates are cut to `limit` tokens and before the first end token: a draft never proposes the end.
    """

    def __init__(self, candidates: Sequence[Candidate], limit: int, eos: Set[int] = frozenset()) -> None:
        self.branches: list[Branch] = []
        self._forks: dict[tuple[int, int, int], int] = {}
        for candidate in candidates:
            self._insert(candidate, limit, eos)
        #: (M,) branch of each draft node, branch after branch, and the survival probability of each.
        self._branch, self.survival = _NONE, _NO_PROBABILITY
        if self.branches:
            lengths = [len(b.tokens) for b in self.branches]
            self._branch = np.repeat(np.arange(len(lengths)), lengths)
            ends = np.cumsum(lengths)
            offset = np.arange(ends[-1]) - (ends - lengths)[self._branch]
            heads = np.array([b.head for b in self.branches])
            rests = np.array([b.rest for b in self.branches])
            self.survival = heads[self._branch] * rests[self._branch] ** offset

    def _insert(self, candidate: Candidate, limit: int, eos: Set[int]) -> None:
        tokens = candidate.tokens[:limit]
        if not eos.isdisjoint(tokens):
            tokens = tokens[: next(i for i, t in enumerate(tokens) if t in eos)]
        branch, offset, above = -1, 0, 1.0
        for depth, token in enumerate(tokens):
            run = self.branches[branch].tokens if branch >= 0 else ()
            if offset + 1 < len(run) and run[offset + 1] == token:
                offset += 1
            elif (fork := self._forks.get((branch, offset, token))) is not None:
                branch, offset = fork, 0
            else:
                if branch >= 0:
                    above = self.branches[branch].head * self.branches[branch].rest ** offset
                head = min(above, candidate.first * candidate.rest ** (depth - candidate.fork))
                self._forks[branch, offset, token] = len(self.branches)
                self.branches.append(
                    Branch(branch, offset, depth + 1, tokens[depth:], head, candidate.rest, candidate.source)
                )
                return

    def likeliest(self, most: int) -> list[int]:
        """The first tokens of the first-ranked candidate."""
        return self.branches[0].tokens[:most] if self.branches else []

    def pack(self, root: int, nodes: int) -> PackedTree:
        """The `nodes` likeliest draft nodes behind the token `root`, linearised depth first: the first-ranked chain
        directly behind the root, then what forks off it, the deepest fork first."""
        packed = PackedTree(root)
        if nodes < 1:
            return packed
        if nodes < len(self._branch):
            likeliest = np.argsort(-self.survival, kind="stable")[:nodes]
            kept = np.bincount(self._branch[likeliest], minlength=len(self.branches)).tolist()
        else:
            kept = [len(b.tokens) for b in self.branches]
        below: dict[int, list[int]] = {}
        for index, branch in enumerate(self.branches):
            if kept[index]:
                below.setdefault(branch.parent, []).append(index)
        stack = [(index, 0) for index in reversed(below.get(-1, ()))]
        while stack:
            index, parent = stack.pop()
            branch = self.branches[index]
            start = packed.append(parent, branch.tokens[: kept[index]], branch.depth, branch.source)
            forks = [(self.branches[i].offset, i) for i in reversed(below.get(index, ()))]
            stack += [(i, start + offset) for offset, i in sorted(forks, key=itemgetter(0))]
        return packed


class PackedTree:
    """The packed sequence P: node 0 is the root, the last emitted token, whose keys and values are not cached yet;
    parents come before children. `tokens` and `depths` are lists of N."""

    def __init__(self, root: int) -> None:
        self.tokens = [root]
        self.depths = [0]
        self._starts = [0]
        self._parents = [-1]
        self._sources = [""]
        self._heads = {0}
        self._forks: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def append(self, parent: int, tokens: Sequence[int], depth: int, source: str) -> int:
        """Add a branch behind node `parent`; returns its first node."""
        start = len(self.tokens)
        self.tokens += tokens
        self.depths += range(depth, depth + len(tokens))
        self._starts.append(start)
        self._parents.append(parent)
        self._sources.append(source)
        self._heads.add(start)
        self._forks[parent, tokens[0]] = start
        return start

    def child(self, node: int, token: int) -> int | None:
        """The child of `node` that holds `token`."""
        following = node + 1
        if following < len(self.tokens) and self.tokens[following] == token and following not in self._heads:
            return following
        return self._forks.get((node, token))

    def children(self, node: int) -> list[int]:
        following = node + 1
        chain = [following] if following < len(self.tokens) and following not in self._heads else []
        return chain + [child for (parent, _), child in self._forks.items() if parent == node]

    def behind(self, node: int, most: int) -> list[int]:
        """The first tokens of the branch that goes on behind `node`; of several the one packed first."""
        start = node + 1
        if start >= len(self.tokens) or start in self._heads:
            forks = (fork for (parent, _), fork in self._forks.items() if parent == node)
            if (start := min(forks, default=0)) == 0:
                return []
        index = bisect_right(self._starts, start)
        end = self._starts[index] if index < len(self._starts) else len(self.tokens)
        return self.tokens[start : min(end, start + most)]

    def source(self, node: int) -> str:
        """Where the candidate that brought `node` came from; "" for the root."""
        return self._sources[bisect_right(self._starts, node) - 1]

    def mask(self) -> np.ndarray:
        """(N, N) bool: a node (row) sees itself and its ancestors."""
        nodes = len(self.tokens)
        seen = np.tri(nodes, dtype=bool)
        ends = [*self._starts[1:], nodes]
        for start, end, parent in zip(self._starts, ends, self._parents, strict=True):
            if start > 1:  # for the first branch the triangle is already right
                seen[start:end, :start] = seen[parent, :start]
        return seen
