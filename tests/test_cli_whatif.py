"""`hsdkit whatif`: what it prints, what it refuses; the measured machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from commands import hsdkit, run
from hypothesis import given, settings
from hypothesis import strategies as st
from test_roofline_steps import SHAPE, bench_json, page_stage
from toys import blank_pdf

import hsdkit.roofline.calibrate as calibrate
import hsdkit.roofline.time_engine as time_engine
from hsdkit.benchmarks import Item
from hsdkit.errors import DocumentError
from hsdkit.evaluation.record import Record, SideRecord
from hsdkit.results import PageResult
from hsdkit.results_json import dumps
from hsdkit.roofline import Pass, load
from hsdkit.roofline.calibrate import calibrate as measure_cpu
from hsdkit.roofline.machine import MeasuredMachine

CONFIG = {
    "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 16,
    "num_key_value_heads": 8, "vocab_size": 1000, "model_type": "qwen3",
}  # fmt: skip


@pytest.fixture
def recording(workplace: Path) -> Path:
    Path("config.json").write_text(json.dumps(CONFIG))
    return bench_json(workplace)


def test_a_device_and_a_model_are_predicted_without_either(recording: Path) -> None:
    result = hsdkit("whatif", "bench.json", "device=h200,A100", "model=config.json")
    assert result.exit_code == 0
    assert "H200: 990 TFLOP/s in bf16, 4800 GB/s" in result.output or "H200: 989 TFLOP/s" in result.output
    assert "A100: 312 TFLOP/s" in result.output
    assert "another tokenizer" in result.output
    assert "measured" not in result.output.split("Predicted")[1].split("note")[0]


def test_the_figures_as_json(recording: Path) -> None:
    result = hsdkit("whatif", "bench.json", "device=L4", "model=.", "dtype=fp16", "prompt=1000", "--json")
    data = json.loads(result.stdout)
    (found,) = data["predictions"]
    plain, page = found["sides"]
    assert (found["device"], found["dtype"], plain["side"], plain["forwards"]) == ("L4", "fp16", "autoregressive", 5)
    # Passes of one token and of five read the same weights: memory is the limit of both.
    weights = 12 * (2 * 1024 * 1024 + 2 * 1024 * 512 + 3 * 1024 * 3072) + 1024 * 1000
    assert plain["seconds"]["passes"] == pytest.approx(5 * 2 * weights / 300e9, rel=0.2)
    assert page["speedup"]["passes"] == pytest.approx(5, rel=0.02)
    assert page["measured_passes"] is None


def test_weights_that_do_not_fit_are_said_to(recording: Path) -> None:
    Path("config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 2000}))
    assert "its weights alone take" in hsdkit("whatif", "bench.json", "device=L4", "model=.").output


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["device=A10O"], 2, "did you mean A100"),
        (["devise=A100"], 2, "did you mean device"),
        (["dtype=int3"], 2, "must be one of"),
        (["prompt=0"], 2, "prompt=0"),
        (["device=,"], 2, "name at least one"),
        (["device=A100", "dtype=fp8", "model=."], 2, "no peak of A100"),
        (["device=A100", "model=./nowhere"], 2, "no such file or folder"),
        (["device=A100", "model=nobody"], 2, "no target named 'nobody'"),
        (["device=A100", "model="], 2, "is empty"),
        (["device=cpu", "dtype=fp8", "model=."], 2, "not measured on a CPU"),
    ],
)
def test_what_cannot_be_is_one_line(recording: Path, arguments: list[str], code: int, says: str) -> None:
    result = hsdkit("whatif", "bench.json", *arguments)
    assert result.exit_code == code
    assert says in result.output


def test_a_recording_is_needed_and_must_be_there(workplace: Path) -> None:
    assert hsdkit("whatif", "device=A100").exit_code == 2
    missing = hsdkit("whatif", "nothing.json", "device=A100")
    assert (missing.exit_code, "nothing.json" in missing.output) == (1, True)


def test_the_embedded_target_is_found_by_name(recording: Path) -> None:
    result = hsdkit("whatif", "bench.json", "device=L4", "model=tiny")
    assert "6.67 M parameters" in result.output


MACHINE = MeasuredMachine(
    "toy", "fp32", (1, 8, 64), (1000, 100_000), (1e-4, 1e-4, 2e-4), ((1e-4, 2e-4, 3e-4), (5e-4, 6e-4, 2e-3)),
    (1e-9, 2e-9, 3e-9),
)  # fmt: skip


def test_a_measured_machine_gives_back_what_was_measured() -> None:
    assert MACHINE.layer_seconds(8, 1000) == pytest.approx(2e-4)
    assert MACHINE.layer_seconds(64, 100_000) == pytest.approx(2e-3)
    assert MACHINE.layer_seconds(1, 199_000) == pytest.approx(9e-4)  # the last slope goes on


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 4000), st.integers(0, 4000))
def test_wider_and_longer_passes_take_no_less(width: int, more: int, cached: int, longer: int) -> None:
    base = MACHINE.pass_seconds(SHAPE, Pass(1, width, cached, width), "fp32")
    wider = MACHINE.pass_seconds(SHAPE, Pass(1, width + more, cached, width + more), "fp32")
    assert 0 < base <= wider
    assert base <= MACHINE.pass_seconds(SHAPE, Pass(1, width, cached + longer, width), "fp32")


def test_this_machine_is_measured(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "WIDTHS", (1, 16))
    monkeypatch.setattr(calibrate, "_TURN", 1e-9)
    monkeypatch.setattr(calibrate, "_SIZES", ((32, 2, 64), (64, 2, 128), (256, 4, 512)))
    machine = measure_cpu(threads=1, seconds=0)
    assert machine.weights == (10240, 40960, 655360)
    assert machine.weight_seconds(16) > 0
    quick: Any = lambda dtype, threads: machine  # noqa: E731
    monkeypatch.setattr(calibrate, "calibrate", quick)
    result = hsdkit("whatif", "bench.json", "model=.")
    assert result.exit_code == 0
    assert "this CPU" in result.output


def test_predictions_are_checked_on_pages_left_out(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick: Any = lambda dtype, threads: MACHINE  # noqa: E731
    monkeypatch.setattr(calibrate, "calibrate", quick)
    data = json.loads(recording.read_text())
    data["settings"]["target"] = {"name": "qwen", "model": "config.json"}
    recording.write_text(json.dumps(data))
    assert "at least two pages" in hsdkit("whatif", "bench.json", "check=true").stderr
    data["traces"] += [trace | {"page": 2} for trace in data["traces"]]
    recording.write_text(json.dumps(data))
    result = hsdkit("whatif", "bench.json", "check=true")
    assert result.exit_code == 0
    assert "page: all pages together" in result.output
    # That model has no weights to be measured.
    assert "the recorded model is not measured here" in result.stderr
    assert "predicted from its own steps, from the model's config and this CPU" in result.stdout
    held = json.loads(hsdkit("whatif", "bench.json", "check=true", "--json").stdout)
    assert [(h["page"], h["side"]) for h in held] == [
        (1, "autoregressive"),
        (1, "page"),
        (2, "autoregressive"),
        (2, "page"),
    ]
    # Two pages alike: what is right for the one is for the other.
    assert [h["predicted"] for h in held[:2]] == pytest.approx([h["predicted"] for h in held[2:]])
    assert [h["rounds"] for h in held] == [[0.5, 0.7]] * 4
    assert "leave device out" in hsdkit("whatif", "bench.json", "check=true", "device=A100").stderr


@pytest.mark.parametrize("more", [[], ["check=true"]])
def test_for_this_machine_the_recorded_model_itself_is_measured(
    recording: Path, checkpoint: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    quick: Any = lambda dtype, threads: MACHINE  # noqa: E731
    monkeypatch.setattr(calibrate, "calibrate", quick)
    monkeypatch.setattr(time_engine, "measure_engine", partial(time_engine.measure_engine, seconds=0))
    data = json.loads(recording.read_text())
    data["settings"]["target"] = {"name": "qwen3_vl", "model": str(checkpoint("qwen3_vl"))}
    data["traces"] += [trace | {"page": 2} for trace in data["traces"]]
    recording.write_text(json.dumps(data))
    result = hsdkit("whatif", "bench.json", *more)
    assert result.exit_code == 0
    assert "the recorded model" in result.stdout
    assert "not measured" not in result.stderr


def test_an_evaluation_is_a_recording_of_both_its_sides(workplace: Path) -> None:
    page = PageResult(1, "a", "a", "eos", "page", stages=(page_stage((7, 3), (4, 4)),))
    sides = {"page": SideRecord(page, {}), "autoregressive": SideRecord(replace(page, verifier="autoregressive"), {})}
    failed = {name: SideRecord(PageResult(2, verifier=name, error="no"), {}) for name in sides}
    items = [Item("one", Path("a.png")), Item("two", Path("b.png"))]
    records = [Record.of(item, made) for item, made in zip(items, (sides, failed), strict=True)]
    head = {"evaluation": {"sides": {"page": {"target": {"name": "tiny"}, "engine": {"max_rows": 4}}}}}
    folder = workplace / "evaluated"
    folder.mkdir()
    (folder / "results.jsonl").write_text("\n".join(dumps(d) for d in [head, *(r.to_json() for r in records)]) + "\n")
    (folder / "summary.json").write_text(json.dumps({"machine": {"torch_threads": 2}, "versions": {"device": "cpu"}}))
    found = load([folder])
    assert (found.sides, found.skipped, found.threads, found.max_rows) == (["page", "autoregressive"], 2, 2, 4)
    assert found.on_cpu


def test_a_sweep_is_no_recording_and_is_said_to_be_none(workplace: Path) -> None:
    cell = workplace / "swept" / "cells" / "0.json"
    cell.parent.mkdir(parents=True)
    cell.write_text('{"schema": 1}')
    (workplace / "swept" / "sweep.json").write_text('{"schema": 1}')
    for path in (workplace / "swept", workplace / "swept" / "sweep.json", cell):
        with pytest.raises(
            DocumentError, match="a sweep keeps no steps: record a combination of it with `hsdkit bench"
        ):
            load([path])
    assert load([bench_json(workplace / "swept")]).pages  # what else lies in that folder is


def test_a_run_is_a_recording_too(workplace: Path) -> None:
    Path("config.json").write_text(json.dumps(CONFIG))
    blank_pdf(workplace / "a.pdf")
    run("a.pdf")
    result = hsdkit("whatif", "out/a.json", "device=A100", "model=.")
    assert result.exit_code == 0
    assert "autoregressive (derived)" in result.output
    assert "plain decoding was not recorded" in result.output
