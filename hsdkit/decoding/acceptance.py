"""The acceptance walk down a verified tree (paper, section 3.2).

At node s the model's best next token is u^ = argmax p(u | s), and the best child is u* = argmax of p over the children
of s. u* is accepted if log p(u*) - log p(u^) >= log tau. Both come from the same row of logits, so the softmax
normaliser cancels and the difference of the two logits decides. With tau = 1 only u^ itself is accepted: greedy
decoding, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from typing import Any

import torch

from hsdkit.decoding.tree import PackedTree


class Verdicts:
    """What the model says at each node of one row: `logits` (K, V), of which `best` is the argmax of every node.

    Logits processors make the verdict depend on the tokens before it, so they are applied only to the nodes the walk
    visits, each with its own context: `context` (the prompt and everything emitted) plus the path, as `generate` would
    see it.
    """

    def __init__(
        self, logits: torch.Tensor, best: Sequence[int], processors: Sequence[Any] = (), context: Sequence[int] = ()
    ) -> None:
        self._logits = logits
        self._best = best
        self._processors = processors
        self._context = torch.tensor(context, device=logits.device) if processors else None

    def scores(self, node: int, path_tokens: Sequence[int]) -> torch.Tensor:
        """(V,) logits at `node`, reached through `path_tokens`."""
        row = self._logits[node]
        if self._context is None:
            return row
        path = torch.tensor(path_tokens, dtype=torch.int64, device=row.device)
        context = torch.cat((self._context, path))[None]
        scores = row.to(torch.float32, copy=True)[None]
        for processor in self._processors:
            scores = processor(context, scores)
        return scores[0]

    def best(self, node: int, path_tokens: Sequence[int]) -> int:
        if self._context is None:
            return self._best[node]
        return int(self.scores(node, path_tokens).argmax())


def walk(
    tree: PackedTree, verdicts: Verdicts, tau: float = 1.0, eos: Set[int] = frozenset()
) -> tuple[list[int], int | None]:
    """The accepted path (packed nodes, the root first) and the bonus token, the model's own choice behind it.

    An end token inside the path stops the walk there, without a bonus (None).
    """
    path, tokens = [0], list[int]()
    while True:
        node = path[-1]
        bonus = verdicts.best(node, tokens)
        child = tree.child(node, bonus)
        if child is None and tau < 1:
            child = _tolerated(tree, node, verdicts.scores(node, tokens), tau)
        if child is None:
            return path, bonus
        path.append(child)
        tokens.append(tree.tokens[child])
        if tokens[-1] in eos:
            return path, None


def _tolerated(tree: PackedTree, node: int, scores: torch.Tensor, tau: float) -> int | None:
    children = tree.children(node)
    if not children:
        return None
    logits = scores[[tree.tokens[c] for c in children]].float()
    best = int(logits.argmax())
    return children[best] if float(logits[best]) - float(scores.max()) >= math.log(tau) else None
