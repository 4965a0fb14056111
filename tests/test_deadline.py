"""A deadline ends the sequence with the step that is under way: what was written is what plain decoding begins with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from unittest.mock import patch

import pytest
import torch
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from hypothesis import given, settings
from hypothesis import strategies as st
from models import SimpleTarget, page
from scripted import SPOILINGS, Scripted, Spoiling

from hsdkit.decoding.budget import Budget
from hsdkit.decoding.call import Call, Group
from hsdkit.decoding.loop import decode
from hsdkit.decoding.scheduler import Scheduler
from hsdkit.protocols import DecodeRequest, DecodeSettings

SETTINGS = DecodeSettings(max_new_tokens=60, stop_loops=False)
REQUESTS = [DecodeRequest(page(96, 64, seed=k), "The table below lists"[: 4 + 5 * k]) for k in range(3)]


@pytest.fixture(scope="module")
def engine(random_target: Callable[[str], SimpleTarget]) -> TransformersEngine:
    torch.set_num_threads(1)
    return TransformersEngine(TransformersConfig(), random_target("qwen3_vl"))


@pytest.fixture(scope="module")
def plain(engine: TransformersEngine) -> list[list[int]]:
    decoded = decode(engine.model, REQUESTS, SETTINGS, [None] * 3, Budget(16, None))
    return [list(s.tokens) for s in decoded.sequences]


@pytest.mark.parametrize("looks", [1, 2, 3, 5, 9])
def test_what_is_written_until_then_is_kept_and_is_what_plain_decoding_begins_with(
    looks: int, engine: TransformersEngine, plain: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = count(1)
    monkeypatch.setattr("hsdkit.decoding.row.monotonic", lambda: next(ticks))  # a second a step
    limited = replace(SETTINGS, deadline=looks)
    drafts = Scripted(plain[0], "noisy", seed=looks)
    (sequence,) = decode(engine.model, REQUESTS[:1], limited, [drafts], Budget(4, None)).sequences
    assert sequence.finish_reason == "time"
    assert len(sequence.steps) == looks - 1  # the first look is at the prefill's token
    assert list(sequence.tokens) == plain[0][: len(sequence.tokens)]
    assert "".join(sequence.pieces) == sequence.text


def test_a_deadline_that_is_over_leaves_the_first_token(engine: TransformersEngine, plain: list[list[int]]) -> None:
    decoded = engine.decode(REQUESTS, replace(SETTINGS, max_packed=1, self_lookup=False, deadline=0.0))
    assert [list(s.tokens) for s in decoded.sequences] == [row[:1] for row in plain]
    assert {s.finish_reason for s in decoded.sequences} == {"time"}


def test_a_page_that_never_ends_ends_in_time(engine: TransformersEngine, plain: list[list[int]]) -> None:
    begun = time.monotonic()
    endless = replace(SETTINGS, max_new_tokens=1_000_000, max_packed=1, self_lookup=False, deadline=begun + 1.5)
    (sequence,) = engine.decode(REQUESTS[:1], endless).sequences
    assert sequence.finish_reason == "time"
    shared = min(60, len(sequence.tokens))
    assert list(sequence.tokens[:shared]) == plain[0][:shared]
    assert 1.5 <= time.monotonic() - begun < 15  # of a step and what the machine does beside it


def test_one_that_is_far_away_changes_nothing(engine: TransformersEngine, plain: list[list[int]]) -> None:
    decoded = engine.decode(REQUESTS, replace(SETTINGS, max_packed=4, deadline=1e12))
    assert [list(s.tokens) for s in decoded.sequences] == plain
    assert {s.finish_reason for s in decoded.sequences} == {"length"}


CALLERS = st.tuples(st.none() | st.integers(0, 40), st.sampled_from(SPOILINGS), st.integers(1, 8))


@settings(max_examples=10)
@given(st.tuples(CALLERS, CALLERS, CALLERS))
def test_rows_of_others_that_share_the_steps_notice_nothing(
    engine: TransformersEngine, plain: list[list[int]], callers: tuple[tuple[int | None, Spoiling, int], ...]
) -> None:
    """Three callers in one batch, each with a deadline of its own or none: whoever has none gets all of what plain
    decoding writes, whoever has one the beginning of it, up to the step in which the deadline was."""
    scheduler = Scheduler(engine.model)
    calls = []
    for (deadline, spoiling, width), request, truth in zip(callers, REQUESTS, plain, strict=True):
        calls.append(Call(1, replace(SETTINGS, deadline=deadline), Budget(width, None)))
        scheduler.add(Group(calls[-1], 0, engine.model.prepare([request]), [Scripted(truth, spoiling)]))
    clock = 0
    with patch("hsdkit.decoding.row.monotonic", lambda: clock):
        while not all(call.done for call in calls):
            clock += 1  # a second a step
            scheduler.step()
    for (deadline, *_), call, truth in zip(callers, calls, plain, strict=True):
        (sequence,) = call.decoded().sequences
        assert list(sequence.tokens) == truth[: len(sequence.tokens)]
        if sequence.finish_reason == "length":
            assert list(sequence.tokens) == truth
        else:
            assert sequence.finish_reason == "time"
            assert deadline is not None
            assert len(sequence.steps) <= deadline
        if deadline is None:
            assert sequence.finish_reason == "length"
