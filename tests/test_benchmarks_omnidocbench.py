"""OmniDocBench: our scores are those of the official evaluator.

The expected values in data/benchmarks/omnidocbench.json come from its own code (data/benchmarks/record_omnidocbench.py
made the file), on pages and predictions written by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hsdkit_plugins.benchmarks._omnidocbench.prediction import blocks
from hsdkit_plugins.benchmarks._omnidocbench.tables import table_norm
from hsdkit_plugins.benchmarks._omnidocbench.text import formula_norm, text_norm
from hsdkit_plugins.benchmarks.omnidocbench import OmniDocBench, OmniDocBenchConfig

from hsdkit.errors import BenchmarkError
from hsdkit.plugins import plugins

RECORDED = json.loads((Path(__file__).parent / "data" / "benchmarks" / "omnidocbench.json").read_text("utf-8"))
PAGES = {page["page_info"]["image_path"]: (page, markdown) for page, markdown in RECORDED["pages"]}
OFFICIAL = RECORDED["official"]


@pytest.fixture
def benchmark(tmp_path: Path) -> OmniDocBench:
    (tmp_path / "OmniDocBench.json").write_text(json.dumps([page for page, _ in PAGES.values()]), "utf-8")
    made: OmniDocBench = plugins().build("benchmark", "omnidocbench", OmniDocBenchConfig(path=str(tmp_path)))
    return made


@pytest.fixture
def measured(benchmark: OmniDocBench) -> dict[str, Any]:
    return {item.key: benchmark.measure(item, PAGES[item.key][1]) for item in benchmark.items()}


def approx(rows: list[list[float]]) -> list[Any]:
    return [pytest.approx(row) for row in sorted(rows)]


@pytest.mark.parametrize("key", PAGES)
def test_each_page_has_the_official_scores(measured: dict[str, Any], key: str) -> None:
    ours, official = measured[key], OFFICIAL["pages"][key]
    for name, element in (("text", "text_block"), ("formula", "display_formula"), ("order", "reading_order")):
        assert sorted([e / n] for e, n in ours[name]) == approx(official.get(element, [])), name
    assert sorted(ours["table"]) == approx(official.get("table", []))


def test_figures_over_all_pages_are_the_official_ones(benchmark: OmniDocBench, measured: dict[str, Any]) -> None:
    figures, official = benchmark.summarise(list(measured.values())), OFFICIAL["all"]
    text, formula = (official[e]["Edit_dist"]["ALL_page_avg"] for e in ("text_block", "display_formula"))
    table = official["table"]["TEDS"]["all"]
    assert figures["text_edit"] == pytest.approx(text)
    assert figures["formula_edit"] == pytest.approx(formula)
    assert figures["table_teds"] == pytest.approx(100 * table)
    assert figures["table_teds_structure"] == pytest.approx(100 * official["table"]["TEDS_structure_only"]["all"])
    assert figures["reading_order_edit"] == pytest.approx(official["reading_order"]["Edit_dist"]["ALL_page_avg"])
    # v1.5: ((1 - text edit distance) * 100 + TEDS + formulas) / 3, here with the edit distance of formulas for CDM.
    assert figures["overall_formula_edit"] == pytest.approx(100 * ((1 - text) + table + (1 - formula)) / 3)
    assert "overall" not in figures
    assert any("CDM" in note for note in benchmark.notes)


@pytest.mark.parametrize(
    ("group", "official"), [("document", "data_source"), ("language", "language"), ("layout", "layout")]
)
def test_figures_of_groups_are_the_official_ones(
    benchmark: OmniDocBench, measured: dict[str, Any], group: str, official: str
) -> None:
    checked = 0
    for value in {v for item in benchmark.items() for v in item.groups[group]}:
        here = [measured[i.key] for i in benchmark.items() if value in i.groups[group]]
        figures = benchmark.summarise(here, group=True)
        names = {"text_edit": ("text_block", "Edit_dist", 1), "formula_edit": ("display_formula", "Edit_dist", 1)}
        names |= {"reading_order_edit": ("reading_order", "Edit_dist", 1), "table_teds": ("table", "TEDS", 100)}
        for ours, (element, metric, scale) in names.items():
            theirs = OFFICIAL["groups"][element][metric].get(f"{official}: {value}")
            assert figures[ours] == (None if theirs is None else pytest.approx(scale * theirs)), (value, ours)
            checked += theirs is not None
    assert checked >= 4


def test_a_whole_that_lacks_a_part_is_no_number(benchmark: OmniDocBench, measured: dict[str, Any]) -> None:
    figures = benchmark.summarise([measured["exact.jpg"]])
    assert figures["overall_formula_edit"] is None
    assert figures["text_edit"] == 0


def test_predictions_are_named_as_the_evaluator_looks_for_them(benchmark: OmniDocBench) -> None:
    items = benchmark.items()[:2]
    assert list(benchmark.predictions((item, item.key) for item in items)) == [
        ("exact.md", "exact.jpg"),
        ("furniture.md", "furniture.jpg"),
    ]


def test_blocks_of_a_prediction() -> None:
    markdown = "# Head\n\nText with $x_1$.\n\n$$a = b$$\n\n<table><tr><td>1</td></tr></table>\n\n![a](b.png)\n\nEnd"
    assert [(block.kind, block.text) for block in blocks(markdown)] == [
        ("text", "# Head"),
        ("text", "Text with $x_1$."),
        ("formula", "\\[x_1\\]"),
        ("formula", "\\[a = b\\]"),
        ("html_table", "<table><tr><td>1</td></tr></table>"),
        ("text", "End"),
    ]


def test_texts_are_compared_by_letters_and_digits() -> None:
    assert text_norm("The “price”, 1.20 $\\alpha_1$ and/nor!") == "Theprice120α_1andor"
    assert formula_norm("$$\\mathrm{A} \\left( b \\right) \\tag{2} .$$") == "{a}(b)"
    assert table_norm("no table") == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ("{}", "not the format"),
        ('[{"layout_dets": []}]', "page_info.image_path"),
        (json.dumps([{"layout_dets": []}] * 1651), "benchmark.version=1.6"),
    ],
)
def test_another_file_is_refused_with_what_is_wanted(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "truth.json"
    file.write_text(content)
    with pytest.raises(BenchmarkError, match=message):
        OmniDocBench(OmniDocBenchConfig(path=str(tmp_path))).items()


def test_which_file_is_meant_must_be_clear(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="which JSON file"):
        OmniDocBench(OmniDocBenchConfig(path=str(tmp_path))).items()
    with pytest.raises(BenchmarkError, match="no such file"):
        OmniDocBench(OmniDocBenchConfig(path=str(tmp_path / "nowhere"))).items()
    with pytest.raises(BenchmarkError, match="path= is missing"):
        OmniDocBench(OmniDocBenchConfig()).items()


def test_cdm_wants_the_official_evaluator(benchmark: OmniDocBench, tmp_path: Path) -> None:
    config = OmniDocBenchConfig(path=str(tmp_path), cdm=str(tmp_path))
    with pytest.raises(BenchmarkError, match=r"no metrics/cdm_metric.py"):
        OmniDocBench(config).items()


def test_cdm_is_run_by_the_evaluator_in_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmark: OmniDocBench
) -> None:
    """With a stand-in for its renderer: half a point for every formula that is not the same."""
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "cdm_metric.py").write_text(
        "class CDM:\n"
        "    def __init__(self, output_root): pass\n"
        "    def evaluate(self, gt, pred, img_id):\n"
        "        return {'F1_score': 1.0 if gt == pred else 0.5}\n"
    )
    monkeypatch.setattr("shutil.which", lambda tool: tool)
    cdm = OmniDocBench(OmniDocBenchConfig(path=str(tmp_path), cdm=str(tmp_path), cdm_python=sys.executable))
    item = next(i for i in benchmark.items() if i.key == "empty.jpg")
    found = cdm.measure(item, "$$x=y$$")
    assert found["cdm"] == [0.5]  # one side has \[ \] around it, as the evaluator hands it over
    figures = cdm.summarise([found])
    assert figures["formula_cdm"] == 50
    assert "overall" in figures
    assert cdm.notes == ()


@pytest.mark.usefixtures("benchmark")
def test_cdm_that_renders_nothing_is_told_before_any_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator swallows every error of its renderer and scores 0."""
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "__init__.py").write_text("raise ImportError('needs what other metrics need')")
    (tmp_path / "metrics" / "cdm_metric.py").write_text(
        "class CDM:\n"
        "    def __init__(self, output_root): pass\n"
        "    def evaluate(self, gt, pred, img_id):\n"
        "        return {'F1_score': 0}\n"
    )
    monkeypatch.setattr("shutil.which", lambda tool: tool)
    config = OmniDocBenchConfig(path=str(tmp_path), cdm=str(tmp_path), cdm_python=sys.executable)
    with pytest.raises(BenchmarkError, match=r"does not match itself.*scikit-image 0\.20"):
        OmniDocBench(config).items()
