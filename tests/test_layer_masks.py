"""Masks of layers that see less than everything: by hand, and the refusal of kinds without a rule."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hsdkit_plugins.engines.layer_masks import LayerMasks, within_window

from hsdkit.decoding.cache import RaggedCache
from hsdkit.errors import TargetError


def cache(prompts: list[int], lengths: list[int], width: int) -> RaggedCache:
    made = RaggedCache()
    made.begin_prompt(prompts, max(prompts))
    made.lengths[:] = lengths
    made.view = max(lengths) + width
    return made


def test_the_prompt_and_the_last_tokens_are_seen() -> None:
    """Two rows with prompts of 2 and 1 tokens and 5 and 3 in all, one token each: window 2 is itself and the last."""
    seen = within_window(None, torch.tensor([[5], [3]]), cache([2, 1], [5, 3], 1), 2)[:, 0, 0].int().tolist()
    assert seen[0] == [1, 1, 0, 0, 1, 1]
    assert seen[1][:4] == [1, 0, 1, 1]


def test_ancestors_are_counted_by_depth_not_by_slot() -> None:
    """A root with two chains, 0-1-2 and 0-3: node 3 is one deep, though three slots behind the root."""
    positions = torch.tensor([[4, 5, 6, 5]])
    tree = torch.ones((1, 1, 4, 8), dtype=torch.bool)
    tree[0, 0, :, 4:] = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 0, 0, 1]], dtype=torch.bool)
    seen = within_window(tree, positions, cache([1], [4], 4), 3)[0, 0].int().tolist()
    assert seen == [
        [1, 0, 1, 1, 1, 0, 0, 0],
        [1, 0, 0, 1, 1, 1, 0, 0],
        [1, 0, 0, 0, 1, 1, 1, 0],
        [1, 0, 0, 1, 1, 0, 0, 1],
    ]


def test_full_attention_gets_the_tree_mask_as_it_is() -> None:
    masks = LayerMasks(SimpleNamespace(layer_types=["full_attention"]), "Model")
    mask = torch.ones((1, 1, 1, 5), dtype=torch.bool)
    assert masks.of_pass(mask, torch.tensor([[4]]), cache([1], [4], 1), lambda m: m) is mask


def test_each_kind_of_layer_gets_its_own() -> None:
    config = SimpleNamespace(layer_types=["full_attention", "reference_sliding_attention"], sliding_window=2)
    made = LayerMasks(config, "Model").of_pass(None, torch.tensor([[4]]), cache([1], [4], 1), lambda m: m)
    assert made["full_attention"] is None
    assert made["reference_sliding_attention"].int().flatten().tolist() == [1, 0, 0, 1, 1]


def test_layers_without_a_rule_are_refused() -> None:
    with pytest.raises(TargetError, match=r"Model has layers of type chunked_attention; tree verification knows"):
        LayerMasks(SimpleNamespace(layer_types=["full_attention", "chunked_attention"]), "Model")
