"""The pdftext drafter on born-digital pages drawn here: text, order, structure; and text layers it must refuse."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hsdkit_plugins.drafters._trust import trust
from hsdkit_plugins.drafters.pdftext import PdfText, PdfTextConfig
from papers import PROSE, Draw, column, pdf, text, together
from PIL import Image
from reportlab.lib import colors
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Table

from hsdkit.documents import Page, open_document
from hsdkit.errors import DrafterError
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.spelling import join_texts
from hsdkit.textlayer import TextLayer, Word


def draft(path: Path, **options) -> Draft:
    with open_document(path, dpi=100, **options) as document:
        return PdfText(PdfTextConfig()).draft(document.page(1))


def regions(tmp_path: Path, *draws: Draw, **options) -> list[Region]:
    return list(draft(pdf(tmp_path / "a.pdf", together(*draws), **options)).regions)


def test_a_paragraph_is_one_line_of_exactly_its_text(tmp_path: Path):
    (region,) = regions(tmp_path, column(PROSE, 30, 360, 200))
    assert (region.label, region.text, region.score) == (Label.TEXT, PROSE, 1.0)


def test_broken_words_are_made_whole_but_compounds_keep_their_hyphen(tmp_path: Path):
    lines = [
        "It is plain that the hyphen-",
        "ation of words and of state-of-",
        "the-art terms such as COVID-",
        "19 differ here.",
    ]
    (region,) = regions(tmp_path, text(lines))
    assert region.text == (
        "It is plain that the hyphenation of words and of state-of-the-art terms such as COVID-19 differ here."
    )


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("exam-", "ple", "example"),
        ("exam\u00ad", "ple", "example"),
        ("well-known-", "ness", "well-known-ness"),
        ("Anglo-", "Saxon", "Anglo-Saxon"),
        ("pages 3-", "7", "pages 3-7"),
        ("a -", "b", "a - b"),
        ("the", "end", "the end"),
        ("", "x", "x"),
        ("文字", "列", "文字列"),
    ],
)
def test_joining_lines(before: str, after: str, joined: str):
    assert join_texts(before, after) == joined


def test_a_layer_trusted_less_than_asked_for_is_refused_with_a_reason():
    sheet = Page(1, Image.new("RGB", (600, 800)), "a.pdf", read_text=lambda: layer(PROSE.split(), unmapped=3))
    assert PdfText(PdfTextConfig()).draft(sheet).regions
    with pytest.raises(DrafterError, match=r"a\.pdf, page 1: its text layer is trusted 0\.\d\d only"):
        PdfText(PdfTextConfig(least_score=1.0)).draft(sheet)


def test_two_columns_under_a_title_are_read_one_after_the_other(tmp_path: Path):
    found = regions(
        tmp_path,
        text(["On reading pages in order"], 30, 370, 16, "Helvetica-Bold"),
        column("Left " + PROSE, 30, 340, 110),
        column("Right " + PROSE, 160, 340, 110),
    )
    assert [(r.label, r.level, r.text) for r in found] == [
        (Label.TITLE, 1, "On reading pages in order"),
        (Label.TEXT, None, "Left " + PROSE),
        (Label.TEXT, None, "Right " + PROSE),
    ]
    assert found[1].box.x1 < found[2].box.x0


def test_headings_by_size_and_weight_and_number(tmp_path: Path):
    found = regions(
        tmp_path,
        text(["The heading"], 30, 370, 12.5, "Helvetica-Bold"),
        column(PROSE, 30, 350, 240, 10),
        text(["2.1 A numbered one"], 30, 270, 10, "Helvetica-Bold"),
        column(PROSE, 30, 255, 240, 10),
        text(["Only bold"], 30, 175, 10, "Helvetica-Bold"),
        column(PROSE, 30, 160, 240, 10),
    )
    assert [(r.label, r.level) for r in found] == [
        (Label.HEADING, 2),
        (Label.TEXT, None),
        (Label.HEADING, 2),
        (Label.TEXT, None),
        (Label.HEADING, 3),
        (Label.TEXT, None),
    ]


def test_paragraphs_are_parted_by_space_indent_or_a_short_last_line(tmp_path: Path):
    found = regions(
        tmp_path,
        column("First. " + PROSE, 30, 370, 240),
        column("Second, after a space. " + PROSE, 30, 300, 240),
        text(["Third, indented, starts here and"], 45, 232, 9),
        text(["goes on to the left of its first line."], 30, 220.3, 9),
    )
    assert [r.text.split()[0] for r in found] == ["First.", "Second,", "Third,"]


def test_lists_keep_marks_and_nesting(tmp_path: Path):
    found = regions(
        tmp_path,
        column(PROSE, 30, 370, 240),
        text(["• first item which is long enough to"], 30, 300, 9),
        text(["need a second line"], 38, 288.3, 9),
        text(["• second item"], 30, 276.6, 9),
        text(["– nested under it"], 46, 264.9, 9),
        text(["• third item"], 30, 253.2, 9),
        text(["1. one", "2. two", "3. three"], 30, 220, 9),
    )
    assert [r.label for r in found] == [Label.TEXT, Label.LIST, Label.LIST]
    assert found[1].text == (
        "- first item which is long enough to need a second line\n- second item\n  - nested under it\n- third item"
    )
    assert found[2].text == "1. one\n2. two\n3. three"


ROWS = [
    ["Year", "Craft", "Made in"],
    ["1455", "Type & ink", "Mainz"],
    ["1796", "Stone", "Munich"],
    ["1814", "", "London"],
]
HTML = (
    "<table><tr><td>Year</td><td>Craft</td><td>Made in</td></tr><tr><td>1455</td><td>Type &amp; ink</td><td>Mainz</td>"
    "</tr><tr><td>1796</td><td>Stone</td><td>Munich</td></tr><tr><td>1814</td><td></td><td>London</td></tr></table>"
)


def table(style: list, x: float = 30, y: float = 200) -> Draw:
    def draw(canvas: Canvas) -> None:
        laid = Table(ROWS, style=style)
        laid.wrapOn(canvas, 300, 300)
        laid.drawOn(canvas, x, y)

    return draw


@pytest.mark.parametrize(
    "style",
    [
        [("GRID", (0, 0), (-1, -1), 0.5, colors.black)],
        [("BOX", (0, 0), (-1, -1), 1, colors.black), ("LINEBELOW", (0, 0), (-1, 0), 0.5, colors.black)],
        [
            ("LINEABOVE", (0, 0), (-1, 0), 1, colors.black),
            ("LINEBELOW", (0, 0), (-1, 0), 0.5, colors.black),
            ("LINEBELOW", (0, -1), (-1, -1), 1, colors.black),
        ],
    ],
    ids=["grid", "box", "ruled above and below"],
)
def test_ruled_tables_become_html(tmp_path: Path, style: list):
    found = regions(
        tmp_path, column("Before. " + PROSE, 30, 370, 240), table(style), column("After. " + PROSE, 30, 150, 240)
    )
    assert [r.label for r in found] == [Label.TEXT, Label.TABLE, Label.TEXT]
    assert (found[1].format, found[1].text) == ("html", HTML)


def test_a_table_without_rules_is_seen_by_its_columns(tmp_path: Path):
    found = regions(tmp_path, column(PROSE, 30, 370, 240), table([]), column(PROSE, 30, 150, 240))
    assert [r.label for r in found] == [Label.TEXT, Label.TABLE, Label.TEXT]
    assert found[1].text.count("<tr>") in (3, 4)
    assert "<td>1796</td><td>Stone</td><td>Munich</td>" in found[1].text


def test_two_columns_between_two_rules_are_no_table(tmp_path: Path):
    def rules(canvas: Canvas) -> None:
        canvas.line(30, 380, 270, 380)
        canvas.line(30, 100, 270, 100)

    found = regions(tmp_path, rules, column("Left " + PROSE, 30, 360, 110), column("Right " + PROSE, 160, 360, 110))
    assert [(r.label, r.text.split()[0]) for r in found] == [(Label.TEXT, "Left"), (Label.TEXT, "Right")]


def test_running_headers_and_page_numbers_are_set_apart(tmp_path: Path):
    found = regions(
        tmp_path,
        text(["Annals of Pages"], 110, 385, 8),
        column(PROSE, 30, 350, 240),
        column(PROSE, 30, 260, 240),
        text(["17"], 146, 15, 8),
    )
    assert [r.label for r in found] == [Label.HEADER, Label.TEXT, Label.TEXT, Label.PAGE_NUMBER]
    assert [r.readable for r in found] == [False, True, True, False]


def test_captions_footnotes_code_and_references(tmp_path: Path):
    found = regions(
        tmp_path,
        column(PROSE, 30, 370, 240),
        text(["Figure 3: A caption"], 30, 300, 9),
        text(["def f(x):", "    return x", "print(f(2))"], 30, 270, 9, "Courier"),
        text(["[1] A. Uthor. A title. 1999.", "[2] B. Writer. Another. 2001."], 30, 220, 9),
        text(["1 The note at the foot, in small print"], 30, 60, 7),
    )
    assert [r.label for r in found] == [
        Label.TEXT,
        Label.CAPTION,
        Label.CODE,
        Label.REFERENCE,
        Label.REFERENCE,
        Label.FOOTNOTE,
    ]
    assert found[2].text == "def f(x):\n    return x\nprint(f(2))"


def test_exponents_stay_in_their_line(tmp_path: Path):
    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", 10)
        canvas.drawString(30, 300, "The area is 12 m")
        x = 30 + canvas.stringWidth("The area is 12 m", "Helvetica", 10)
        canvas.setFont("Helvetica", 6)
        canvas.drawString(x, 304, "2")
        canvas.setFont("Helvetica", 10)
        canvas.drawString(x + 6, 300, "in all of the rooms")

    (region,) = regions(tmp_path, draw)
    assert region.text == "The area is 12 m2 in all of the rooms"


def test_a_page_set_sideways_is_read_sideways(tmp_path: Path):
    def draw(canvas: Canvas) -> None:
        canvas.translate(300, 0)
        canvas.rotate(90)
        column(PROSE, 40, 250, 300)(canvas)

    (region,) = regions(tmp_path, draw)
    assert region.text == PROSE
    assert region.box.height > region.box.width


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_rotation_changes_boxes_but_not_text(tmp_path: Path, rotate: int):
    (region,) = regions(tmp_path, column(PROSE, 30, 360, 200), rotate=rotate)
    assert region.text == PROSE


def test_a_page_without_text_is_refused_with_the_reason(tmp_path: Path):
    path = pdf(tmp_path / "a.pdf", lambda canvas: canvas.circle(100, 100, 50))
    with pytest.raises(DrafterError, match=r"a\.pdf, page 1: the page has no text layer"):
        draft(path)


def layer(words: list[str], **more) -> TextLayer:
    drawn = tuple(Word(w, Box(10, 10 * k, 10 + 6 * len(w), 10 * k + 8), 10 * k + 8, 10) for k, w in enumerate(words))
    return dataclasses.replace(TextLayer(drawn, characters=sum(map(len, words))), **more)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "no text layer"),
        (layer([]), "no text layer"),
        (layer(PROSE.split(), unmapped=60), "no known meaning"),
        (layer(["".join(PROSE.split())] * 2), "no spaces"),
        (layer(["#$%&'(", ")*+,-./", '!"#$%'] * 8), "symbols"),
        (
            layer(
                ["".join(chr((ord(c) - 97 + 16) % 26 + 97) for c in w.lower() if c.isalpha()) for w in PROSE.split()]
            ),
            "words",
        ),
        (layer(["Scanned", "by", "me"], images=(Box(0, 0, 600, 800),)), "picture"),
    ],
    ids=["image", "empty", "unmapped", "no spaces", "symbols", "cipher", "stamp on a scan"],
)
def test_garbage_text_layers_are_refused(given: TextLayer | None, reason: str):
    verdict = trust(given, 600, 800)
    assert verdict.score == 0
    assert reason in verdict.reason


def test_good_layers_are_trusted_and_ocr_layers_less():
    assert trust(layer(PROSE.split()), 600, 800).score == 1
    assert trust(layer(["2019", "2020", "2021"] * 9), 600, 800).score == 1
    assert trust(layer(["目录", "第一章排版的历史"] * 9), 600, 800).score == 1
    scanned = trust(layer(PROSE.split(), invisible=240, images=(Box(0, 0, 600, 800),)), 600, 800)
    assert 0.5 < scanned.score < 1
    assert "OCR" in scanned.reason
