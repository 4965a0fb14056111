"""What a run shows on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from hsdkit.cli.display import BarDisplay, LineDisplay
from hsdkit.results import PageResult


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
