"""A deadline ends the sequence with the step that is under way: what was written is what plain decoding begins with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest
import torch
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from models import SimpleTarget, page
from scripted import Scripted

from hsdkit.decoding.budget import Budget
from hsdkit.decoding.loop import decode
from hsdkit.protocols import DecodeRequest, DecodeSettings

SETTINGS = DecodeSettings(max_new_tokens=60, stop_loops=False)
REQUESTS = [DecodeRequest(page(96, 64, seed=k), "The table below lists"[: 4 + 5 * k]) for k in range(2)]


@pytest.fixture(scope="module")
def engine(random_target: Callable[[str], SimpleTarget]) -> TransformersEngine:
    torch.set_num_threads(1)
    return TransformersEngine(TransformersConfig(), random_target("qwen3_vl"))


@pytest.fixture(scope="module")
def plain(engine: TransformersEngine) -> list[list[int]]:
    decoded = decode(engine.model, REQUESTS, SETTINGS, [None, None], Budget(16, None))
    return [list(s.tokens) for s in decoded.sequences]


@pytest.mark.parametrize("looks", [1, 2, 3, 5, 9])
def test_what_is_written_until_then_is_kept_and_is_what_plain_decoding_begins_with(
    looks: int, engine: TransformersEngine, plain: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = count(1)
    monkeypatch.setattr("hsdkit.decoding.row.monotonic", lambda: next(ticks))  # a second a step
    settings = replace(SETTINGS, deadline=looks)
    drafts = Scripted(plain[0], "noisy", seed=looks)
    (sequence,) = decode(engine.model, REQUESTS[:1], settings, [drafts], Budget(4, None)).sequences
    assert sequence.finish_reason == "time"
    assert len(sequence.steps) == looks - 1  # the first look is at the prefill's token
    assert list(sequence.tokens) == plain[0][: len(sequence.tokens)]
    assert "".join(sequence.pieces) == sequence.text


def test_a_deadline_that_is_over_leaves_the_first_token(engine: TransformersEngine, plain: list[list[int]]) -> None:
    decoded = engine.decode(REQUESTS, replace(SETTINGS, max_packed=1, self_lookup=False, deadline=0.0))
    assert [list(s.tokens) for s in decoded.sequences] == [row[:1] for row in plain]
    assert {s.finish_reason for s in decoded.sequences} == {"time"}


def test_one_that_is_far_away_changes_nothing(engine: TransformersEngine, plain: list[list[int]]) -> None:
    decoded = engine.decode(REQUESTS, replace(SETTINGS, max_packed=4, deadline=1e12))
    assert [list(s.tokens) for s in decoded.sequences] == plain
    assert {s.finish_reason for s in decoded.sequences} == {"length"}
