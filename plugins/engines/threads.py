"""How many CPU threads a model should use: sharing the work of a small model, or of a busy machine, slows it down."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

import torch

from hsdkit.decoding.budget import MAX_PACKED

#: Models with more parameters than this always gain from all threads, and are slow to try with one.
SMALL = 50_000_000

#: What torch would use by itself; read before any engine changes it for the process.
ALL_THREADS = torch.get_num_threads()

#: Patches of an ordinary page.
PAGE_PATCHES = 2048


def fastest_threads(run: Callable[[int], float], widths: Sequence[int] = (1, 1, 1, MAX_PACKED), rounds: int = 3) -> int:
    """One thread or all that torch would use, whichever makes verification passes of these widths faster in the mean.

    `run(width)` makes a pass and returns its seconds. Leaves torch's number of threads as it was.
    """
    default = torch.get_num_threads()
    if default == 1:
        return 1
    one = all_ = 0.0
    try:
        for width in tuple(widths) * rounds:
            torch.set_num_threads(1)
            one += run(width)
            torch.set_num_threads(default)
            all_ += run(width)
            if all_ > 10 * one:  # threads that wait for a busy core: this can only get longer
                break
    finally:
        torch.set_num_threads(default)
    return 1 if one <= all_ else default


@torch.inference_mode()
def image_work(patches: int) -> float:
    """Seconds of attention among so many patches, the largest part of reading a page image with a small model."""
    states = torch.zeros(1, 4, patches, 32)
    begun = perf_counter()
    torch.nn.functional.scaled_dot_product_attention(states, states, states)
    return perf_counter() - begun


@contextmanager
def torch_threads(number: int | None) -> Iterator[None]:
    """So many threads inside; None leaves them as they are."""
    before = torch.get_num_threads()
    if number is not None:
        torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
