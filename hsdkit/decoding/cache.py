"""The ragged KV cache: rows of different length in preallocated tensors, written by slot, compacted after each walk.

A `transformers` `Cache`, so every architecture can use it unpatched. Prompts are right padded: the padding's keys lie
after the row's own tokens, no mask ever shows them, and the first steps overwrite them.

Letters: B rows, H key/value heads, C capacity, D head size, K packed tokens of a verification.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import Cache, CacheLayerMixin

#: Slots allocated beyond the prompt, and the factor by which a full cache grows.
HEADROOM = 256
GROWTH = 1.5


class RaggedLayer(CacheLayerMixin):
    """One layer's keys and values, (B, H, C, D) each; created from the first it is given, so layers may differ."""

    is_sliding = False
    keys: torch.Tensor
    values: torch.Tensor
    #: Where it lies when it is not in main memory for a while.
    home: torch.device

    def __init__(self, cache: RaggedCache) -> None:
        super().__init__()
        self.cache = cache

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys = _empty(key_states, self.cache.capacity)
        self.values = _empty(value_states, self.cache.capacity)
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        keys, values, view = self.keys, self.values, self.cache.view
        if self.cache.slots is None:
            start = self.cache.start
            keys[:, :, start:view] = key_states
            values[:, :, start:view] = value_states
        else:
            rows, slots = self.cache.slots
            keys[rows, :, slots] = key_states.transpose(1, 2)
            values[rows, :, slots] = value_states.transpose(1, 2)
        return keys[:, :, :view], values[:, :, :view]

    def get_seq_length(self) -> int:
        return self.cache.start

    def get_max_length(self) -> int:
        return -1

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.cache.view, 0


def _empty(states: torch.Tensor, capacity: int) -> torch.Tensor:
    """Zeros, never uninitialised memory: a masked NaN would still spoil the weighted sum (0 * NaN)."""
    return states.new_zeros(states.shape[0], states.shape[1], capacity, states.shape[3])


class RaggedCache(Cache):
    """Keys and values of B rows; row b holds `lengths[b]` tokens.

    One step is `begin(K)`, a forward pass that writes K tokens behind each row, `keep(paths)`. `view` is the number of
    slots attention sees in the pass.
    """

    layers: list[RaggedLayer]  # type: ignore[assignment]

    def __init__(self, most: int | None = None) -> None:
        """`most`: tokens of all rows together beyond which growing makes no room to spare."""
        super().__init__(layers=[])
        self.most = most
        self.lengths = np.zeros(0, np.int64)
        #: Of each row, how many of its tokens are its prompt.
        self.prompts = np.zeros(0, np.int64)
        self.capacity = 0
        self.view = 0
        self.start = 0
        #: (row index (B, 1), slot (B, K)) of the running pass; None when all rows write the slots start..view.
        self.slots: tuple[torch.Tensor, torch.Tensor] | None = None

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        while len(self.layers) <= layer_idx:
            self.layers.append(RaggedLayer(self))
        return self.layers[layer_idx].update(key_states, value_states)

    def begin_prompt(self, lengths: Sequence[int], padded: int, capacity: int = 0) -> None:
        """Before the prefill of `padded` slots a row, of which the first `lengths[b]` of row b are tokens."""
        self.lengths = np.asarray(lengths, np.int64)
        self.prompts = self.lengths.copy()
        self.capacity = max(padded + HEADROOM, capacity)
        self.start, self.view, self.slots = 0, padded, None

    def begin(self, width: int) -> None:
        """Before a pass that writes `width` tokens behind every row; grows the layers where they would not fit."""
        longest = self.longest
        self.start, self.view = longest, longest + width
        if self.view > self.capacity:
            spare = int(self.capacity * GROWTH)
            if self.most is not None:
                spare = min(spare, self.most // len(self.lengths))
            self._grow(max(self.view, spare))
        if (self.lengths == longest).all():
            self.slots = None
        else:
            device = self.layers[0].keys.device
            rows = torch.arange(len(self.lengths), device=device)[:, None]
            slots = torch.from_numpy(self.lengths[:, None] + np.arange(width)).to(device)
            self.slots = rows, slots

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Keep of each row the packed nodes `paths[b]` (ascending, the root first) and forget the rest of the pass.

        Depth-first packing puts the likeliest chain first, so a path usually lies in place already and nothing moves.
        """
        moves = [
            (row, length + node, length + place)
            for row, (length, path) in enumerate(zip(self.lengths.tolist(), paths, strict=True))
            if path[-1] != len(path) - 1
            for place, node in enumerate(path)
            if node != place
        ]
        if moves:
            self._move(torch.tensor(moves))
        self.lengths += [len(path) for path in paths]

    @property
    def longest(self) -> int:
        """Tokens of the longest row; 0 without rows."""
        return int(self.lengths.max(initial=0))

    @property
    def token_bytes(self) -> int:
        """Bytes that the keys and values of one token take in all layers that have been written to."""
        return sum(
            states.shape[1] * states.shape[3] * states.element_size()
            for layer in self.layers
            for states in (layer.keys, layer.values)
        )

    def join(self, other: RaggedCache) -> None:
        """Add the rows of `other` behind the present ones; `other` is used up. One tensor at a time, so that never
        more than one of them exists twice."""
        lengths = np.concatenate((self.lengths, other.lengths))
        capacity = int(lengths.max()) + HEADROOM
        for mine, theirs in zip(self.layers, other.layers, strict=True):
            for name in ("keys", "values"):
                parts = getattr(mine, name), getattr(theirs, name)
                rows, heads, _, size = parts[0].shape
                new = parts[0].new_zeros(rows + parts[1].shape[0], heads, capacity, size)
                for block, part, longest in zip(
                    (new[:rows], new[rows:]), parts, (self.longest, other.longest), strict=True
                ):
                    block[:, :, :longest] = part[:, :, :longest]
                setattr(mine, name, new)
                delattr(theirs, name)
                del parts, part, new
        self.capacity = capacity
        self.lengths, self.prompts = lengths, np.concatenate((self.prompts, other.prompts))

    def split_off(self, first: int) -> RaggedCache:
        """Take out the rows from `first` on, as a cache of their own in main memory, without room to spare."""
        other = RaggedCache(self.most)
        other.lengths, other.prompts = self.lengths[first:].copy(), self.prompts[first:].copy()
        other.capacity = other.longest
        for layer in self.layers:
            kept = RaggedLayer(other)
            kept.home = layer.keys.device
            kept.keys, kept.values = (
                states[first:, :, : other.capacity].to("cpu", copy=True) for states in (layer.keys, layer.values)
            )
            kept.is_initialized = True
            other.layers.append(kept)
        self.select_rows(range(first))
        return other

    def come_back(self) -> None:
        """From main memory to where the layers were split off."""
        for layer in self.layers:
            layer.keys, layer.values = layer.keys.to(layer.home), layer.values.to(layer.home)

    def select_rows(self, rows: Sequence[int]) -> None:
        """Keep only these rows, in this order."""
        for layer in self.layers:
            index = torch.tensor(rows, device=layer.keys.device)
            layer.keys = layer.keys.index_select(0, index)
            layer.values = layer.values.index_select(0, index)
        self.lengths, self.prompts = self.lengths[list(rows)], self.prompts[list(rows)]

    def _move(self, moves: torch.Tensor) -> None:
        """Copy slots within rows; `moves` (M, 3) holds row, source and target of each."""
        flat: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        for layer in self.layers:
            for states in (layer.keys, layer.values):
                _, heads, capacity, size = states.shape
                # As a rule once: layers alike share the indices of their (row, head, slot) vectors.
                if heads not in flat:
                    row, slots = moves[:, 0, None, None], moves[:, None, 1:]
                    index = (row * heads + torch.arange(heads)[:, None]) * capacity + slots
                    source, target = index.reshape(-1, 2).to(states.device).t().contiguous()
                    flat[heads] = source, target
                source, target = flat[heads]
                vectors = states.view(-1, size)
                vectors.index_copy_(0, target, vectors.index_select(0, source))

    def _grow(self, capacity: int) -> None:
        """One tensor at a time, so that never more than one of them exists twice."""
        used = self.longest
        for layer in self.layers:
            for name in ("keys", "values"):
                old = getattr(layer, name)
                new = _empty(old, capacity)
                new[:, :, :used] = old[:, :, :used]
                setattr(layer, name, new)
                del old, new
        self.capacity = capacity
