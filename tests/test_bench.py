"""The bench: fair turns, ratios within one round, outputs compared, failures left out; `generate` on a real model."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from models import SimpleTarget, make, page
from toys import TOY, blank_pdf, register_toys

from hsdkit.bench import (
    Difference,
    GenerateSide,
    Sample,
    Spread,
    VerifierSide,
    measure,
    saturate,
    summarise,
    throughputs,
)
from hsdkit.bench.sample import Output, difference
from hsdkit.cli.bench import parse_rounds, parse_verifiers, references, split_own
from hsdkit.cli.bench_output import agreement, saturated_agreement, spread_text
from hsdkit.documents import Page, open_document
from hsdkit.errors import ConfigError, DocumentError
from hsdkit.preparing.page import PageTask
from hsdkit.protocols import DecodeRequest, DecodeSettings, Verdict
from hsdkit.regions import Draft
from hsdkit.results import PageResult, SequenceResult, StageResult, StageTimes, Step

TOKENS = (5, 6, 7, 8)
TARGET: Any = SimpleNamespace(tokenizer=SimpleNamespace(decode=lambda ids: "".join(chr(96 + i) for i in ids)))


def output(seconds: float = 1.0, tokens: Sequence[int] = TOKENS, nodes: int = 0, accepted: int = 0) -> Output:
    steps = tuple(Step(nodes, accepted, True, "", 0.1) for _ in range((len(tokens) - 1) // (accepted + 1)))
    sequence = SequenceResult(tuple(tokens), "", "eos", steps)
    stage = StageResult("page", (sequence,), StageTimes(0.1, 0.1, seconds - 0.3, 0.05), len(steps))
    return Output(tuple(tokens), "eos", (stage,), seconds)


@dataclass
class FakeSide:
    name: str
    log: list[tuple[str, int]] = field(default_factory=list)
    uses_draft: bool = True
    seconds: float = 1.0
    tokens: tuple[int, ...] = TOKENS
    fail_at: int = 0

    def run(self, page: Page, draft: Draft) -> Output:
        self.log.append((self.name, page.number))
        assert (draft.drafter == "fake") is self.uses_draft
        if page.number == self.fail_at:
            raise RuntimeError("out of ink")
        return output(self.seconds, self.tokens)


def fake_draft(page: Page) -> tuple[Draft, tuple[str, ...]]:
    return Draft(drafter="fake", notes=("drafted",)), ()


def sample(side: str, seconds: float, round_: int = 0, page_: int = 1, draft: float = 0.0, **more: Any) -> Sample:
    return Sample("a.pdf", page_, round_, side, 0.5, draft, output(seconds), **more)


# ---- measuring


def test_sides_take_turns_in_an_order_that_moves_on(tmp_path: Path) -> None:
    log: list[tuple[str, int]] = []
    sides = [FakeSide("a", log, uses_draft=False), FakeSide("b", log), FakeSide("c", log)]
    with open_document(blank_pdf(tmp_path / "a.pdf", 2)) as document:
        result = measure([document], sides, fake_draft, TARGET, rounds=2)
    order = ["".join(name for name, _ in log[i : i + 3]) for i in range(0, len(log), 3)]
    assert order == ["abc", "abc", "bca", "bca", "cab"]  # warm-up, then round by round
    assert [page for _, page in log[::3]] == [1, 1, 2, 1, 2]
    assert set(result.warm_up) == {"draft", "a", "b", "c"}
    assert len(result.samples) == 12
    assert result.notes == tuple(f"a.pdf, page {n}: drafted" for n in (1, 2))


def test_only_sides_that_draft_pay_for_the_draft(tmp_path: Path) -> None:
    with open_document(blank_pdf(tmp_path / "a.pdf")) as document:
        result = measure([document], [FakeSide("a", uses_draft=False), FakeSide("b")], fake_draft, TARGET, rounds=1)
    plain, drafting = result.samples
    assert plain.draft == 0.0
    assert drafting.draft > 0.0
    assert plain.render == drafting.render > 0.0


def test_a_page_that_fails_on_one_side_is_left_out_on_all_and_not_tried_again(tmp_path: Path) -> None:
    log: list[tuple[str, int]] = []
    sides = [FakeSide("a", log), FakeSide("b", log, fail_at=2)]
    with open_document(blank_pdf(tmp_path / "a.pdf", 3)) as document:
        result = measure([document], sides, fake_draft, TARGET, rounds=3)
    assert {s.page for s in result.samples} == {1, 3}
    [failure] = result.failures
    assert (failure.page, failure.side, failure.reason) == (2, "b", "RuntimeError: out of ink")
    assert log.count(("b", 2)) == 1


def test_a_page_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    def refuse(page: Page) -> tuple[Draft, tuple[str, ...]]:
        raise DocumentError("a.pdf, page 1: no light")

    with open_document(blank_pdf(tmp_path / "a.pdf")) as document:
        result = measure([document], [FakeSide("a"), FakeSide("b")], refuse, TARGET, rounds=2)
    assert result.samples == ()
    assert [f.reason for f in result.failures] == ["a.pdf, page 1: no light"]
    assert summarise(result.samples, ["a"]) == []


def test_outputs_are_compared_with_the_baseline_token_for_token(tmp_path: Path) -> None:
    sides = [FakeSide("a"), FakeSide("b", tokens=(5, 6, 9, 10)), FakeSide("c")]
    with open_document(blank_pdf(tmp_path / "a.pdf", 2)) as document:
        result = measure([document], sides, fake_draft, TARGET, rounds=2)
    a, b, c = summarise(result.samples, ["a"])
    assert a.differing == c.differing == ()
    assert [(page, first) for _, page, first in b.differing] == [(n, Difference(2, "gh", "ij")) for n in (1, 2)]
    same, other = agreement([a, b, c], "a")[1], agreement([a, b, c], "a")[0]
    assert "c: output identical to a" in same
    assert "2 of 2 pages differ" in other
    assert "after 2 tokens: 'ij' instead of 'gh'" in other


@pytest.mark.parametrize(
    ("one", "two", "at"), [((1, 2), (1, 2), None), ((1, 2), (1, 3), 1), ((1, 2), (1,), 1), ((), (4,), 0)]
)
def test_the_first_difference_is_found(one: tuple[int, ...], two: tuple[int, ...], at: int | None) -> None:
    found = difference(one, two, lambda ids: str(list(ids)))
    assert (found.at if found else None) == at


# ---- figures


def test_ratios_pair_the_same_page_and_round() -> None:
    samples = [sample("a", 4.0, 0), sample("b", 1.0, 0), sample("a", 40.0, 1), sample("b", 10.0, 1)]
    _, b = summarise(samples, ["a"])
    end_to_end, decoding = b.speedups["a"]
    # rendering (0.5 s) counts end to end, the page's own encoding and prefill (0.2 s) does not count as decoding
    assert end_to_end.least == pytest.approx(4.5 / 1.5)
    assert end_to_end.most == pytest.approx(40.5 / 10.5)
    assert decoding.least == pytest.approx(39.8 / 9.8)
    assert decoding.most == pytest.approx(3.8 / 0.8)
    assert decoding.count == 2


def test_a_disturbed_round_does_not_move_the_seconds() -> None:
    rounds = [sample("a", seconds, i) for i, seconds in enumerate([1.0, 1.0, 50.0])]
    [a] = summarise([*rounds, sample("a", 3.0, 0, page_=2)], [])
    assert a.e2e == pytest.approx(0.5 + 2.0)
    assert a.phases["decode"] == pytest.approx((0.7 + 2.7) / 2)


def test_drafting_counts_end_to_end_and_as_decoding() -> None:
    _, b = summarise([sample("a", 4.0), sample("b", 1.0, draft=2.0)], ["a"])
    assert (b.e2e, b.decode) == (pytest.approx(3.5), pytest.approx(2.8))
    assert b.phases["draft"] == 2.0
    assert b.phases["other"] == pytest.approx(0.1)


def test_region_crops_count_as_decoding() -> None:
    crops = StageResult("regions", (), StageTimes(0.2, 0.3, 0.4))
    whole = StageResult("page", (), StageTimes(0.1, 0.1, 0.5))
    made = Sample("a.pdf", 1, 0, "hsd", 0.0, 0.0, Output((), "eos", (crops, whole), 2.0))
    assert made.decode == pytest.approx(1.8)


def test_spread_is_median_quartiles_and_extremes() -> None:
    spread = Spread.of([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (spread.median, spread.low, spread.high, spread.least, spread.most, spread.count) == (3, 2, 4, 1, 100, 5)
    assert Spread.of([2.0]) == Spread(2.0, 2.0, 2.0, 2.0, 2.0, 1)
    assert spread_text(spread) == "3.00 (2.00-4.00)"


def test_steps_give_tokens_per_step_and_aal() -> None:
    made = Sample("a.pdf", 1, 0, "x", 0, 0, output(1.0, range(13), nodes=8, accepted=3))
    [summary] = summarise([made], [])
    assert (summary.aal, summary.tokens_per_step, summary.forwards) == (3.0, 4.0, 3)


# ---- several pages in flight


def parsed(task: PageTask, tokens: Sequence[int] = TOKENS, error: str | None = None) -> tuple[PageTask, PageResult]:
    return task, PageResult(task.number, stages=() if error else output(tokens=tokens).stages, error=error)


def test_sides_fill_the_machine_in_turn_and_ratios_are_of_one_round() -> None:
    log: list[tuple[str, int]] = []

    def side(name: str, milliseconds: int) -> Any:
        def parse(tasks: Sequence[PageTask]) -> list[tuple[PageTask, PageResult]]:
            log.append((name, len(tasks)))
            time.sleep(milliseconds / 1000)
            return [parsed(task) for task in tasks]

        return parse

    tasks = [PageTask(Path("a.pdf"), n) for n in range(1, 4)]
    found = saturate({"a": side("a", 40), "b": side("b", 10)}, tasks, 2, 2, {("a.pdf", 1): TOKENS})
    assert log == [("a", 2), ("b", 2), ("a", 3), ("b", 3), ("b", 3), ("a", 3)]  # warm-up, then round by round
    a, b = throughputs(found, ["a"])
    assert (a.side, b.side, a.against) == ("a", "b", {})
    assert 0 < a.pages <= 3 / 0.04
    assert a.tokens == pytest.approx(a.pages * len(TOKENS))
    assert b.against["a"].count == 2
    assert b.against["a"].median > 1.5
    assert a.differing == b.differing == ()


def test_pages_that_fail_or_differ_when_several_are_in_flight_are_told() -> None:
    def good(tasks: Sequence[PageTask]) -> list[tuple[PageTask, PageResult]]:
        return [parsed(task) for task in tasks]

    def bad(tasks: Sequence[PageTask]) -> list[tuple[PageTask, PageResult]]:
        return [parsed(tasks[0], error="no room"), *(parsed(task, (5, 6)) for task in tasks[1:])]

    tasks = [PageTask(Path("a.pdf"), n) for n in (1, 2)]
    found = saturate({"a": good, "b": bad}, tasks, 2, 3, {("a.pdf", n): TOKENS for n in (1, 2)})
    assert [(f.page, f.side, f.reason) for f in found.failures] == [(1, "b, saturated", "no room")]
    a, b = throughputs(found, ["a"])
    assert (a.differing, b.differing) == ((), (("a.pdf", 2),))
    assert "1 pages differ from a" in saturated_agreement([a, b], "a")[0]


def test_an_interrupt_leaves_the_whole_rounds_before_it() -> None:
    rounds = iter([*[0] * 5, 1])  # warm-up of both, the first round, half of the second

    def parse(tasks: Sequence[PageTask]) -> list[tuple[PageTask, PageResult]]:
        if next(rounds):
            raise KeyboardInterrupt
        return [parsed(task) for task in tasks]

    found = saturate({"a": parse, "b": parse}, [PageTask(Path("a.pdf"), 1)], 1, 2, {})
    assert found.interrupted
    assert [(f.side, f.round) for f in found.rounds] == [("a", 0), ("b", 0)]


# ---- sides


def test_generate_is_plain_greedy_decoding_of_the_same_model(tmp_path: Path) -> None:
    import torch

    target: Any = SimpleTarget(make("qwen3_vl", tmp_path))
    image = page()
    side = GenerateSide(target, DecodeSettings(max_new_tokens=12))
    found = side.run(Page(1, image), Draft())
    inputs = target.inputs([DecodeRequest(image, "Read the page.")])
    with torch.inference_mode():
        ids = target.model.generate(**inputs, do_sample=False, max_new_tokens=12, use_cache=True)
    assert found.tokens == tuple(ids[0, inputs["input_ids"].shape[1] :].tolist())
    [stage] = found.stages
    assert stage.forwards == stage.steps == len(found.tokens) - 1
    assert 0 < found.page_prefill < found.verify
    assert stage.times.total == pytest.approx(found.verify)


def test_a_verifier_side_hands_over_the_draft_and_takes_the_tokens_of_the_page_stage() -> None:
    seen: list[Draft] = []

    class Verifier:
        name, uses_draft, settings = "v", True, DecodeSettings()

        def verify(self, page: Any, draft: Draft, target: Any, engine: Any, on_text: Any = None) -> Verdict:
            seen.append(draft)
            regions = StageResult("regions", (SequenceResult((1, 2), "", "eos"),))
            return Verdict("", "eos", (regions, *output().stages))

    draft = Draft(drafter="fake")
    side = VerifierSide("v", Verifier(), TARGET, TARGET)
    assert side.run(Page(1, page()), draft).tokens == TOKENS
    assert seen == [draft]


# ---- command line


def test_its_own_options_are_told_from_those_of_a_run() -> None:
    own, rest = split_own(["a.pdf", "verifiers=x,y", "rounds=2", "verifier.tau=1"])
    assert own == {"verifiers": "x,y", "rounds": "2"}
    assert rest == ["a.pdf", "verifier.tau=1"]
    assert parse_verifiers(None, "hsd", "transformers") == ["autoregressive", "generate", "hsd"]
    assert parse_verifiers("a, b,a", "hsd", "transformers") == ["a", "b"]
    assert references(["a", "generate", "b"]) == ["a", "generate"]
    assert references(["generate", "b"]) == ["generate"]


@pytest.mark.parametrize("given", ["", "0", "-1", "two", "1.5", "²"])
def test_a_bad_number_of_rounds_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match="rounds="):
        parse_rounds(given)


@pytest.mark.parametrize("given", ["", "hsd", "hsd,hsd"])
def test_a_comparison_needs_two_sides(given: str) -> None:
    with pytest.raises(ConfigError, match="at least two"):
        parse_verifiers(given, "hsd", "transformers")


def test_an_engine_with_a_model_of_its_own_has_no_generate_beside_it() -> None:
    """It would load the target's weights a second time."""
    assert parse_verifiers(None, "hsd", "vllm") == ["autoregressive", "hsd"]
    with pytest.raises(ConfigError, match="leave generate out"):
        parse_verifiers("autoregressive,generate", "hsd", "vllm")
    with pytest.raises(ConfigError, match=r"verifier=autoregressive: name at least two"):
        parse_verifiers(None, "autoregressive", "vllm")


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    from typer.testing import CliRunner

    from hsdkit.cli.app import app

    register_toys()
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, ["bench", *arguments])


def test_bench_refuses_what_it_does_not_know(cli: Any, tmp_path: Path) -> None:
    blank_pdf(tmp_path / "a.pdf")
    result = cli("a.pdf", *TOY, "verifiers=toy,hsdd")
    assert result.exit_code == 2
    assert "hsdd" in result.output


def test_what_fails_is_listed_and_the_exit_code_says_so(cli: Any, tmp_path: Path) -> None:
    blank_pdf(tmp_path / "a.pdf", 2)
    (tmp_path / "bad.pdf").write_bytes(b"%PDF-1.4 nothing")
    result = cli("a.pdf", "bad.pdf", *TOY, "verifiers=toy,autoregressive", "rounds=2")
    assert result.exit_code == 1, result.output  # the toy engine cannot decode
    content = json.loads((tmp_path / "out" / "bench.json").read_text(encoding="utf-8"))
    assert [(Path(f["document"]).name, f["page"]) for f in content["failures"]] == [
        ("bad.pdf", None),
        ("a.pdf", 1),
        ("a.pdf", 2),
    ]
    assert "left out: a.pdf, page 2: autoregressive" in result.output
    assert {Path(name).name: len(digest) for name, digest in content["inputs"].items()} == {"a.pdf": 64, "bad.pdf": 64}


def test_the_embedded_model_says_the_same_on_every_side(cli: Any, tmp_path: Path) -> None:
    example = Path(__file__).parent.parent / "examples" / "ten_pages.pdf"
    options = ["drafter=pdftext", "verifier=page", "verifier.max_new_tokens=48", "verifier.max_packed=16"]
    result = cli(str(example), *options, "rounds=1", "pages=1-2", "output=b")
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "b" / "bench.json").read_text(encoding="utf-8"))
    plain, generate, page = content["sides"]
    assert [s["side"] for s in content["sides"]] == ["autoregressive", "generate", "page"]
    assert generate["differing"] == page["differing"] == []
    assert plain["aal"] == 0 < page["aal"]
    assert page["forwards"] < plain["forwards"] == generate["forwards"] == 47
    assert set(page["speedups"]) == {"autoregressive", "generate"}
    assert content["settings"]["drafter"]["name"] == "pdftext"
    assert content["saturated"]["concurrency"] == 2
    assert [(f["side"], f["pages"], f["differing"]) for f in content["saturated"]["rounds"]] == [
        ("autoregressive", 2, []),
        ("page", 2, []),
    ]
    assert "2 pages in flight" in result.output
    assert {"torch", "transformers", "dtype"} <= set(content["versions"])
    assert "identical to autoregressive, token for token" in result.output
