"""Rows of many callers in one batch: each says what it says alone, whoever joins, leaves, waits or fails beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest
import torch
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from models import SimpleTarget, page
from scripted import SPOILINGS, Scripted

from hsdkit.decoding.budget import Budget, CostCurve
from hsdkit.decoding.call import Call, Group
from hsdkit.decoding.loop import decode
from hsdkit.decoding.scheduler import Scheduler
from hsdkit.errors import TargetError
from hsdkit.protocols import DecodeRequest, DecodeSettings

ARCHITECTURES = ("qwen2_5_vl", "qwen3_vl", "hunyuan_vl", "llama")
TOKENS = 24
REQUESTS = tuple(
    DecodeRequest(page(64 + 32 * (k % 3), 64 + 16 * (k % 2), seed=k), "The table below lists them"[: 3 + 3 * k])
    for k in range(6)
)
STEEP = CostCurve((1, 8, 128), (1.0, 1.5, 12.0))


@pytest.fixture(autouse=True, scope="module")
def _tight() -> Iterator[None]:
    """Little room to spare, so that few tokens fill it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hsdkit.decoding.scheduler.HEADROOM", 16)
        patch.setattr("hsdkit.decoding.cache.HEADROOM", 16)
        yield


@pytest.fixture(scope="module")
def model(random_target: Callable[[str], SimpleTarget]) -> Callable[[str], Any]:
    torch.set_num_threads(1)
    return cache(lambda name: TransformersEngine(TransformersConfig(), random_target(name)).model)


@pytest.fixture(scope="module")
def alone(model: Callable[[str], Any]) -> Callable[[str], list[list[int]]]:
    """What each request says by itself, plainly decoded."""
    wanted = DecodeSettings(max_new_tokens=TOKENS, stop_loops=False)

    def say(name: str, request: DecodeRequest) -> list[int]:
        return list(decode(model(name), [request], wanted, [None], Budget(1, None)).sequences[0].tokens)

    return cache(lambda name: [say(name, request) for request in REQUESTS])


class Caller:
    """A call of some requests, up to `limit` tokens each."""

    def __init__(
        self,
        model: Any,
        numbers: Sequence[int],
        matchers: Sequence[Any] | None = None,
        limit: int = TOKENS,
        budget: Budget | None = None,
        **more: Any,
    ) -> None:
        self.numbers, self.limit = numbers, limit
        chosen = DecodeSettings(max_new_tokens=limit, stop_loops=False)
        self.call = Call(len(numbers), chosen, budget or Budget(16, None), **more)
        prompts = model.prepare([REQUESTS[n] for n in numbers])
        self.group = Group(self.call, 0, prompts, matchers or [None] * len(numbers))

    def expected(self, alone: list[list[int]]) -> list[list[int]]:
        return [alone[n][: self.limit] for n in self.numbers]

    @property
    def said(self) -> list[list[int]]:
        return [list(sequence.tokens) for sequence in self.call.decoded().sequences]


def run(scheduler: Scheduler, callers: Sequence[Caller]) -> None:
    for caller in callers:
        scheduler.add(caller.group)
    while not all(caller.call.done for caller in callers):
        scheduler.step()


arrivals = st.lists(
    st.tuples(
        st.integers(0, 12),  # steps after the one before
        st.lists(st.integers(0, 5), min_size=1, max_size=3),
        st.sampled_from([*SPOILINGS, None]),
        st.integers(1, TOKENS),
        st.sampled_from([0, 1]),  # which budget
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@settings(max_examples=5, phases=[Phase.explicit, Phase.reuse, Phase.generate])  # shrinking takes minutes
@given(arrivals, st.integers(1, 5), st.sampled_from([1, 150, 400, 100_000]), st.integers(0, 1000))
def test_rows_that_come_and_go_say_what_they_say_alone(
    architecture: str,
    model: Callable[[str], Any],
    alone: Callable[[str], list[list[int]]],
    plan: list[Any],
    max_rows: int,
    max_tokens: int,
    seed: int,
) -> None:
    truth = alone(architecture)
    scheduler = Scheduler(model(architecture), max_rows, max_tokens)
    budgets = Budget(9, None), Budget(None, STEEP)
    callers = []
    for wait, numbers, spoiling, limit, budget in plan:
        for _ in range(wait):
            scheduler.step()
        matchers = [spoiling and Scripted(truth[n], spoiling, seed=seed + n) for n in numbers]
        callers.append(Caller(model(architecture), numbers, matchers, limit, budgets[budget]))
        scheduler.add(callers[-1].group)
    for _ in range(2000):
        if all(caller.call.done for caller in callers):
            break
        scheduler.step()
    assert [caller.said for caller in callers] == [caller.expected(truth) for caller in callers]
    scheduler.step()
    assert scheduler.rows == scheduler.slots == 0


def test_memory_and_rows_stay_within_bounds_and_everybody_is_served(
    model: Callable[[str], Any], alone: Callable[[str], list[list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts fit side by side, what they grow to does not: some are put aside and come back."""
    truth, aside = alone("qwen3_vl"), list[int]()
    put_aside = Scheduler._put_aside

    def count(scheduler: Scheduler, first: int) -> None:
        aside.append(first)
        put_aside(scheduler, first)

    monkeypatch.setattr(Scheduler, "_put_aside", count)
    callers = [Caller(model("qwen3_vl"), [n]) for n in range(6)]
    most = 3 * (20 + max(caller.group.prompts.longest for caller in callers))
    scheduler = Scheduler(model("qwen3_vl"), 3, most)
    for caller in callers:
        scheduler.add(caller.group)
    rows: list[int] = []
    while not all(caller.call.done for caller in callers):
        scheduler.step()
        rows.append(scheduler.rows)
        assert scheduler.slots <= most or scheduler.rows == 1
    assert max(rows) == 3
    assert 1 <= len(aside) < 20
    assert [caller.said for caller in callers] == [caller.expected(truth) for caller in callers]


def test_calls_are_served_in_the_order_they_came(model: Callable[[str], Any]) -> None:
    """One that needs many places is not overtaken by those that need few."""
    scheduler = Scheduler(model("llama"), 3)
    begun: list[int] = []
    callers = [
        Caller(model("llama"), numbers, on_text=lambda row, text, i=i: begun.append(i))  # type: ignore[misc]
        for i, numbers in enumerate([[0, 1], [2, 3, 4], [5], [0]])
    ]
    run(scheduler, callers)
    assert list(dict.fromkeys(begun)) == [0, 1, 2, 3]


class Broken(Scripted):
    def propose(self, limit: int) -> Any:
        if self.position > 5:
            raise ZeroDivisionError("matcher")
        return super().propose(limit)


def stop(row: int, text: str) -> None:
    raise KeyboardInterrupt


class Refusing:
    """A logits processor that gives up."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, ids: Any, scores: Any) -> Any:
        self.asked += 1
        return scores if self.asked < 6 else 1 / 0


def test_a_call_that_fails_takes_no_other_with_it(
    model: Callable[[str], Any], alone: Callable[[str], list[list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, own = alone("qwen3_vl"), model("qwen3_vl")
    good = [Caller(own, [0, 1]), Caller(own, [2], [Scripted(truth[2], "noisy")])]
    bad = [
        Caller(own, [3, 4], [Broken(truth[3]), None]),
        Caller(own, [4, 5], on_text=stop),
        Caller(own, [5], processors=[Refusing()]),
    ]
    unreadable = Caller(own, [1])
    prefill = own.prefill

    def broken_prefill(prompts: Any, cache: Any) -> Any:
        if prompts is unreadable.group.prompts:
            raise RuntimeError("prefill")
        return prefill(prompts, cache)

    monkeypatch.setattr(own, "prefill", broken_prefill)
    run(Scheduler(own), [good[0], bad[0], unreadable, bad[1], good[1], bad[2]])
    assert [caller.said for caller in good] == [caller.expected(truth) for caller in good]
    errors = [type(caller.call.error) for caller in (*bad, unreadable)]
    assert errors == [ZeroDivisionError, KeyboardInterrupt, ZeroDivisionError, RuntimeError]
    with pytest.raises(RuntimeError, match="prefill"):
        _ = unreadable.said


def test_a_row_whose_scores_are_nan_fails_alone(
    model: Callable[[str], Any], alone: Callable[[str], list[list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, own = alone("qwen3_vl"), model("qwen3_vl")
    verify = own.verify

    def spoiled(*given: Any) -> torch.Tensor:
        logits: torch.Tensor = verify(*given)
        if len(logits) == 3:
            logits[1, ..., 5] = torch.nan
        return logits

    monkeypatch.setattr(own, "verify", spoiled)
    callers = [Caller(own, [n]) for n in range(3)]
    run(Scheduler(own), callers)
    assert isinstance(callers[1].call.error, TargetError)
    assert [callers[0].said, callers[2].said] == [callers[0].expected(truth), callers[2].expected(truth)]


@pytest.mark.parametrize("where", ["prefill", "verify"])
def test_when_memory_runs_out_fewer_rows_go_on_and_nobody_fails(
    where: str, model: Callable[[str], Any], alone: Callable[[str], list[list[int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    truth, own = alone("qwen3_vl"), model("qwen3_vl")
    scheduler = Scheduler(own)
    passed, refused = getattr(own, where), [0]

    def small(*given: Any) -> Any:
        if scheduler.rows > 2 - (where == "prefill"):
            refused[0] += 1
            raise torch.OutOfMemoryError("out of memory")
        return passed(*given)

    monkeypatch.setattr(own, where, small)
    callers = [Caller(own, [n]) for n in range(5)]
    run(scheduler, callers)
    assert refused[0] > 0
    assert [caller.said for caller in callers] == [caller.expected(truth) for caller in callers]


def test_a_pass_that_fails_for_one_row_alone_is_that_rows_error(
    model: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = model("qwen3_vl")
    caller, other = Caller(own, [0]), Caller(own, [1])
    with monkeypatch.context() as patch:
        patch.setattr(own, "verify", lambda *_: (_ for _ in ()).throw(torch.OutOfMemoryError("out of memory")))
        scheduler = Scheduler(own)
        run(scheduler, [caller])
    assert isinstance(caller.call.error, torch.OutOfMemoryError)
    run(scheduler, [other])
    assert other.call.error is None
