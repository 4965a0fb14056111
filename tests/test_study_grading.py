"""A benchmark's figures of a cell: of its pages, of each page, and of the drafts as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from test_study_report import page as recorded

from hsdkit.benchmarks import Figures, Item, Measured
from hsdkit.study.grading import Grader
from hsdkit.study.records import PageRecord


class Lengths:
    """Counts letters; what it finds of a page is a list, as that of OmniDocBench."""

    name, edition, notes = "lengths", "v1", ("only letters count",)

    def items(self) -> Sequence[Item]:
        return [Item(f"p{n}", Path("a.pdf"), n, {"language": ("english",)}) for n in (1, 2)]

    def measure(self, item: Item, markdown: str) -> Measured:
        return {"letters": [len(markdown)]}

    def summarise(self, pages: Sequence[Measured], group: bool = False) -> Figures:
        mean = sum(p["letters"][0] for p in pages) / len(pages) if pages else None
        return {"nothing": None, "letters": mean, "least": 0.0, "single/p1": 1.0}

    def predictions(self, pages: Iterable[tuple[Item, str]]) -> Iterator[tuple[str, str]]:
        return iter(())


def grader(options: dict[str, str] | None = None) -> Grader:
    benchmark = Lengths()
    return Grader(benchmark, tuple(benchmark.items()), options or {})


@pytest.fixture
def page() -> PageRecord:
    return recorded(document="a.pdf", text="abcd")


def test_a_page_that_failed_counts_as_empty(page: PageRecord) -> None:
    kept, figures = grader().graded([page])
    assert figures == {"letters": 2.0, "least": 0.0}
    assert [(p.groups, p.metrics) for p in kept] == [({"language": "english"}, {"letters": 4.0, "least": 0.0})]


def test_the_drafts_are_graded_as_they_are(page: PageRecord) -> None:
    """Paper, Table 7: the drafter's text has a row of its own."""
    _, figures = grader().graded([replace(page, draft="ab")])
    assert figures == {"letters": 2.0, "least": 0.0, "draft letters": 2.0}


def test_another_ground_truth_is_another_measurement(tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    truth.write_text("[1]")
    for path in (truth, tmp_path):
        before = grader({"path": str(path)}).identity
        truth.write_text(f"{truth.read_text()} ")
        assert grader({"path": str(path)}).identity != before
    before = grader({"path": str(tmp_path)}).identity
    (tmp_path / "page.png").write_bytes(b"a page, which is an input")
    assert grader({"path": str(tmp_path)}).identity == before


def test_a_record_says_whose_figures_it_has(tmp_path: Path) -> None:
    truth = tmp_path / "truth.json"
    truth.write_text("[1]")
    assert grader().notes == ("benchmark lengths v1", "only letters count")
    assert grader().about == {"name": "lengths", "edition": "v1", "truth": ""}
    digest = hashlib.sha256(b"[1]").hexdigest()
    assert grader({"path": str(truth)}).notes[0] == f"benchmark lengths v1, ground truth sha256 {digest[:12]}"
