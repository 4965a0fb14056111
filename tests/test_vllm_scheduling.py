"""Our scheduler in vLLM, over a fake of vLLM's: drafts go in, the output is what the model says, nothing is raised."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from fake_vllm import LOOPED, FakeRequest, FakeScheduler, finish, step
from hsdkit_plugins.engines._vllm.cost import PROBE, PROBE_EVERY, StepCost
from hsdkit_plugins.engines._vllm.message import KEY, Message, read_record
from hsdkit_plugins.engines._vllm.scheduling import ATTRIBUTE
from models import make_tokenizer

END = 3
TEXT = "The harbour received 1,204 ships in the year 2024, of which 311 were ferries.\n\nDredging of the channel."


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer()


@pytest.fixture
def scheduler(tokenizer: Any) -> FakeScheduler:
    return FakeScheduler(tokenizer, len(tokenizer))


def request(tokenizer: Any, name: str, message: Message | None = None, text: str = TEXT, **more: Any) -> FakeRequest:
    answer = [*tokenizer.encode(text, add_special_tokens=False), END]
    extra = None if message is None else message.pack()
    return FakeRequest(name, answer, **({"extra_args": extra} | more))


def test_a_good_draft_saves_steps_and_the_record_tells_them(scheduler: FakeScheduler, tokenizer: Any) -> None:
    asked = request(tokenizer, "a", Message((TEXT,), self_lookup=False))
    scheduler.add_request(asked)
    last = finish(scheduler)["a"]
    record = read_record(last.stop_reason)
    assert asked.output_token_ids == asked.answer
    assert record is not None
    assert record.note == ""
    assert 1 + sum(s.emitted for s in record.steps) == len(asked.answer)
    assert len(record.steps) < len(asked.answer) / 4
    assert {s.source for s in record.steps if s.accepted} <= {"draft", "aligned", "head"}


@pytest.mark.parametrize("draft", ["", "Something else, of another page.", TEXT.upper(), TEXT[::-1], "\x00" * 9])
def test_no_draft_changes_what_is_said(scheduler: FakeScheduler, tokenizer: Any, draft: str) -> None:
    asked = request(tokenizer, "a", Message((draft,)))
    scheduler.add_request(asked)
    finish(scheduler)
    assert asked.output_token_ids == asked.answer


def test_requests_without_a_message_are_left_alone(scheduler: FakeScheduler, tokenizer: Any) -> None:
    plain, drafted = request(tokenizer, "a"), request(tokenizer, "b", Message((TEXT,)))
    scheduler.add_request(plain)
    scheduler.add_request(drafted)
    last = finish(scheduler)
    assert last["a"].stop_reason is None
    assert not hasattr(plain, ATTRIBUTE)
    assert plain.output_token_ids == plain.answer == drafted.output_token_ids


def test_no_step_verifies_more_than_the_limits_leave(scheduler: FakeScheduler, tokenizer: Any) -> None:
    """The engine's own limit, the request's width, and what is left of its tokens and of the model's length."""
    scheduler.max_model_len = 50
    wide = request(tokenizer, "a", Message((TEXT,)), max_tokens=30)
    narrow = request(tokenizer, "b", Message((TEXT,), width=2))
    none = request(tokenizer, "c", Message((TEXT,), width=0))
    for each in (wide, narrow, none):
        scheduler.add_request(each)
    while scheduler.requests:
        step(scheduler)
        for each in scheduler.requests.values():
            assert len(each.spec_token_ids) <= 16
            assert each.num_tokens + len(each.spec_token_ids) < 50 or not each.spec_token_ids
            assert each.num_output_tokens + len(each.spec_token_ids) < each.max_tokens
        assert len(narrow.spec_token_ids) <= 2
        assert none.spec_token_ids == []


def test_tokens_that_the_model_does_not_know_are_never_drafted(tokenizer: Any) -> None:
    """An index beyond the embedding would end the engine and every request in it."""
    known = 200
    scheduler = FakeScheduler(tokenizer, known)
    asked = request(tokenizer, "a", Message((TEXT,)))
    scheduler.add_request(asked)
    while scheduler.requests:
        step(scheduler)
        assert all(token < known for token in asked.spec_token_ids)
    assert asked.output_token_ids == asked.answer


@pytest.mark.parametrize("hostile", [7, ["a"], "{", '{"format": 1, "drafts": 3}', "[" * 50_000])
def test_a_hostile_message_is_ignored_and_the_request_told(
    scheduler: FakeScheduler, tokenizer: Any, hostile: Any, caplog: pytest.LogCaptureFixture
) -> None:
    asked = [request(tokenizer, name, extra_args={KEY: hostile}) for name in "ab"]
    for each in asked:
        scheduler.add_request(each)
    with caplog.at_level(logging.WARNING):
        last = finish(scheduler)
    record = read_record(last["a"].stop_reason)
    assert record is not None
    assert record.note.startswith("drafts ignored")
    assert [each.output_token_ids for each in asked] == [each.answer for each in asked]


def test_a_tokenizer_that_cannot_be_used_costs_the_drafts_only(
    tokenizer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = FakeScheduler(RuntimeError("no such tokenizer"), len(tokenizer))
    asked = [request(tokenizer, name, Message((TEXT,))) for name in "ab"]
    with caplog.at_level(logging.WARNING):
        for each in asked:
            scheduler.add_request(each)
        last = finish(scheduler)
    assert len([r for r in caplog.records if "no such tokenizer" in r.getMessage()]) == 1
    record = read_record(last["b"].stop_reason)
    assert record is not None
    assert "no such tokenizer" in record.note
    assert asked[0].output_token_ids == asked[0].answer


def test_a_matcher_that_fails_midway_costs_the_drafts_only(
    scheduler: FakeScheduler, tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hsdkit.decoding.matching.aligned import AlignedMatcher

    calls = iter(range(100))
    propose = AlignedMatcher.propose

    def failing(self: AlignedMatcher, limit: int) -> Any:
        if next(calls) == 2:
            raise IndexError("broken")
        return propose(self, limit)

    monkeypatch.setattr(AlignedMatcher, "propose", failing)
    asked = request(tokenizer, "a", Message((TEXT,), width=3))
    scheduler.add_request(asked)
    record = read_record(finish(scheduler)["a"].stop_reason)
    assert asked.output_token_ids == asked.answer
    assert record is not None
    assert "broken" in record.note
    assert len(record.steps) == len(asked.answer) - 1 - sum(s.accepted for s in record.steps)


def test_what_only_repeats_itself_is_ended(scheduler: FakeScheduler, tokenizer: Any) -> None:
    looping = request(tokenizer, "a", Message(), text="again and " * 2000)
    scheduler.add_request(looping)
    last = finish(scheduler)["a"]
    assert looping.status == LOOPED
    assert len(looping.output_token_ids) < 1200
    assert last.finish_reason == "stop"
    free = request(tokenizer, "b", Message(stop_loops=False), text="again and " * 400)
    scheduler.add_request(free)
    finish(scheduler)
    assert free.output_token_ids == free.answer


def test_nothing_is_kept_of_requests_that_end_or_are_aborted(scheduler: FakeScheduler, tokenizer: Any) -> None:
    import gc
    import weakref

    kept = []
    for name in "abc":
        asked = request(tokenizer, name, Message((TEXT,)))
        scheduler.add_request(asked)
        kept += [weakref.ref(asked), weakref.ref(getattr(asked, ATTRIBUTE))]
        del asked
    step(scheduler)
    del scheduler.requests["c"]  # as vLLM does for an abort
    finish(scheduler)
    gc.collect()
    assert [ref() for ref in kept] == [None] * 6


# -- costs


def observed(step_seconds: float, token_seconds: float) -> StepCost:
    cost = StepCost()
    rng = np.random.default_rng(0)
    for n in rng.integers(1, 65, 200):
        cost.observe(int(n), (step_seconds + token_seconds * n) * rng.uniform(0.9, 1.1))
    return cost


def test_the_line_of_costs_is_found() -> None:
    step_seconds, token_seconds = observed(0.02, 0.001).line
    assert step_seconds == pytest.approx(0.02, rel=0.25)
    assert token_seconds == pytest.approx(0.001, rel=0.25)


def test_where_tokens_are_free_all_are_verified_and_where_they_cost_only_the_likely() -> None:
    likely, doubtful = 0.98 ** np.arange(1, 65), 0.5 ** np.arange(1, 65)
    assert observed(0.02, 0.0).worthwhile([likely], 1)[0] > 50
    dear = observed(0.01, 0.01)
    good, poor = dear.worthwhile([likely, doubtful], 2)
    assert 3 < good < 64
    assert poor <= 1
    assert StepCost().worthwhile([likely], 1) == [64]


def test_drafts_that_are_never_worth_it_are_tried_again_now_and_then() -> None:
    cost = observed(0.0, 0.01)
    hopeless = 0.05 ** np.arange(1, 9)
    widths = [cost.worthwhile([hopeless], 1)[0] for _ in range(3 * PROBE_EVERY)]
    assert widths.count(PROBE) == 3
    assert widths.count(0) == len(widths) - 3
