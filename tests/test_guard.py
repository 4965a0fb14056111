"""The repetition guard: stops real loops, leaves legitimate repetition alone, and depends on the tokens alone."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsdkit.decoding.guard import COPIES, EVERY, SPAN, Loop, LoopGuard


def text(length: int, seed: int = 0) -> list[int]:
    rng = random.Random(seed)
    return [rng.randrange(50, 250) for _ in range(length)]


def fed(tokens: list[int], sizes: list[int]) -> Loop | None:
    """What a guard says when tokens arrive in pieces of these sizes, over and over."""
    guard, seen, turn = LoopGuard(), 0, 0
    while seen < len(tokens):
        seen += sizes[turn % len(sizes)]
        turn += 1
        if loop := guard.check(tokens[:seen]):
            return loop
    return None


@pytest.mark.parametrize("period", [1, 2, 7, 60, 250, 399])
def test_a_loop_is_found_and_its_first_copy_kept(period: int) -> None:
    before, block = text(500), text(period, seed=1)
    tokens = before + block * (4000 // period + 1)
    loop = fed(tokens, [1])
    assert loop is not None
    assert loop.keep == len(before) + period
    assert loop.seen <= len(before) + max(SPAN, COPIES * period) + EVERY


@settings(max_examples=25)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=5), st.integers(1, 100), st.integers(0, 400))
def test_it_stops_at_the_same_token_whatever_the_steps(sizes: list[int], period: int, before: int) -> None:
    tokens = text(before) + text(period, seed=2) * (2000 // period)
    assert fed(tokens, sizes) == fed(tokens, [1])


@pytest.mark.parametrize(
    "repeated",
    [
        [46] * 600,  # a dot leader, a token a dot
        [268, 269] * 300,  # 300 empty table cells
        [266, *[268, 269] * 10, 267] * 30,  # 30 empty rows of 10 cells
        text(150) * 4,  # a paragraph that occurs four times
    ],
)
def test_legitimate_repetition_is_left_alone(repeated: list[int]) -> None:
    assert fed(text(200, seed=3) + repeated + text(300, seed=4), [1]) is None


def test_rows_that_differ_in_one_token_are_no_loop() -> None:
    rows = [[266, 268, 1000 + k, 269, 268, 48, 269, 267] for k in range(300)]
    assert fed([token for row in rows for token in row], [1]) is None
