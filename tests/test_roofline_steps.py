"""From recorded steps to passes, to predictions; result files as records; the bench's traces."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsdkit.bench import Sample
from hsdkit.bench.sample import Output
from hsdkit.bench.traces import traces
from hsdkit.document_result import DocumentResult
from hsdkit.errors import DocumentError
from hsdkit.regions import Draft
from hsdkit.results import PageResult, SequenceResult, StageResult, StageTimes, Step
from hsdkit.results_json import stage_to_json
from hsdkit.roofline import DEVICES, Pass, Records, load, predict, read_shape, sides
from hsdkit.roofline.predict import speedup_of_sums
from hsdkit.roofline.records import PageRecord
from hsdkit.roofline.steps import forwards_agree, plain_work, work

SHAPE = read_shape(
    {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 99},
    "model",
)


def sequence(*steps: tuple[int, int], prompt: int = 10, seconds: float = 0.1) -> SequenceResult:
    """Steps of (nodes, accepted)."""
    made = tuple(Step(nodes, accepted, True, "", seconds) for nodes, accepted in steps)
    tokens = 1 + sum(s.emitted for s in made)
    return SequenceResult((5,) * tokens, "text", "eos", made, ("t",) * tokens, prompt, prompt - 2)


def page_stage(*steps: tuple[int, int], prompt: int = 10) -> StageResult:
    return StageResult("page", (sequence(*steps, prompt=prompt),), StageTimes(0.2, 0.1, 0.5, 0.1), len(steps))


def test_a_pass_has_the_cache_that_the_steps_before_have_left() -> None:
    made = work(page_stage((0, 0), (7, 3), (4, 4)), max_rows=32)
    assert made.prefills == (Pass(1, 10, 0, 1),)
    assert made.passes == (Pass(1, 1, 10, 1), Pass(1, 8, 11, 8), Pass(1, 5, 15, 5))
    assert made.images == (8,)


def test_rows_of_a_batch_share_passes_padded_to_the_widest_and_longest() -> None:
    rows = (sequence((3, 1), (0, 0)), sequence((5, 0), prompt=20), sequence((1, 1)))
    stage = StageResult("regions", rows, forwards=3)
    made = work(stage, max_rows=2)
    assert made.prefills == (Pass(2, 20, 0, 1), Pass(1, 10, 0, 1))
    assert made.passes == (Pass(2, 6, 20, 6), Pass(1, 1, 12, 1), Pass(1, 2, 10, 2))
    assert forwards_agree(stage, 2)
    assert not forwards_agree(stage, 32)


STEPS = st.lists(st.integers(0, 20).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), max_size=30)


@settings(deadline=None)
@given(STEPS, st.integers(1, 500))
def test_plain_decoding_makes_the_same_tokens_one_a_pass(steps: list[tuple[int, int]], prompt: int) -> None:
    stage = page_stage(*steps, prompt=prompt)
    made, plain = work(stage, 32), plain_work(stage)
    assert len(plain.passes) == sum(1 + accepted for _, accepted in steps) >= len(made.passes)
    assert [p.cached for p in plain.passes] == list(range(prompt, prompt + len(plain.passes)))
    ends = [p.cached for p in made.passes]
    assert ends == sorted(ends)
    assert set(ends) <= {p.cached for p in plain.passes}
    alone = page_stage(*[(0, 0)] * len(plain.passes), prompt=prompt)
    assert work(alone, 32) == plain  # a recorded plain run makes exactly these passes


def record(side: str, *stages: StageResult, draft: float = 0.0, page: int = 1) -> PageRecord:
    return PageRecord("a.pdf", page, side, draft, stages)


@settings(deadline=None)
@given(STEPS.filter(bool))
def test_the_limit_of_the_sums_is_never_slower_than_pass_by_pass(steps: list[tuple[int, int]]) -> None:
    records = Records((record("page", page_stage(*steps)),), {}, {})
    plain, page = (predict(s, SHAPE, DEVICES["L4"], "bf16") for s in sides(records))
    assert DEVICES["L4"].seconds(page.cost, "bf16") <= page.model * (1 + 1e-9)
    assert plain.model / page.model <= speedup_of_sums(plain.cost, page.cost, DEVICES["L4"], "bf16") * (1 + 1e-9)


def test_without_a_recorded_baseline_it_is_derived_from_the_page() -> None:
    regions = StageResult("regions", (sequence((5, 5)),), forwards=1)
    records = Records((record("hsd", regions, page_stage((7, 7), (7, 7)), draft=0.4),), {}, {})
    plain, hsd = sides(records)
    assert (plain.name, plain.recorded, plain.forwards, plain.tokens) == ("autoregressive", False, 16, 17)
    assert (hsd.recorded, hsd.forwards, hsd.tokens, hsd.draft) == (True, 3, 17, 0.4)
    found = predict(hsd, SHAPE, DEVICES["H200"], "bf16")
    assert found.decode == pytest.approx(0.4 + 0.1 + found.model + found.before.prefill)
    assert found.e2e == found.decode + found.page.prefill


def test_only_pages_that_all_sides_have_are_compared() -> None:
    two = [record("autoregressive", page_stage((0, 0), (0, 0)), page=n) for n in (1, 2)]
    plain, page = sides(Records((*two, record("page", page_stage((1, 1)))), {}, {}))
    assert plain.recorded
    assert (plain.forwards, page.forwards) == (2, 1)


def test_a_longer_prompt_scales_prompts_and_the_cache_behind_them() -> None:
    records = Records((record("page", page_stage((0, 0), prompt=10)),), {}, {})
    _, page = sides(records, prompt_scale=50.0)
    assert page.page.prefills == (Pass(1, 500, 0, 1),)
    assert page.page.passes == (Pass(1, 1, 500, 1),)


def test_a_result_file_holds_what_is_needed(tmp_path: Path) -> None:
    page = PageResult(3, verifier="page", finish_reason="eos", draft=Draft(seconds=0.2), stages=(page_stage((7, 3)),))
    failed = PageResult(4, error="broken")
    document = DocumentResult("a.pdf", (page, failed), {"engine": {"max_rows": 4}}, {"dtype": "bfloat16"})
    (tmp_path / "a.json").write_text(document.to_json())
    records = load([tmp_path / "a.json"])
    assert records.pages == (PageRecord("a.pdf", 3, "page", 0.2, page.stages),)
    assert (records.max_rows, records.skipped, records.dtype, records.page_prompt) == (4, 1, "bf16", 10)


def sample(seconds: float, round_: int, steps: tuple[tuple[int, int], ...] = ((4, 2), (0, 0))) -> Sample:
    stage = replace(page_stage(*steps), sequences=(sequence(*steps, seconds=seconds),))
    stage = replace(stage, times=StageTimes(seconds, seconds, seconds, seconds))
    return Sample("a.pdf", 1, round_, "page", 0.0, seconds, Output((5,), "eos", (stage,), 1.0))


def test_traces_keep_steps_not_texts_and_the_median_round() -> None:
    (trace,) = traces([sample(0.3, 0), sample(0.1, 1), sample(0.2, 2, steps=((4, 1), (0, 0)))])
    (stage,) = trace.stages
    assert [(s.nodes, s.accepted, s.seconds) for s in stage.sequences[0].steps] == [(4, 1, 0.2), (0, 0, 0.2)]
    assert stage.times == StageTimes(0.2, 0.2, 0.2, 0.2)
    assert (trace.draft, trace.rounds) == (0.2, (0.3, 0.1, 0.2))
    assert (stage.sequences[0].tokens, stage.sequences[0].text, stage.sequences[0].prompt_tokens) == ((), "", 10)


def test_of_two_rounds_the_faster_one_is_kept_and_crops_count_as_decoding() -> None:
    crop, page = StageResult("regions", (), StageTimes(1, 2, 4, 3)), StageResult("page", (), StageTimes(8, 16, 32, 0))
    slow = Sample(
        "a.pdf", 1, 1, "hsd", 0.0, 0.0, Output((5,), "eos", (crop, replace(page, times=StageTimes(0, 0, 64))), 1.0)
    )
    (trace,) = traces([replace(slow, output=Output((5,), "eos", (crop, page), 1.0)), slow])
    assert trace.rounds == (1 + 2 + 4 + 32, 1 + 2 + 4 + 64)
    assert trace.stages == (crop, page)


def bench_json(folder: Path, **change: object) -> Path:
    sides_ = {"autoregressive": page_stage(*[(0, 0)] * 5), "generate": page_stage((0, 0)), "page": page_stage((4, 4))}
    lines = [
        {"document": "a.pdf", "page": 1, "side": n, "draft": 0.0, "rounds": [0.5, 0.7], "stages": [stage_to_json(s)]}
        for n, s in sides_.items()
    ]
    data = {
        "settings": {"engine": {"max_rows": 8}, "target": {"name": "toy"}},
        "versions": {"dtype": "float32", "device": "cpu"},
        "machine": {"torch_threads": 1},
        "samples": [],
        "traces": lines,
    }
    path = folder / "bench.json"
    path.write_text(json.dumps(data | change))
    return path


def test_a_bench_holds_both_sides(tmp_path: Path) -> None:
    records = load([bench_json(tmp_path)])
    assert (records.sides, records.threads, records.on_cpu) == (["autoregressive", "page"], 1, True)
    assert {p.rounds for p in records.pages} == {(0.5, 0.7)}
    plain, page = sides(records)
    assert (plain.forwards, page.forwards) == (5, 1)
    assert plain.measured_page.decode == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no json", "not a NAME.json"),
        ("[1]", "not a"),
        ('{"samples": []}', "run `hsdkit bench` again"),
        ('{"samples": [], "traces": [{"page": 1}], "settings": {}, "versions": {}}', "KeyError"),
        ('{"samples": [], "traces": [], "settings": {}, "versions": {}}', "no page"),
    ],
)
def test_files_without_steps_are_named(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(DocumentError, match=says) as caught:
        load([path])
    assert "x.json" in str(caught.value)


def test_recordings_of_two_targets_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    other = bench_json(tmp_path / "b", settings={"target": {"name": "another"}})
    with pytest.raises(DocumentError, match="another target"):
        load([bench_json(tmp_path), other])
