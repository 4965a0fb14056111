"""Clean-up of raw output: fences, tables left open, cut tags, endless tails; finished output keeps what it says."""

from __future__ import annotations

import re
import time

import pytest
from hsdkit_plugins.targets.cleanup import clean, without_loop
from hsdkit_plugins.targets.dialects import Dialect, render
from hsdkit_plugins.targets.formats.blocks import Layout
from hsdkit_plugins.targets.formats.doctags import DocTags
from hsdkit_plugins.targets.formats.grounding import Grounding
from hsdkit_plugins.targets.formats.records import Records
from hypothesis import given, settings
from hypothesis import strategies as st

from hsdkit.regions import Box, Label, Region

HTML, MARKDOWN = Dialect(), Dialect(tables="markdown")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("```markdown\n# A\n\ntext\n```", "# A\n\ntext"),
        ("```markdown\n# A", "# A"),
        ("```\ncode\n```\n\ntext\n\n```\nmore\n```", "```\ncode\n```\n\ntext\n\n```\nmore\n```"),
        ("<table><tr><td>a</td><td>b", "<table><tr><td>a</td><td>b</td></tr></table>"),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"),
        ("<table><tr><td>a</td></tr></table></td>", "<table><tr><td>a</td></tr></table>"),
        (r"\[ x^2 \] and \(y\)", "$$\nx^2\n$$ and $y$"),
        ("a \n\n\n\nb", "a\n\nb"),
        ("5 < 6 and 7 > 3", "5 < 6 and 7 > 3"),
        ("", ""),
    ],
)
def test_finished_output(raw: str, expected: str) -> None:
    assert clean(raw, HTML) == expected


def test_a_tag_cut_in_two_goes_with_an_output_that_was_stopped() -> None:
    assert clean("<table><tr><td>a</td></t", HTML, "length") == "<table><tr><td>a</td></tr></table>"
    assert clean("a <b", HTML, "eos") == "a <b"


def test_tables_follow_the_targets_dialect() -> None:
    assert clean("x\n\n<table><tr><td>a</td><td>b</td></tr></table>", MARKDOWN) == "x\n\n| a | b |\n| --- | --- |"
    assert clean("<table></table>", MARKDOWN) == ""


def test_code_is_left_alone() -> None:
    raw = "text\n\n```\n<table><tr>\n\n\n\n\\(x\\)\n```"
    assert clean(raw, HTML) == raw


@given(st.text("abc .", min_size=5, max_size=60), st.text("xyz <>/|\n", min_size=1, max_size=80), st.integers(12, 60))
def test_a_repeating_tail_stays_once(head: str, unit: str, times: int) -> None:
    looped = f"{head}#{unit * times}"
    if len(unit) * (times - 1) < 60:
        return
    kept = without_loop(looped)
    assert looped.startswith(kept)
    assert kept.startswith(f"{head}#")
    assert len(kept) <= len(head) + 1 + len(unit)


@given(st.text(max_size=200), st.sampled_from(["eos", "length", "loop"]), st.sampled_from([HTML, MARKDOWN]))
@settings(max_examples=300)
def test_cleaning_never_raises(text: str, reason: str, dialect: Dialect) -> None:
    clean(text, dialect, reason)  # type: ignore[arg-type]


@given(
    st.lists(
        st.sampled_from(["<table>", "</table>", "<tr>", "</tr>", "<td>", "</td>", "<th>", "word", "\n"]),
        max_size=30,
    )
)
@settings(max_examples=300)
def test_every_table_tag_is_closed_in_order(tokens: list[str]) -> None:
    text = clean(" ".join(tokens), HTML)
    open_tags: list[str] = []
    for tag in re.findall(r"</?(?:table|tr|td|th)>", text):
        if tag.startswith("</"):
            assert open_tags.pop() == tag[2:-1]
        else:
            open_tags.append(tag[1:-1])
    assert open_tags == []


@pytest.mark.parametrize("start", ["a", "\\(", "\\[", "<table", "```"])
@pytest.mark.parametrize("filling", [" ", "\t", "\n", " \n", "<td>"])
def test_no_output_takes_long_to_clean(start: str, filling: str):
    begin = time.process_time()
    clean(start + filling * 20_000 + "b", HTML)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize("begun", ["\\(", "\\[", "<table", "<table>", "<!--", "```\n", "$", "<td"])
@pytest.mark.parametrize("label", [None, Label.TEXT, Label.TABLE])
def test_nor_does_what_is_begun_again_and_again(begun: str, label: Label | None):
    text, begin = begun * 8_000, time.process_time()
    if label is None:
        clean(text, HTML, "length")
    else:
        render(Region(Box(0, 0, 9, 9), label, text), HTML)
    assert time.process_time() - begin < 2


def test_line_breaks_within_a_display_formula_begin_no_other():
    assert clean("\\[ a \\\\[2pt] b \\]", HTML) == "$$\na \\\\[2pt] b\n$$"


@pytest.mark.parametrize(
    ("layout", "start", "filling"),
    [
        (Records({Label.TEXT: "Text"}), '[{"bbox": [1, 2, 3, 4], "text": "', '"'),
        (Records({Label.TEXT: "Text"}), "", '[{"text": "a"}, '),
        (Records({Label.TEXT: "Text"}), '[{"bbox": [1, 2, 3, 4], "text": "', " "),
        (Records({Label.TEXT: "Text"}), '[{"bbox": [1, 2, 3, 4], "text": "', "\\\\["),
        (Records({Label.TEXT: "Text"}), "```json", " "),
        (Grounding({Label.TEXT: "text"}), "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>", "<|ref|>"),
        (DocTags(), "<otsl>", "<lcel>"),
        (DocTags(), "<otsl>", "<fcel><ucel><nl>"),
        (DocTags(), "", "<text>"),
    ],
)
def test_no_structured_output_does_either(layout: Layout, start: str, filling: str):
    begin = time.process_time()
    clean(start + filling * 4_000 + "b", Dialect(layout=layout), "length")
    assert time.process_time() - begin < 2
