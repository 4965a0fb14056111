"""What a run shows on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from hsdkit.cli.display import BarDisplay, LineDisplay
from hsdkit.cli.summary import Outcome
from hsdkit.results import Attempt, PageResult
from hsdkit.totals import Totals


def test_a_terminal_gets_a_bar_with_tokens_per_step_and_no_line_a_page():
    out = Console(file=io.StringIO(), force_terminal=True, width=120, highlight=False)
    display = BarDisplay(out)
    display.status("loading toy")
    display.begin("a[1].pdf", 2)
    display.on_text(0, "some text")
    display.page(PageResult(1, "text", "text", "eos", notes=("a note",)))
    display.page(PageResult(2, error="a[1].pdf, page 2: broken"))
    display.close()
    written = out.file.getvalue()  # type: ignore[attr-defined]
    assert "tokens/step" in written
    assert "a[1].pdf" in written
    assert "note: a note" in written
    assert "page 2: broken" in written
    assert "page 1:" not in written


def test_a_note_is_said_once_a_run():
    out = Console(file=io.StringIO())
    display = LineDisplay(out)
    display.begin("a.pdf", 2)
    for number in (1, 2):
        display.page(PageResult(number, "text", "text", "loop", notes=(f"the same {number}.5",)))
    written = out.file.getvalue()  # type: ignore[attr-defined]
    assert written.count("the same") == 1
    assert written.count("went on repeating itself") == 2


FAILED = Attempt("read", "error", "a.pdf, page 1: MemoryError")


def test_a_page_says_what_saved_it():
    out = Console(file=io.StringIO(), width=200)
    display = LineDisplay(out)
    display.begin("a.pdf", 3)
    plain = Attempt("plain", kept=True)
    display.page(PageResult(1, "text", "text", "eos", attempts=(FAILED, plain)))
    display.page(PageResult(2, "text", "text", "time"))
    display.page(PageResult(3, "text", "text", attempts=(FAILED, Attempt("draft", kept=True)), origin="draft"))
    first, second, third = out.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert first.endswith("read without a draft")
    assert second.endswith("cut at page_seconds")
    assert "the drafter's text in the place of the model's" in third


def test_a_run_with_pages_that_no_model_read_does_not_end_well():
    saved = PageResult(1, "text", "text", "eos", attempts=(FAILED, Attempt("retry", kept=True)))
    drafted = PageResult(2, "text", "text", attempts=(FAILED, Attempt("draft", kept=True)), origin="draft")
    assert Outcome(totals=Totals.of(saved)).exit_code == 0
    assert Outcome(totals=Totals.over([saved, drafted])).exit_code == 1
