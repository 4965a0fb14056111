"""The tensors of a verification pass: trees of all rows packed into one batch, and the winners read off its logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hsdkit.decoding.tree import PackedTree
from hsdkit.errors import TargetError


def winners(logits: torch.Tensor) -> tuple[list[Any], list[bool]]:
    """The argmax of logits (B, ..., V), as lists; and of each row, whether one of its scores is NaN: to argmax NaN is
    the largest, so looking at the winners finds it."""
    best = logits.argmax(-1)
    spoiled = logits.gather(-1, best[..., None]).isnan()
    return best.tolist(), spoiled.flatten(1).any(1).tolist()


def best_tokens(logits: torch.Tensor) -> list[Any]:
    """The argmax of logits (B, ..., V), as lists. Raises `TargetError` if a score is NaN."""
    best, spoiled = winners(logits)
    if any(spoiled):
        raise not_a_number(logits)
    return best


def not_a_number(logits: torch.Tensor) -> TargetError:
    return TargetError(
        f"the model computed NaN instead of scores, in {str(logits.dtype).removeprefix('torch.')}; a wider type "
        "(engine.dtype=bf16 or fp32) may help, else its weights are damaged"
    )


def pack_batch(
    trees: Sequence[PackedTree], root_positions: Sequence[int], lengths: np.ndarray
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Tokens (B, K), position ids (B, K) and tree mask (B, 1, K, L) of packed trees behind `lengths` (B,) cached
    tokens.

    A node sees what is cached of its row, its ancestors and itself. Rows with fewer than K nodes are padded: a padded
    slot sees the row's cache (a row of the mask that is all False would make NaN), nothing sees it, and it is dropped
    after the pass. The mask is None when every token sees everything: one token a row, rows of equal length.
    """
    width = max(map(len, trees))
    longest = int(lengths.max())
    if width == 1:
        tokens = torch.tensor([tree.tokens for tree in trees])
        positions = torch.tensor(root_positions)[:, None]
        if (lengths == longest).all():
            return tokens, positions, None
        mask = np.arange(longest + 1) <= lengths[:, None]
        return tokens, positions, torch.from_numpy(mask[:, None, None, :])

    packed = np.zeros((2, len(trees), width), np.int64)
    mask = np.zeros((len(trees), 1, width, longest + width), bool)
    for b, (tree, length) in enumerate(zip(trees, lengths.tolist(), strict=True)):
        nodes = len(tree)
        packed[0, b, :nodes] = tree.tokens
        packed[1, b, :nodes] = tree.depths
        mask[b, 0, :, :length] = True
        mask[b, 0, :nodes, length : length + nodes] = tree.mask()
    packed[1] += np.asarray(root_positions)[:, None]
    tokens, positions = torch.from_numpy(packed)
    return tokens, positions, torch.from_numpy(mask)
