"""The recorded model itself, measured: steps, prompts, images; what lies between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from hypothesis import given
from hypothesis import strategies as st
from models import SimpleTarget
from test_roofline_steps import SHAPE

from hsdkit.errors import ConfigError
from hsdkit.roofline import MeasuredEngine, Pass
from hsdkit.roofline.measured_engine import Line
from hsdkit.roofline.steps import Work
from hsdkit.roofline.time_engine import measure_engine, recorded_engine

#: Two numbers of rows, three widths, two lengths: 1 second a row, 10 a token of width, 1/100 a cached one.
ENGINE = MeasuredEngine(
    "toy", (1, 4), (1, 2, 8), (100, 300),
    tuple(tuple(tuple(r + 10.0 * k + c / 100 for c in (100, 300)) for k in (1, 2, 8)) for r in (1, 4)),
    Line((10, 20), (1.0, 3.0)), Line((5, 9), (2.0, 2.0)),
)  # fmt: skip


def seconds(p: Pass) -> float:
    return ENGINE.pass_seconds(SHAPE, p, "fp32")


@given(st.integers(1, 20), st.integers(1, 40), st.integers(100, 900))
def test_passes_between_and_beyond_the_measured_ones_follow_their_slopes(rows: int, width: int, cached: int) -> None:
    assert seconds(Pass(rows, width, cached, width)) == pytest.approx(rows + 10 * width + cached / 100)


def test_what_is_smaller_than_all_that_was_measured_takes_as_long_as_the_smallest() -> None:
    assert seconds(Pass(1, 1, 3, 1)) == seconds(Pass(1, 1, 100, 1))
    assert Line((10,), (0.5,)).at(3) == Line((10,), (0.5,)).at(10) == 0.5


def test_prompts_of_several_images_of_the_only_size_there_is_take_several_times_as_long() -> None:
    assert Line((10,), (0.5,)).at(60) == 3.0


def test_prompts_and_images_have_lines_of_their_own() -> None:
    assert seconds(Pass(1, 15, 0, 1)) == 2.0
    assert seconds(Pass(2, 15, 0, 1)) == 5.0
    assert ENGINE.vision_seconds(SHAPE, 50, "fp32") == 2.0


@pytest.fixture(scope="module")
def engine(random_target: Callable[[str], SimpleTarget]) -> TransformersEngine:
    torch.set_num_threads(1)
    return TransformersEngine(TransformersConfig(threads=1), random_target("qwen3_vl"))


def test_the_engine_is_measured_in_the_range_of_the_recording(
    engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    model: Any = engine.model
    shapes: list[tuple[int, ...]] = []
    verify = model.verify

    def spy(tokens: torch.Tensor, positions: torch.Tensor, mask: Any, cache: Any) -> torch.Tensor:
        shapes.append((*tokens.shape, cache.longest))
        return verify(tokens, positions, mask, cache)

    monkeypatch.setattr(model, "verify", spy)
    made = Work((Pass(1, 60, 0, 1),), (Pass(1, 1, 50, 1), Pass(3, 6, 90, 6)), (40,))
    found = measure_engine(model, engine.target, made, threads=1, seconds=0)
    assert (found.rows, found.widths, found.cached) == ((1, 3), (1, 2, 4, 6), (50, 70, 90))
    timed = [s for s in shapes if s[2] >= 50]
    assert {s[:2] for s in timed} == {(r, k) for r in (1, 3) for k in (1, 2, 4, 6)}
    assert max(s[2] for s in timed) < 90 + 32  # behind about as much as was asked for
    smallest, largest = found.passes[0][0][0], found.passes[-1][-1][-1]
    assert 0 < smallest <= found.pass_seconds(SHAPE, Pass(2, 5, 60, 5), "fp32") <= largest
    assert found.prompts.tokens == tuple(sorted(set(found.prompts.tokens)))
    assert 0 < found.prompts.seconds[0] <= found.prompts.seconds[-1]
    assert found.images.seconds[0] > 0


def test_the_recorded_model_is_loaded_on_the_cpu(checkpoint: Callable[[str], Any]) -> None:
    folder = str(checkpoint("qwen3_vl"))
    settings = {
        "target": {"name": "qwen3_vl", "model": folder},
        "engine": {"name": "transformers", "device": "cuda", "dtype": "fp32"},
    }
    model, target = recorded_engine(settings)
    assert (target.name, str(getattr(model, "device", ""))) == ("qwen3_vl", "cpu")
    with pytest.raises(ConfigError, match="engine=vllm has the model elsewhere"):
        recorded_engine(settings | {"engine": {"name": "vllm"}})


def test_nothing_is_fetched_and_no_code_is_run_because_a_recording_says_so() -> None:
    target = {"name": "qwen3_vl", "model": "somebody/model", "revision": 40 * "a"}
    with pytest.raises(ConfigError, match="somebody/model: its weights are not on this machine"):
        recorded_engine({"target": target})
    with pytest.raises(ConfigError, match="trust_remote_code=true: no code is run"):
        recorded_engine({"target": target | {"trust_remote_code": True}})


def test_measured_with_one_row_more_rows_take_as_long() -> None:
    assert replace(ENGINE, rows=(1,), passes=ENGINE.passes[:1]).pass_seconds(SHAPE, Pass(4, 1, 100, 1), "fp32") == 12.0
