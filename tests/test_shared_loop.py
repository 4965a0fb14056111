"""Many threads, one engine: every caller gets its own result or its own error, and somebody always drives on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import torch
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from models import SimpleTarget, page

from hsdkit.protocols import DecodeRequest, DecodeSettings

SETTINGS = DecodeSettings(max_new_tokens=24, max_packed=8, stop_loops=False)
REQUESTS = [
    DecodeRequest(page(64 + 32 * (k % 3), 64, seed=k), "The table below lists"[: 3 + 2 * k], ("The harbour",) * (k % 2))
    for k in range(8)
]
Make = Callable[..., TransformersEngine]


@pytest.fixture(scope="module")
def make(random_target: Callable[[str], SimpleTarget]) -> Make:
    torch.set_num_threads(1)
    return lambda **options: TransformersEngine(TransformersConfig(**options), random_target("qwen3_vl"))


@pytest.fixture(scope="module")
def alone(make: Make) -> list[tuple[int, ...]]:
    engine = make()
    return [engine.decode([request], SETTINGS).sequences[0].tokens for request in REQUESTS]


@pytest.mark.parametrize("options", [{}, {"max_rows": 3, "cache_tokens": 1}], ids=["room for all", "hardly any room"])
def test_eight_threads_get_what_each_would_get_alone(
    options: dict[str, Any], make: Make, alone: list[tuple[int, ...]]
) -> None:
    engine = make(**options)
    texts: dict[int, str] = {}

    def ask(k: int) -> None:
        """A page and a batch of crops, as a verifier asks."""
        numbers = [(k + i) % 8 for i in range(k % 3 + 1)]
        found = engine.decode([REQUESTS[n] for n in numbers], SETTINGS)
        assert [s.tokens for s in found.sequences] == [alone[n] for n in numbers]
        said: list[str] = []
        found = engine.decode([REQUESTS[k]], SETTINGS, lambda row, text: said.append(text))
        assert [s.tokens for s in found.sequences] == [alone[k]]
        assert found.times.decode > found.times.host > 0
        texts[k] = "".join(said)
        assert found.sequences[0].text.startswith(texts[k])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert all(texts.values())


def test_rows_of_several_callers_share_passes(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make()
    sizes: list[int] = []
    verify, all_there = engine.model.verify, threading.Barrier(4)

    def count(tokens: Any, *rest: Any) -> Any:
        sizes.append(len(tokens))
        return verify(tokens, *rest)

    monkeypatch.setattr(engine.model, "verify", count)

    def ask(request: DecodeRequest) -> Any:
        all_there.wait()
        return engine.decode([request], replace(SETTINGS, max_packed=1, self_lookup=False))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, REQUESTS[:4]))
    assert max(sizes) > 1
    assert len(sizes) < sum(f.forwards for f in found) == 4 * 23


def test_whoever_stops_driving_leaves_the_others_to_go_on(make: Make, alone: list[tuple[int, ...]]) -> None:
    """The first caller drives, and is interrupted in the middle of its own text."""
    engine = make()
    driving, others_wait = threading.Event(), threading.Event()

    def interrupt(row: int, text: str) -> None:
        driving.set()
        others_wait.wait()
        raise KeyboardInterrupt

    def ask(k: int) -> Any:
        if k == 0:
            with pytest.raises(KeyboardInterrupt):
                engine.decode([REQUESTS[0]], SETTINGS, interrupt)
            return alone[0]
        driving.wait()
        if k == 3:
            others_wait.set()
        return engine.decode([REQUESTS[k]], SETTINGS).sequences[0].tokens

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == alone[:4]


def test_an_interrupt_in_a_pass_ends_its_caller_only_and_holds_nothing(
    make: Make, alone: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make()
    with monkeypatch.context() as patch:
        patch.setattr(engine.model, "verify", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            engine.decode(REQUESTS[:2], SETTINGS)
    assert engine.loop._scheduler.rows == 0
    assert engine.decode(REQUESTS[:1], SETTINGS).sequences[0].tokens == alone[0]


def test_costs_are_measured_between_steps_and_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make()
    asked: list[float] = []
    verifying, measured = threading.Lock(), list[int]()
    verify = engine.model.verify

    def alone_in_the_model(*given: Any) -> Any:
        assert verifying.acquire(blocking=False), "two passes at once"
        try:
            return verify(*given)
        finally:
            verifying.release()

    def curve(run: Any, rows: int, **more: Any) -> Any:
        measured.append(rows)
        return CostCurve((rows, 2 * rows), (run(1), run(2)))

    from hsdkit.decoding.budget import CostCurve

    monkeypatch.setattr(engine.model, "verify", alone_in_the_model)
    monkeypatch.setattr(CostCurve, "measure", curve)

    def ask(k: int) -> None:
        if k % 2:
            asked.append(engine.expected_seconds(100))
        else:
            engine.decode([REQUESTS[k]], replace(SETTINGS, max_packed="auto"))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(8)))
    assert len(set(asked)) == 1
    assert sorted(measured) == sorted(set(measured))
