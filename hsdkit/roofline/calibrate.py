"""Measures this machine: passes of small random decoders, some too large for its caches, in the way an engine makes
them."""

from __future__ import annotations

import inspect
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from time import perf_counter, process_time
from typing import Any, TypeVar

import numpy as np
import torch

from hsdkit.decoding.cache import RaggedCache
from hsdkit.roofline.machine import MeasuredMachine
from hsdkit.versions import processor

K = TypeVar("K")

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
#: Hidden size, heads and feed-forward of the layers measured; the last lies in memory, not in caches.
_SIZES = ((64, 2, 128), (256, 8, 704), (768, 12, 2304))
_NEAR, _FAR = 64, 1536
#: No pass sees as much as the one before.
_VARIED = 32
#: The quantile of repeated measurements that counts: others on the machine only ever add.
USUAL = 0.25
#: Passes of one token that are made one after another.
_STREAK = 8
#: Seconds for which a model makes passes in each of its turns.
_TURN = 0.05
_TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@torch.inference_mode()
def calibrate(dtype: str = "fp32", threads: int | None = None, seconds: float = 12.0) -> MeasuredMachine:
    """Measure for about `seconds`, with so many CPU threads (None: as torch is set). Every pass is made several times,
    all in turn, so that a busy moment does not hit one kind alone, and the lower quartile counts: others on the machine
    only ever add."""
    with torch_threads(threads):
        timed = {
            (size, layers, cached): _timer(size, layers, cached, _TYPES[dtype])
            for size, layers, cached in [(0, 1, _NEAR), (0, 3, _NEAR), (1, 2, _NEAR), (1, 2, _FAR), (2, 2, _NEAR)]
        }
        usual = _usual(timed, seconds)

    def row(size: int, layers: int, cached: int = _NEAR) -> np.ndarray:
        found = np.array([usual[size, layers, cached, w] for w in WIDTHS])
        return np.minimum.accumulate(found[::-1])[::-1]  # noise only ever adds: no pass takes longer than a wider one

    smallest = (row(0, 3) - row(0, 1)) / 2
    base = row(0, 1) - smallest
    keys = (row(1, 2, _FAR) - row(1, 2)) / (2 * (_FAR - _NEAR) * _SIZES[1][0])
    looking = keys * (_NEAR + np.array(WIDTHS))
    layers = [smallest, *((row(s, 2) - base) / 2 for s in (1, 2))]
    layers = [r - looking * _SIZES[s][0] for s, r in enumerate(layers)]
    weights = [4 * h * h + 3 * h * ffn for h, _, ffn in _SIZES]
    rising = np.maximum.accumulate(np.maximum(layers, 1e-9), axis=0)
    return MeasuredMachine(
        f"this CPU ({processor() or platform.machine()}, threads={threads or torch.get_num_threads()})",
        dtype,
        WIDTHS,
        tuple(weights),
        tuple(np.maximum(base, 0.0).tolist()),
        tuple(tuple(r.tolist()) for r in rising),
        tuple(np.maximum(keys, 0.0).tolist()),
    )


def _usual(runs: dict[Any, Callable[[int], float]], patience: float) -> dict[Any, float]:
    """The usual seconds of each model's passes of each width. They follow each other as in a run: those of one token
    one after another, as in plain decoding, and find the caches as they left them; others after one of another
    shape."""
    found: dict[Any, list[float]] = {(*key, width): [] for key in runs for width in WIDTHS}
    begun = perf_counter()
    rounds = 0
    while rounds < 3 or perf_counter() - begun < patience:
        rounds += 1
        for key, run in runs.items():
            spent = 0.0
            while spent < _TURN:
                run(1)
                for width in in_turn(WIDTHS):
                    seconds = run(width)
                    spent += seconds
                    found[*key, width].append(seconds)
    return usual(found)


def in_turn(widths: Sequence[int]) -> tuple[int, ...]:
    """The widths of a turn, of which the first is one token: as in plain decoding, passes of one token follow each
    other."""
    return (*[1] * _STREAK, *widths[1:])


def usual(found: Mapping[K, Sequence[float]]) -> dict[K, float]:
    """The quantile that counts of each kind's seconds."""
    return {kind: float(np.quantile(times, USUAL)) for kind, times in found.items()}


def _timer(size: int, layers: int, cached: int, dtype: torch.dtype) -> Callable[[int], float]:
    """A function that makes a pass of that width behind `cached` made-up tokens and returns its seconds."""
    import transformers

    hidden, heads, ffn = _SIZES[size]
    config = transformers.Qwen3Config(
        vocab_size=64,
        hidden_size=hidden,
        intermediate_size=ffn,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=hidden // heads,
    )
    model: Any = transformers.Qwen3ForCausalLM(config)
    model.set_attn_implementation("sdpa")
    model.to(dtype=dtype).eval()
    # Of one thread, its own time on a core: what others do on the machine does not count.
    clock = process_time if torch.get_num_threads() == 1 else perf_counter
    cache = RaggedCache()
    cache.begin_prompt([1], 1, capacity=cached + _VARIED + WIDTHS[-1])
    token = torch.zeros((1, 1), dtype=torch.int64)
    # Renamed in transformers 5.
    kept = {"cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values": cache}
    model(input_ids=token, position_ids=token, use_cache=True, **kept)

    longer = cycle(range(_VARIED))

    def run(width: int) -> float:
        cache.lengths[:] = now = cached + next(longer)
        tokens = torch.zeros((1, width), dtype=torch.int64)
        shown = torch.ones((1, 1, width, now + width), dtype=torch.bool)
        begun = clock()
        cache.begin(width)
        mask = torch.zeros(shown.shape, dtype=dtype).masked_fill_(~shown, -torch.inf) if width > 1 else None
        out = model(input_ids=tokens, position_ids=tokens + now, attention_mask=mask, use_cache=True, **kept)
        out.logits.argmax(-1).tolist()
        return clock() - begun

    return run


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    before = torch.get_num_threads()
    if number:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
