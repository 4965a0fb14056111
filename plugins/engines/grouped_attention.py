"""Scaled dot-product attention that keeps grouped keys and values grouped when several tokens are verified.

With a mask, `transformers`' own sdpa function copies every key and value head once for each query head of its group, in
every layer of every pass. Folding the query heads of a group into rows needs no copy: same numbers, less memory
traffic.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "hsdkit_grouped"


def grouped_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """`query` (B, H, K, D), `key` and `value` (B, H / groups, L, D), `attention_mask` (B, 1, K, L) additive; returns
    (B, K, H, D). Whatever is not the verification of several tokens is left to the stock function."""
    rows, heads, tokens, size = query.shape
    groups = heads // key.shape[1]
    plain = all(value is None for name, value in kwargs.items() if name in ("position_bias", "softcap"))
    if attention_mask is None or tokens == 1 or groups == 1 or not plain:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    folded = query.reshape(rows, heads // groups, groups * tokens, size)
    mask = attention_mask.repeat(1, 1, groups, 1)
    output = scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scaling)
    return output.reshape(rows, heads, tokens, value.shape[-1]).transpose(1, 2).contiguous(), None


def use_grouped_attention(model: Any) -> None:
    """Give the language part of `model` this attention, if it has grouped heads and would use stock sdpa."""
    config = model.config.get_text_config()
    grouped = (getattr(config, "num_key_value_heads", None) or config.num_attention_heads) < config.num_attention_heads
    if not grouped or config._attn_implementation != "sdpa":
        return
    AttentionInterface.register(NAME, grouped_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    if config is model.config:
        model.set_attn_implementation({"": NAME})
    else:
        part = next(name for name in model.config.sub_configs if getattr(model.config, name) is config)
        model.set_attn_implementation({part: NAME})
