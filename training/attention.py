"""Attention for training on a CPU. Torch's CPU kernel is three times slower on strided tensors: it gets dense ones."""

from typing import Any

import torch
import torch.nn.functional as F


class _DenseGradient(torch.autograd.Function):
    """Identity; makes the gradient contiguous on its way back."""

    @staticmethod
    def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0].contiguous()


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """Scaled dot-product attention over (B, heads, L, dim)."""
    out = F.scaled_dot_product_attention(q.contiguous(), k.contiguous(), v.contiguous(), is_causal=causal)
    return _DenseGradient.apply(out)
