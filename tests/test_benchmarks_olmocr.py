"""olmOCR-Bench: a test passes here if it passes there.

What passes in data/benchmarks/olmocr_bench.json was found by the benchmark's own code
(data/benchmarks/record_olmocr.py made the file), on tests and outputs written by hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hsdkit_plugins.benchmarks._olmocr import math as formulas
from hsdkit_plugins.benchmarks.olmocr_bench import OlmOCRBench, OlmOCRBenchConfig, PageTest, _outcome

from hsdkit.errors import BenchmarkError

RECORDED = json.loads((Path(__file__).parent / "data" / "benchmarks" / "olmocr_bench.json").read_text("utf-8"))


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: f"{row['test']['type']}-{row['test']['id']}")
def test_each_test_passes_where_it_does_officially(row: dict[str, Any]) -> None:
    assert (_outcome(PageTest("tests", row["test"]), row["markdown"])["reason"] == "") == row["passes"]


def test_formulas_without_a_renderer_are_compared_as_latex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "_rendered", lambda: None)
    wanted = {"math": "\\frac{a}{b} = c"}
    for markdown in ("$\\frac{a}{b} = c$", "text \\[\\frac {a} {b}=c\\] text", "$$\n\\frac{a}{b}=c\n$$"):
        assert formulas.math(wanted, markdown) == ""
    for markdown in ("\\frac{a}{b} = c", "$\\frac{a}{b}$", "$\\frac{b}{a} = c$", ""):
        assert formulas.math(wanted, markdown)
    assert formulas.math(wanted | {"ignore_dollar_delimited": True}, "$\\frac{a}{b} = c$")


def test_formulas_are_compared_as_they_look_where_they_can_be_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "_rendered", lambda: lambda wanted, found: wanted.upper() == found.upper())
    assert formulas.renders()
    assert formulas.math({"math": "A"}, "$b$ and $a$") == ""


def write(folder: Path, name: str, *tests: dict[str, Any]) -> None:
    (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, tests)) + "\n\n", "utf-8")


def present(pdf: str, page: int, text: str) -> dict[str, Any]:
    return {"pdf": pdf, "page": page, "id": f"{pdf}{page}{text}", "type": "present", "text": text}


@pytest.fixture
def benchmark(tmp_path: Path) -> OlmOCRBench:
    write(tmp_path, "headers", present("a.pdf", 1, "one"), present("a.pdf", 1, "two"), present("sub/b.pdf", 2, "three"))
    write(tmp_path, "tables", {"pdf": "a.pdf", "page": 1, "id": "t", "type": "table", "cell": "x"})
    return OlmOCRBench(OlmOCRBenchConfig(path=str(tmp_path)))


def test_a_page_with_its_tests_is_an_item(benchmark: OlmOCRBench, tmp_path: Path) -> None:
    a, b, b1 = benchmark.items()
    assert (a.key, a.document, a.page) == ("a.pdf page 1", tmp_path / "pdfs" / "a.pdf", 1)
    assert (b.document, b.page, b.groups) == (tmp_path / "pdfs" / "sub" / "b.pdf", 2, {"category": ("headers",)})
    # The benchmark adds a baseline test of page 1 to each file that has none.
    assert (b1.key, b1.groups) == ("sub/b.pdf page 1", {"category": ("baseline",)})


def test_the_score_is_the_mean_of_the_categories(benchmark: OlmOCRBench) -> None:
    a, b, b1 = benchmark.items()
    measured = [benchmark.measure(a, "one"), benchmark.measure(b, "three"), benchmark.measure(b1, "")]
    figures = benchmark.summarise(measured)
    assert figures == pytest.approx(
        {
            "score": 100 * (2 / 3 + 0 + 1 / 2) / 3,
            "category/baseline": 50,
            "category/headers": 200 / 3,
            "category/tables": 0,
            "type/baseline": 50,
            "type/present": 200 / 3,
            "type/table": 0,
        }
    )
    assert benchmark.summarise([]) == {"score": None}


def test_predictions_are_named_as_the_benchmark_looks_for_them(benchmark: OlmOCRBench) -> None:
    assert [name for name, _ in benchmark.predictions((i, "") for i in benchmark.items())] == [
        "a_pg1_repeat1.md",
        "sub/b_pg2_repeat1.md",
        "sub/b_pg1_repeat1.md",
    ]


def test_only_math_tests_need_a_renderer(
    benchmark: OlmOCRBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formulas, "_rendered", lambda: None)
    assert benchmark.notes == ()
    write(tmp_path, "math", {"pdf": "m.pdf", "page": 1, "id": "m", "type": "math", "math": "x"})
    [note] = OlmOCRBench(OlmOCRBenchConfig(path=str(tmp_path))).notes
    assert "KaTeX" in note


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"a.jsonl, line 1: not a test"),
        ('{"type": "guess"}', r"line 1: not a test"),
        ('{"type": "order", "pdf": "a.pdf", "page": 1, "id": "o", "before": "x"}', "the order test has no after"),
        ("[]", "not a test"),
    ],
)
def test_what_is_no_test_is_named(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(line)
    with pytest.raises(BenchmarkError, match=message):
        OlmOCRBench(OlmOCRBenchConfig(path=str(tmp_path))).items()
