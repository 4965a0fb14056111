"""olmOCR-Bench (allenai): unit tests on the Markdown of PDF pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import hsdkit
from hsdkit.benchmarks import Figures, Item, Measured, existing
from hsdkit.components import Component, Requirement
from hsdkit.errors import BenchmarkError

FORMAT = "olmOCR-Bench: a folder with *.jsonl files of tests and the folder pdfs (bench_data), or one *.jsonl file"
NEEDS = tuple(Requirement(module, "hsdkit[eval]") for module in ("bs4", "fuzzysearch"))
BASELINE = "baseline"
#: What a test of each type must say.
FIELDS = {
    "present": ("text",),
    "absent": ("text",),
    "order": ("before", "after"),
    "table": ("cell",),
    "math": ("math",),
    "format": ("text", "format"),
    "footnote": ("marker",),
    BASELINE: (),
}


@dataclass(frozen=True)
class OlmOCRBenchConfig:
    """path: the folder with the *.jsonl files of tests (each is a category), or one of these files.
    pdfs: folder of the PDFs; by default `pdfs` beside the tests."""

    path: str = ""
    pdfs: str = ""


@dataclass(frozen=True, slots=True)
class PageTest:
    """One line of a *.jsonl file; `category` is the name of that file."""

    category: str
    given: Mapping[str, Any]

    @property
    def page(self) -> tuple[str, int]:
        return str(self.given["pdf"]), int(self.given["page"])


class OlmOCRBench:
    """A page passes or fails each of its tests; the score is the mean over categories of the share that passes."""

    name = "olmocr_bench"
    edition = "tests"

    def __init__(self, config: OlmOCRBenchConfig) -> None:
        self._config = config

    @property
    def notes(self) -> tuple[str, ...]:
        from hsdkit_plugins.benchmarks._olmocr.math import renders

        if renders() or not any(t.given["type"] == "math" for tests in self._tests.values() for t in tests):
            return ()
        return (
            "math tests compare LaTeX, spaces apart, where the benchmark compares formulas rendered by KaTeX: fewer "
            'pass (pip install "olmocr[bench]" and a Chromium of playwright render them)',
        )

    @cached_property
    def _tests(self) -> dict[str, list[PageTest]]:
        """The tests of each page, by its key. A file without a baseline test gets one, in a category of its own."""
        path = existing(self._config.path, FORMAT)
        files = [path] if path.is_file() else sorted(path.glob("*.jsonl"))
        if not files:
            raise BenchmarkError(f"path={path}: no *.jsonl file there; wanted is {FORMAT}")
        tests = [test for file in files for test in _read(file)]
        with_baseline = {t.page[0] for t in tests if t.given["type"] == BASELINE}
        for pdf in dict.fromkeys(t.page[0] for t in tests):
            if pdf not in with_baseline:
                given = {"pdf": pdf, "page": 1, "id": f"{pdf}_{BASELINE}", "type": BASELINE}
                tests.append(PageTest(BASELINE, given))
        by_page: dict[str, list[PageTest]] = {}
        for test in tests:
            by_page.setdefault(_key(*test.page), []).append(test)
        return by_page

    def items(self) -> Sequence[Item]:
        path = Path(self._config.path)
        pdfs = Path(self._config.pdfs) if self._config.pdfs else (path.parent if path.is_file() else path) / "pdfs"
        return [
            Item(key, pdfs / tests[0].page[0], tests[0].page[1], {"category": (tests[0].category,)})
            for key, tests in self._tests.items()
        ]

    def measure(self, item: Item, markdown: str) -> Measured:
        return {"tests": [_outcome(test, markdown) for test in self._tests[item.key]]}

    def summarise(self, pages: Sequence[Measured], group: bool = False) -> Figures:
        """Percent of tests that pass: `score` is the mean of those of the categories, then each category's and each
        type's."""
        tests = [test for page in pages for test in page["tests"]]

        def passed(by: str) -> Figures:
            names = sorted({test[by] for test in tests})
            return {
                f"{by}/{name}": 100 * fmean(test["reason"] == "" for test in tests if test[by] == name)
                for name in names
            }

        categories = passed("category")
        score = fmean(v for v in categories.values() if v is not None) if categories else None
        return {"score": score} | categories | passed("type")

    def predictions(self, pages: Iterable[tuple[Item, str]]) -> Iterator[tuple[str, str]]:
        for item, markdown in pages:
            pdf = self._tests[item.key][0].page[0]
            yield f"{pdf.removesuffix('.pdf')}_pg{item.page}_repeat1.md", markdown


def _key(pdf: str, page: int) -> str:
    return f"{pdf} page {page}"


def _outcome(test: PageTest, markdown: str) -> dict[str, str]:
    """`reason` is why it fails, "" when it passes."""
    given = test.given
    reason = _kinds()[given["type"]](given, markdown)
    return {"id": str(given["id"]), "category": test.category, "type": given["type"], "reason": reason}


def _kinds() -> dict[str, Callable[[Mapping[str, Any], str], str]]:
    from hsdkit_plugins.benchmarks._olmocr.baseline import baseline
    from hsdkit_plugins.benchmarks._olmocr.math import math
    from hsdkit_plugins.benchmarks._olmocr.tables import table
    from hsdkit_plugins.benchmarks._olmocr.text import footnote, formatted, order, presence

    kinds = {"present": presence, "absent": presence, "order": order, "table": table, "math": math}
    return kinds | {"format": formatted, "footnote": footnote, BASELINE: baseline}


def _read(file: Path) -> Iterator[PageTest]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as e:
        raise BenchmarkError(f"{file}: cannot be read: {e}") from e
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
            missing = [f for f in ("pdf", "page", "id", *FIELDS[given["type"]]) if given.get(f) in (None, "")]
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise BenchmarkError(f"{file}, line {number}: not a test ({e}); wanted is {FORMAT}") from e
        if missing:
            raise BenchmarkError(f"{file}, line {number}: the {given['type']} test has no {', '.join(missing)}")
        yield PageTest(file.stem, given)


@hsdkit.hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "PDF pages: tests for text, reading order, tables, formulas, furniture; the share that passes"
    yield Component("benchmark", OlmOCRBench.name, summary, OlmOCRBenchConfig, OlmOCRBench, NEEDS)
