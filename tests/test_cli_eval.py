"""`hsdkit eval` with toys: what is written and printed, what is taken up again, how failures end."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from commands import hsdkit
from PIL import Image
from toys import TOY, ToyVerifier, ToyVerifierConfig, blank_pdf

import hsdkit as kit
from hsdkit.components import Component
from hsdkit.document_result import DocumentResult
from hsdkit.plugins import plugins


class Plain(ToyVerifier):
    name = "toy_plain"


class Second:
    @kit.hookimpl
    def hsdkit_components(self) -> list[Component]:
        return [Component("verifier", Plain.name, "a second toy", ToyVerifierConfig, Plain)]


@cache
def register_second() -> None:
    plugins().register(Second(), "second")


def truth(image: str, text: str) -> dict[str, Any]:
    return {"image": image, "conversations": [{"from": "human", "value": "OCR"}, {"from": "gpt", "value": text}]}


@pytest.fixture
def ocean(workplace: Path) -> Path:
    """Two English pages; the toy writes `page 1 of NAME`, which is right for the first."""
    register_second()
    folder = workplace / "ocean"
    folder.mkdir()
    for name in ("a.png", "b.png"):
        Image.new("RGB", (40, 30), "white").save(folder / name)
    (folder / "document_en.json").write_text(
        json.dumps([truth("a.png", "page 1 of a.png"), truth("b.png", "other words")])
    )
    return folder


def evaluate(*arguments: str) -> Any:
    return hsdkit("eval", "benchmark=ocean_ocr", "path=ocean", *TOY, *arguments)


def summary(folder: str = "out") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "summary.json").read_text())
    return found


def lines(folder: str = "out") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(folder, "results.jsonl").read_text().splitlines()]


def test_quality_and_cost_are_written_and_printed(ocean: Path) -> None:
    result = evaluate()
    assert result.exit_code == 0, result.output
    head, first, second = lines()
    assert head["evaluation"]["benchmark"]["name"] == "ocean_ocr"
    assert head["evaluation"]["sides"]["toy"]["verifier"]["tau"] == 1
    assert first["key"] == "document_en/a.png"
    assert first["sides"]["toy"]["measured"]["edit_distance"] == 0
    assert second["sides"]["toy"]["measured"]["edit_distance"] > 0.5
    found = summary()
    assert found["sides"]["toy"]["quality"]["f1"] == pytest.approx(1 / 2)
    assert found["sides"]["toy"]["cost"]["aal"] == 4
    assert found["versions"]["hsdkit"]
    assert "| verifier | " in result.stdout
    assert "| toy " in result.stdout
    answers = json.loads(Path("out/predictions/toy/document_en.json").read_text())
    assert [row["answer"] for row in answers] == ["page 1 of a.png", "page 1 of b.png"]


def test_the_same_command_runs_nothing_twice(ocean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate()
    before = Path("out/results.jsonl").read_bytes()
    monkeypatch.setattr(ToyVerifier, "verify", None)
    assert evaluate().exit_code == 0
    assert Path("out/results.jsonl").read_bytes() == before


def test_a_larger_limit_goes_on_from_a_smaller_one(ocean: Path) -> None:
    assert evaluate("limit=1").exit_code == 0
    assert (len(lines()), summary()["pages"]) == (2, 1)
    assert evaluate("limit=2").exit_code == 0
    assert (len(lines()), summary()["pages"]) == (3, 2)


def test_a_page_that_fails_counts_as_empty_and_is_run_again(ocean: Path) -> None:
    (ocean / "b.png").write_bytes(b"no image")
    result = evaluate()
    assert result.exit_code == 1
    assert "failed:" in result.stderr
    found = summary()
    assert found["failed"] == 1
    assert "b.png" in found["errors"][0]["error"]
    assert found["sides"]["toy"]["quality"]["edit_distance"] == pytest.approx((0 + 1) / 2)
    assert lines()[2]["error"]
    Image.new("RGB", (40, 30), "white").save(ocean / "b.png")
    assert evaluate().exit_code == 0
    assert summary()["failed"] == 0


def test_a_page_that_is_not_there_is_a_row(ocean: Path) -> None:
    (ocean / "a.png").unlink()
    assert evaluate().exit_code == 1
    assert summary()["errors"][0]["key"] == "document_en/a.png"
    assert summary()["sides"]["toy"]["cost"]["pages"] == 1


def test_where_no_page_is_there_the_folder_is_wrong(ocean: Path) -> None:
    for name in ("a.png", "b.png"):
        (ocean / name).unlink()
    result = evaluate()
    assert result.exit_code == 1
    assert re.search(r"a\.png: no such file, nor is that of any other of the 2 pages.*benchmark\.path", result.stderr)
    assert not Path("out").exists()


def test_results_are_not_mixed_with_those_of_another_ground_truth(ocean: Path) -> None:
    assert evaluate().exit_code == 0
    file = ocean / "document_en.json"
    file.write_text(file.read_text().replace("other words", "more words"))
    result = evaluate()
    assert result.exit_code == 1
    assert "contents.ground truth" in result.stderr


def test_figures_of_single_pages_are_kept(ocean: Path) -> None:
    evaluate()
    assert lines()[1]["sides"]["toy"]["figures"]["edit_distance"] == 0


def test_speedups_are_told_against_a_second_verifier_on_the_same_pages(ocean: Path) -> None:
    result = evaluate("baseline=toy_plain", "verifier.step=0.01")
    assert result.exit_code == 0, result.output
    found = summary()
    assert list(found["sides"]) == ["toy", "toy_plain"]
    assert found["sides"]["toy"]["speedup"]["pages"] == 2
    assert found["sides"]["toy"]["speedup"]["same_text"] == 2
    assert "SR_e2e" in result.stdout
    assert "| prefill's share | " in result.stdout  # Table A1
    assert Path("out/predictions/toy_plain/document_en.json").exists()


def test_results_of_another_run_are_kept_apart(ocean: Path) -> None:
    evaluate()
    result = evaluate("verifier.tau=0.5")
    assert result.exit_code == 1
    assert "verifier.tau 1.0, now 0.5" in result.stderr
    assert evaluate("verifier.tau=0.5", "output=other").exit_code == 0


def test_ctrl_c_keeps_the_pages_before(ocean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = ToyVerifier.verify

    def interrupted(self: Any, page: Any, *rest: Any) -> Any:
        if page.source == "b.png":
            raise KeyboardInterrupt
        return verify(self, page, *rest)

    monkeypatch.setattr(ToyVerifier, "verify", interrupted)
    result = evaluate()
    assert result.exit_code == 130
    assert summary()["pages"] == 1
    assert "1 page of 2" in result.stdout
    monkeypatch.setattr(ToyVerifier, "verify", verify)
    assert evaluate().exit_code == 0
    assert summary()["pages"] == 2


def test_pages_of_pdfs_are_chosen_one_by_one(workplace: Path) -> None:
    (workplace / "bench" / "pdfs").mkdir(parents=True)
    blank_pdf(workplace / "bench" / "pdfs" / "a.pdf", 3)
    tests = [
        {"pdf": "a.pdf", "page": n, "id": str(n), "type": "present", "text": f"page {wanted} of"}
        for n, wanted in ((1, 1), (3, 2))
    ]
    (workplace / "bench" / "words.jsonl").write_text("\n".join(map(json.dumps, tests)))
    assert hsdkit("eval", "benchmark=olmocr_bench", "path=bench", *TOY).exit_code == 0
    quality = summary()["sides"]["toy"]["quality"]
    assert quality == {
        "score": 75,
        "category/baseline": 100,
        "category/words": 50,
        "type/baseline": 100,
        "type/present": 50,
    }
    assert Path("out/predictions/toy/a_pg3_repeat1.md").read_text() == "page 3 of a.pdf"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["benchmark=ocean", "path=ocean"], "did you mean 'ocean_ocr'"),
        (["benchmark=ocean_ocr", "path=ocean", "benchmark.orientatoin=plain"], "benchmark.orientation"),
        (["benchmark=ocean_ocr", "path=ocean", "benchmark.orientation=odd"], "is not one of official, plain"),
        (["benchmark=ocean_ocr", "path=ocean", "subset=german"], "known: language: english"),
        (["benchmark=ocean_ocr", "path=ocean", "a.pdf"], "the benchmark's"),
        (["benchmark=ocean_ocr", "path=ocean", "baseline=toy"], "is the verifier that is measured"),
        (["benchmark=ocean_ocr", "path=ocean", "baseline=tooy"], "did you mean 'toy'"),
        (["path=ocean"], "no benchmark chosen"),
    ],
)
def test_what_cannot_be_meant_is_usage(ocean: Path, arguments: list[str], said: str) -> None:
    result = hsdkit("eval", *TOY, *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not Path("out").exists()


def test_ground_truth_that_is_not_there_is_named(workplace: Path) -> None:
    result = hsdkit("eval", "benchmark=omnidocbench", "path=nowhere.json", *TOY)
    assert result.exit_code == 1
    assert "path=nowhere.json: no such file" in result.stderr


def test_the_benchmark_of_the_docs_runs(workplace: Path) -> None:
    text = (Path(__file__).parent.parent / "docs" / "benchmarks.md").read_text("utf-8")
    [source] = re.findall(r"<!-- snippet: benchmark -->\n```python\n(.*?)```\n", text, re.DOTALL)
    plugin = ModuleType("sidecar_benchmark")
    sys.modules[plugin.__name__] = plugin  # dataclasses look their module up
    exec(compile(source, "benchmarks.md", "exec"), plugin.__dict__)
    plugins().register(plugin, "sidecar")
    Path("data").mkdir()
    for name, words in (("a", "page 1 of a.png\n"), ("b", "page 2 of b.png")):
        Image.new("RGB", (40, 30), "white").save(f"data/{name}.png")
        Path(f"data/{name}.txt").write_text(words)
    try:
        assert hsdkit("eval", "benchmark=sidecar", "path=data", *TOY).exit_code == 0
        assert summary()["sides"]["toy"]["quality"] == {"edit": pytest.approx(1 / 15 / 2)}
        assert Path("out/predictions/toy/a.md").read_text() == "page 1 of a.png"
        assert "sidecar" in hsdkit("plugins", "benchmark").stdout
    finally:
        plugins()._components.pop(("benchmark", "sidecar"))
        plugins().manager.unregister(name="sidecar")


def test_stored_pages_are_read_by_other_commands(ocean: Path) -> None:
    evaluate()
    from hsdkit.results_json import page_from_json

    stored = page_from_json(lines()[1]["sides"]["toy"]["page"])
    assert isinstance(DocumentResult("a.png", (stored,)), DocumentResult)
    assert stored.markdown == "page 1 of a.png"
    assert stored.stages[0].steps > 0


def test_both_sides_decode_within_the_same_limits_and_say_so(workplace: Path) -> None:
    from hsdkit.config import compose
    from hsdkit.evaluation.options import with_verifier

    given = ["target=tiny", "verifier.max_new_tokens=50", "verifier.tau=0.5"]
    other = with_verifier(compose(given), "autoregressive", given, plugins())
    assert other.verifier.options.max_new_tokens == 50
    assert other.settings()["verifier"]["max_new_tokens"] == 50
    assert other.settings()["target"] == compose(given).settings()["target"]


def test_a_page_whose_ground_truth_is_broken_is_a_row(workplace: Path) -> None:
    register_second()
    Image.new("RGB", (40, 30), "white").save("a.png")
    info = {"page_attribute": {}}
    pages = [
        {"layout_dets": [{"text": "no category"}], "page_info": {"image_path": "a.png", **info}},
        {"layout_dets": [], "page_info": {"image_path": "b.png", **info}},
    ]
    Path("truth.json").write_text(json.dumps(pages))
    assert hsdkit("eval", "benchmark=omnidocbench", "path=truth.json", *TOY).exit_code == 1
    assert [e["key"] for e in summary()["errors"]] == ["a.png", "b.png"]
    assert "the blocks of a.png are not as" in summary()["errors"][0]["error"]


def test_what_made_the_results_stays_known(ocean: Path) -> None:
    evaluate()
    made, inputs = summary()["versions"], summary()["inputs"]
    assert made["model"] == "toy-checkpoint"
    assert inputs
    assert {len(digest) for digest in inputs.values()} == {64}
    evaluate()
    assert (summary()["versions"], summary()["inputs"]) == (made, inputs)
