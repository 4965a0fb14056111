"""What a run shows on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hsdkit.cli.console import duration
from hsdkit.cli.display import BarDisplay, LineDisplay, pages_of
from hsdkit.jobs import Progress
from hsdkit.jobs.outcome import page_failure
from hsdkit.results import Attempt, PageResult


def some(pages: int, results: list[PageResult], documents: int = 1) -> Progress:
    progress = Progress(documents=documents, planned=1, pages=pages)
    for result in results:
        progress.add(result)
    return progress


def test_a_terminal_gets_a_bar_with_tokens_per_step_and_no_line_a_page():
    out = Console(file=io.StringIO(), force_terminal=True, width=160, highlight=False)
    display = BarDisplay(out)
    display.status("loading toy")
    display.moved(some(2, []))
    display.on_text("some text")
    good = PageResult(1, "text", "text", "eos", notes=("a note",))
    bad = PageResult(2, error="a[1].pdf, page 2: broken")
    display.page("a[1].pdf", good, some(2, [good]))
    display.page("a[1].pdf", bad, some(2, [good, bad]))
    display.close()
    written = out.file.getvalue()  # type: ignore[attr-defined]
    assert "tokens/step" in written
    assert "a[1].pdf" in written
    assert "2 of 2 pages" in written
    assert "1 failed" in written
    assert "note: a note" in written
    assert "page 2: broken" in written
    assert "page 1:" not in written


def test_pages_of_documents_nobody_has_opened_yet_are_estimated():
    assert pages_of(Progress(documents=10, planned=2, pages=6, kept=3)) == "3 of about 30 pages"
    assert pages_of(Progress(documents=2, planned=2, pages=6, kept=3)) == "3 of 6 pages"
    assert pages_of(Progress(documents=1, planned=1, pages=1)) == "0 of 1 page"


def test_a_note_is_said_once_a_run():
    out = Console(file=io.StringIO())
    display = LineDisplay(out)
    display.moved(some(2, []))
    for number in (1, 2):
        result = PageResult(number, "text", "text", "loop", notes=(f"the same {number}.5",))
        display.page("a.pdf", result, some(2, [result] * number))
    written = out.file.getvalue()  # type: ignore[attr-defined]
    assert written.count("the same") == 1
    assert written.count("went on repeating itself") == 2


@pytest.mark.parametrize(("seconds", "said"), [(59.6, "1 min 0 s"), (12, "12 s"), (18_700, "5 h 11 min")])
def test_times_left_are_readable(seconds: float, said: str):
    assert duration(seconds) == said


FAILED = Attempt("read", "error", "a.pdf, page 1: MemoryError")


def test_a_page_says_what_saved_it():
    out = Console(file=io.StringIO(), width=200)
    display = LineDisplay(out)
    plain = Attempt("plain", kept=True)
    for result in (
        PageResult(1, "text", "text", "eos", attempts=(FAILED, plain)),
        PageResult(2, "text", "text", "time"),
        PageResult(3, "text", "text", attempts=(FAILED, Attempt("draft", kept=True)), origin="draft"),
    ):
        display.page("a.pdf", result, some(3, [result] * result.number))
    first, second, third = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first.endswith("read without a draft")
    assert second.endswith("cut at page_seconds")
    assert "the drafter's text in the place of the model's" in third


def test_a_page_that_no_model_read_counts_as_failed():
    saved = PageResult(1, "text", "text", "eos", attempts=(FAILED, Attempt("retry", kept=True)))
    drafted = PageResult(2, "text", "text", attempts=(FAILED, Attempt("draft", kept=True)), origin="draft")
    assert page_failure("a.pdf", saved) is None
    assert "a.pdf, page 2: not read" in str(page_failure("a.pdf", drafted))
