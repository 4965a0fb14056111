"""Attention for training: on a CPU with AMX a kernel of our own, since torch's backward takes half of every step.

`attention_amx.cpp` is compiled by g++ when it is first wanted. Without g++, or without AMX, torch's kernel is used.
"""

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

_HEAD_DIM = 32  # the only one the kernel is written for
_FLAGS = (
    "-O3",
    "-std=c++17",
    "-shared",
    "-fPIC",
    "-mavx512f",
    "-mavx512bw",
    "-mavx512bf16",
    "-mamx-tile",
    "-mamx-bf16",
)


@cache
def amx_kernel() -> ctypes.CDLL | None:
    """The compiled kernel; None where the CPU has no AMX or there is no g++."""
    cpu = Path("/proc/cpuinfo")
    flags = cpu.read_text().split() if cpu.exists() else []
    if "amx_bf16" not in flags or "avx512_bf16" not in flags:
        return None
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "attention.so"
        source = Path(__file__).with_name("attention_amx.cpp")
        try:
            subprocess.run(["g++", *_FLAGS, str(source), "-o", str(library)], check=True, capture_output=True)
            kernel = ctypes.CDLL(str(library))
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"attention_amx.cpp was not compiled, so training is slower: {error}")
            return None
    shape = [ctypes.c_long, ctypes.c_long, ctypes.c_int, ctypes.c_float]
    kernel.attend_forward.argtypes = [ctypes.c_void_p] * 5 + shape
    kernel.attend_backward.argtypes = [ctypes.c_void_p] * 9 + shape
    return kernel


def _call(name: str, tensors: tuple[torch.Tensor, ...], causal: bool) -> None:
    batch, heads, length, dim = tensors[0].shape
    if getattr(amx_kernel(), name)(*(t.data_ptr() for t in tensors), batch * heads, length, int(causal), dim**-0.5):
        raise OSError("the kernel of the operating system refuses AMX; train with --device cuda, or on another CPU")


class _AmxAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out, lse = torch.empty_like(q), torch.empty(q.shape[:3], dtype=torch.float32)
        _call("attend_forward", (q, k, v, out, lse), causal)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.causal = causal
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        q, k, v, out, lse = ctx.saved_tensors
        found = tuple(torch.empty_like(q) for _ in range(3))
        _call("attend_backward", (q, k, v, out, grads[0].contiguous(), lse, *found), ctx.causal)
        return (*found, None)


class _DenseGradient(torch.autograd.Function):
    """Identity; makes the gradient contiguous on its way back: torch's CPU kernel is slow on strided ones."""

    @staticmethod
    def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0].contiguous()


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """Scaled dot-product attention over (B, heads, L, dim)."""
    fits = q.device.type == "cpu" and q.dtype == torch.bfloat16 and q.shape[-1] == _HEAD_DIM and q.shape == k.shape
    if fits and amx_kernel() is not None:
        return _AmxAttention.apply(q, k, v, causal)
    out = F.scaled_dot_product_attention(q.contiguous(), k.contiguous(), v.contiguous(), is_causal=causal)
    return _DenseGradient.apply(out)
