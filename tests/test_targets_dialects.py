"""Draft rendering: nothing raises, no word is lost, and at equal text the draft is what the model writes."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hsdkit_plugins.targets.dialects import Dialect, normalise, render
from hsdkit_plugins.targets.tables import Cell, html_grid, html_table, markdown_table, plain_grid
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hsdkit.regions import Box, Label, Region

HTML, MARKDOWN = Dialect(), Dialect(tables="markdown")
TINY = Dialect(fence=False)


def region(label: Label, text: str, **extra: object) -> Region:
    return Region(Box(0, 0, 10, 10), label, text, **extra)  # type: ignore[arg-type]


def words(text: str) -> list[str]:
    """Runs of letters and digits, hyphenation at line ends aside."""
    text = unicodedata.normalize("NFKC", text.replace("\u00ad", "").replace("\u200b", "").replace("\ufeff", ""))
    return re.findall(r"[^\W_]+", text)


# -- what each label looks like

CASES = [
    (HTML, region(Label.TITLE, "On  the\nOrigin"), "# On the Origin"),
    (HTML, region(Label.HEADING, "Methods"), "## Methods"),
    (HTML, region(Label.HEADING, "Deep", level=4), "#### Deep"),
    (HTML, region(Label.HEADING, "### marked", level=1), "### marked"),
    (Dialect(heading=3), region(Label.HEADING, "Methods"), "### Methods"),
    (HTML, region(Label.TEXT, "One line\nand an-\nother."), "One line and another."),
    (HTML, region(Label.TEXT, "North-\nSouth and re\u00ad\nturn"), "North-South and return"),
    (HTML, region(Label.TEXT, "港口的船只\n数量"), "港口的船只数量"),
    (HTML, region(Label.TEXT, "ﬁnd the ﬂow\u00a0of soft\u00adness"), "find the flow of softness"),
    (HTML, region(Label.TEXT, "“Curly” – kept…"), "“Curly” – kept…"),
    (HTML, region(Label.LIST, "• one\n• two\n  more of two\n  - nested"), "- one\n- two more of two\n  - nested"),
    (HTML, region(Label.LIST, "1) first\n2. second"), "1. first\n2. second"),
    (Dialect(bullet="* "), region(Label.LIST, "- one"), "* one"),
    (HTML, region(Label.FORMULA, "E = mc^2", format="latex"), "$$\nE = mc^2\n$$"),
    (HTML, region(Label.FORMULA, r"\[ a \]", format="latex"), "$$\na\n$$"),
    (Dialect(formula=(r"\[", r"\]")), region(Label.FORMULA, "$$a$$", format="latex"), r"\[a\]"),
    (HTML, region(Label.CODE, "if a:\n    b()\n"), "```\nif a:\n    b()\n```"),
    (TINY, region(Label.CODE, "if a:\n    b()\n"), "if a:\n    b()"),
    (
        HTML,
        region(
            Label.TABLE,
            '<table class="x">\n<thead><tr><th> A </th><th colspan=2>B &amp; C</th></tr></thead>'
            "<tr><td>1<td>2<td>3</table>",
            format="html",
        ),
        '<table><tr><td>A</td><td colspan="2">B & C</td></tr><tr><td>1</td><td>2</td><td>3</td></tr></table>',
    ),
    (
        MARKDOWN,
        region(
            Label.TABLE, "<table><tr><td colspan=2>A</td></tr><tr><td>1</td><td>a|b</td></tr></table>", format="html"
        ),
        "| A |  |\n| --- | --- |\n| 1 | a\\|b |",
    ),
    (
        HTML,
        region(Label.TABLE, "Name  Count\nFerry boats  12"),
        "<table><tr><td>Name</td><td>Count</td></tr><tr><td>Ferry boats</td><td>12</td></tr></table>",
    ),
    (MARKDOWN, region(Label.TABLE, "| a | b |\n|---|---|\n| 1 | |"), "| a | b |\n| --- | --- |\n| 1 |  |"),
]


@pytest.mark.parametrize(("dialect", "given_region", "expected"), CASES)
def test_a_region_is_written_as_the_model_writes_it(dialect: Dialect, given_region: Region, expected: str) -> None:
    assert render(given_region, dialect) == expected


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Item Cost\nRope 12\nPaint 7", [["Item", "Cost"], ["Rope", "12"], ["Paint", "7"]]),
        ("Item Cost\nLong rope 12\nPaint 7", [["Item", "Cost"], ["Long rope", "12"], ["Paint", "7"]]),
        ("Year in out\nAll of it 1,204 $3.5", [["Year", "in", "out"], ["All of it", "1,204", "$3.5"]]),
        ("just some words\nthat are no columns at all", [["just some words"], ["that are no columns at all"]]),
        ("a\tb c\nd\te", [["a", "b c"], ["d", "e"]]),
    ],
)  # fmt: skip
def test_columns_are_guessed_from_plain_rows(text: str, rows: list[list[str]]) -> None:
    assert [[c.text for c in row] for row in plain_grid(text)] == rows


def test_spans_become_empty_cells_in_markdown() -> None:
    grid = html_grid(
        "<table><tr><td rowspan=2>a</td><td>b</td></tr><tr><td>c</td></tr><tr><td>d</td><td>e</td></tr></table>"
    )
    assert markdown_table(grid) == "| a | b |\n| --- | --- |\n|  | c |\n| d | e |"


# -- properties

TEXT = st.text(
    st.one_of(
        st.sampled_from("ab Z9\n\t -|#$.*•“”’–ﬁ\u00ad\u00a0é港口<>/&;`\\"),
        st.characters(exclude_categories=["Cs", "Cn", "Co"]),
    ),
    max_size=80,
)
REGIONS = st.builds(
    region,
    st.sampled_from(list(Label)),
    TEXT,
    format=st.sampled_from(["text", "latex"]),
    level=st.one_of(st.none(), st.integers(-2, 9)),
)
DIALECTS = st.sampled_from([HTML, MARKDOWN, TINY])


@given(REGIONS, DIALECTS)
@settings(max_examples=400)
@example(region(Label.TABLE, "<table><tr><td>x<y and more</table>"), HTML)
@example(region(Label.LIST, "-\n1.\n*"), MARKDOWN)
def test_rendering_never_raises(r: Region, dialect: Dialect) -> None:
    render(r, dialect)


@given(REGIONS, st.sampled_from([HTML, MARKDOWN]))
@settings(max_examples=400)
@example(region(Label.TEXT, "ﬀ ﬁ ﬂ ﬃ ﬄ ﬅ ﬆ"), HTML)
def test_no_word_is_lost_or_reordered(r: Region, dialect: Dialect) -> None:
    if re.search("<[/a-z]", r.text.lower()):  # a text that spells a tag cannot be told from one
        return
    rendered = re.sub(r"</?(?:table|tr|td)>", " ", render(r, dialect))
    assert "".join(words(rendered)) == "".join(words(r.text))


#: Text that spells a tag, such as "<a>", cannot be told from one.
CELLS = (
    st.text(st.sampled_from("ab Z9.,-+()%é<>&"), max_size=12)
    .map(lambda t: " ".join(t.split()))
    .filter(lambda t: not re.search("<[ab]", t))
)
GRIDS = st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=4)


@given(GRIDS)
def test_an_html_table_in_the_minimal_dialect_stays_as_it_is(grid: list[list[str]]) -> None:
    """What the model writes, read back as a region, renders to what the model writes."""
    written = html_table([[Cell(c) for c in row] for row in grid])
    rendered = render(region(Label.TABLE, written, format="html"), HTML)
    assert rendered == (written if any(c for row in grid for c in row) else "")


@given(
    st.lists(
        st.sampled_from(["the", "harbour", "was", "closed", "in", "winter", "ships", "1,204", "3.5%", "(new)"]),
        min_size=1,
    )
)
def test_at_equal_text_every_kind_of_draft_is_what_the_model_writes(tokens: list[str]) -> None:
    text = " ".join(tokens)
    assert render(region(Label.TEXT, text), TINY) == text
    assert render(region(Label.HEADING, text, level=2), TINY) == f"## {text}"
    assert render(region(Label.LIST, f"- {text}\n- {text}"), TINY) == f"- {text}\n- {text}"
    assert render(region(Label.TABLE, "\t".join(tokens)), TINY).replace("</td><td>", " ") == (
        f"<table><tr><td>{text}</td></tr></table>"
    )


@given(TEXT, DIALECTS)
def test_normalising_twice_changes_nothing(text: str, dialect: Dialect) -> None:
    once = normalise(text, dialect)
    assert normalise(once, dialect) == once
