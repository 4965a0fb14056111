"""Decoupled speculative verification: the decoding loop (paper, section 3.2), batched.

candidates -> prefix tree -> one forward pass over all rows -> acceptance walk -> keep the accepted path
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np
import torch

from hsdkit.decoding.acceptance import Verdicts, walk
from hsdkit.decoding.budget import MAX_PACKED, Budget
from hsdkit.decoding.cache import RaggedCache
from hsdkit.decoding.protocol import Matcher, TargetModel
from hsdkit.decoding.row import Row
from hsdkit.decoding.tree import PackedTree
from hsdkit.errors import TargetError
from hsdkit.protocols import Decoded, DecodeRequest, DecodeSettings, OnText
from hsdkit.results import StageTimes, Step


@torch.inference_mode()
def decode(
    model: TargetModel,
    requests: Sequence[DecodeRequest],
    settings: DecodeSettings,
    matchers: Sequence[Matcher | None],
    budget: Budget,
    processors: Sequence[Any] = (),
    on_text: OnText | None = None,
) -> Decoded:
    """Decode all requests together, row b with the drafts of `matchers[b]` (None: plainly, one token a step).

    `processors` are `transformers` logits processors, applied as `generate` applies them. Raises `TargetError` when the
    model computes NaN.
    """
    started = perf_counter()
    cache = RaggedCache()
    prefill = model.prefill(requests, cache)
    prompts = zip(matchers, prefill.prompts, prefill.positions, strict=True)
    rows = [Row(model, settings, matcher, prompt, position) for matcher, prompt, position in prompts]
    live = list(range(len(rows)))
    best = best_tokens(prefill.logits)
    for b in live:
        verdicts = Verdicts(prefill.logits[b, None], best[b : b + 1], processors, rows[b].prompt)
        _tell(on_text, b, rows[b].emit([verdicts.best(0, [])]))
    prefilled = perf_counter()

    verifying, forwards = 0.0, 0
    while live := _drop_finished(live, rows, cache):
        begun = perf_counter()
        trees = [rows[b].draft(MAX_PACKED - 1) for b in live]
        width = budget.width([tree.survival for tree in trees])
        packed = [tree.pack(rows[b].tokens[-1], width - 1) for b, tree in zip(live, trees, strict=True)]
        tokens, positions, mask = pack_batch(packed, [rows[b].root_position for b in live], cache.lengths)

        verify_begun = perf_counter()
        cache.begin(tokens.shape[1])
        logits = model.verify(tokens, positions, mask, cache)
        best = best_tokens(logits)
        verify_seconds = perf_counter() - verify_begun

        walks = []
        for i, (b, tree) in enumerate(zip(live, packed, strict=True)):
            context = rows[b].prompt + rows[b].tokens if processors else ()
            path, bonus = walk(tree, Verdicts(logits[i], best[i], processors, context), settings.tau, model.eos_ids)
            source = tree.source(path[-1])
            rejected = rows[b].rejected(trees[i], tree, path[-1])
            walks.append((b, tree, path, bonus, source, rejected))
            emitted = [tree.tokens[node] for node in path[1:]] + ([] if bonus is None else [bonus])
            _tell(on_text, b, rows[b].emit(emitted, len(path) - 1, source))
        cache.keep([path for _, _, path, *_ in walks])

        seconds = perf_counter() - begun
        for b, tree, path, bonus, source, rejected in walks:
            rows[b].steps.append(Step(len(tree) - 1, len(path) - 1, bonus is not None, source, seconds, rejected))
        budget.spent(len(live), tokens.shape[1], verify_seconds, seconds - verify_seconds)
        verifying += verify_seconds
        forwards += 1

    seconds = perf_counter() - prefilled
    times = StageTimes(
        encode=prefill.encode_seconds,
        prefill=prefilled - started - prefill.encode_seconds,
        decode=seconds,
        host=seconds - verifying,
    )
    return Decoded(tuple(row.result(prefill.image_token) for row in rows), times, forwards)


def best_tokens(logits: torch.Tensor) -> list[Any]:
    """The argmax of logits (..., V), as lists. Raises `TargetError` if one is NaN: to argmax NaN is the largest, so
    looking at the winners finds it."""
    best = logits.argmax(-1)
    if logits.gather(-1, best[..., None]).isnan().any():
        raise TargetError(
            f"the model computed NaN instead of scores, in {str(logits.dtype).removeprefix('torch.')}; a wider type "
            "(engine.dtype=bf16 or fp32) may help, else its weights are damaged"
        )
    found: list[Any] = best.tolist()
    return found


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


def _drop_finished(live: list[int], rows: Sequence[Row], cache: RaggedCache) -> list[int]:
    """The rows still to be decoded. The cache drops the others at once: that costs about as much as one more pass would
    spend on reading them."""
    going = [i for i, b in enumerate(live) if rows[b].finish_reason is None]
    if 0 < len(going) < len(live):
        cache.select_rows(going)
    return [live[i] for i in going]


def _tell(on_text: OnText | None, row: int, text: str) -> None:
    if on_text is not None and text:
        on_text(row, text)
