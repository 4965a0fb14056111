"""Page outputs that are more than Markdown: written as the models write them, read back whole, cut and broken."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from formats import CATEGORIES, DIALECTS, WORDS, drafts_of, page, scale_of, written
from hsdkit_plugins.targets.cleanup import clean
from hsdkit_plugins.targets.dialects import Dialect, render
from hsdkit_plugins.targets.formats.blocks import Block, Layout, crop_draft, page_drafts, page_regions, stated_label
from hsdkit_plugins.targets.formats.doctags import DocTags
from hsdkit_plugins.targets.formats.grounding import Grounding
from hsdkit_plugins.targets.formats.records import Records
from hsdkit_plugins.targets.otsl import otsl_grid, otsl_table
from hsdkit_plugins.targets.tables import Cell, HtmlStyle, html_grid, html_table, places
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hsdkit.regions import Box, Label, Region

RECORDS, GROUNDING, DOCTAGS = Records(CATEGORIES), Grounding(WORDS), DocTags()
LAYOUTS: dict[str, Layout] = {
    name: layout for name, dialect in DIALECTS.items() if (layout := dialect.layout) is not None
}


def joined(layout: Layout, *blocks: Block) -> str:
    return layout.separator.join(layout.write(blocks))


def block(label: Label, text: str = "", box: Box | None = None) -> Block:
    return Block(label, text, box or Box(10, 20, 300, 40))


# -- as the models write


def test_records_are_written_on_one_line_with_the_spaces_and_letters_of_dots_ocr() -> None:
    text = joined(
        RECORDS,
        block(Label.HEADING, "## The Evolution", Box(140.2, 141, 535.8, 175)),
        block(Label.FIGURE, "", Box(636, 495, 1127, 1065)),
        block(Label.TEXT, 'Ünit "a"\nand \\alpha'),
    )
    assert text == (
        '[{"bbox": [140, 141, 536, 175], "category": "Section-header", "text": "## The Evolution"}, '
        '{"bbox": [636, 495, 1127, 1065], "category": "Picture"}, '
        '{"bbox": [10, 20, 300, 40], "category": "Text", "text": "Ünit \\"a\\"\\nand \\\\alpha"}]'
    )
    assert [record["category"] for record in json.loads(text)] == ["Section-header", "Picture", "Text"]
    assert json.loads(joined(RECORDS, block(Label.FIGURE)))[0] == {"bbox": [10, 20, 300, 40], "category": "Picture"}


def test_grounded_blocks_are_written_as_deepseek_ocr_does() -> None:
    text = joined(
        GROUNDING,
        block(Label.HEADING, "### 5.1 Search", Box(217, 209, 520, 225)),
        block(Label.CAPTION, "Table 1. Results."),
        block(Label.TABLE, "<table><tr><td>1</td></tr></table>"),
        block(Label.FIGURE),
        block(Label.CAPTION, "Figure 1"),
        block(Label.HEADER, "left out"),
    )
    at = "<|det|>[[10, 20, 300, 40]]<|/det|>"
    assert text == (
        "<|ref|>sub_title<|/ref|><|det|>[[217, 209, 520, 225]]<|/det|>\n### 5.1 Search  \n\n"
        f"<|ref|>table<|/ref|>{at}\n<|ref|>table_caption<|/ref|>{at}\nTable 1. Results.   \n\n"
        "<table><tr><td>1</td></tr></table>\n\n"
        f"<|ref|>image<|/ref|>{at}\n<|ref|>image_caption<|/ref|>{at}\n<center>Figure 1 </center>  "
    )


def test_doctags_are_written_as_granite_docling_does() -> None:
    text = joined(
        DOCTAGS,
        block(Label.HEADER, "Running title"),
        Block(Label.HEADING, "5.1 Search", Box(67, 36, 253, 44), level=2),
        block(Label.LIST, "- one\n- twos", Box(66, 50, 431, 120)),
        block(Label.TABLE, "<ched>A<ched>B<nl>"),
        block(Label.FIGURE),
        block(Label.CAPTION, "Fig. 1"),
    )
    at = "<loc_10><loc_20><loc_300><loc_40>"
    assert text == (
        f"<doctag><page_header>{at}Running title</page_header>\n"
        "<section_header_level_1><loc_67><loc_36><loc_253><loc_44>5.1 Search</section_header_level_1>\n"
        "<unordered_list><list_item><loc_66><loc_50><loc_431><loc_82>one</list_item>\n"
        "<list_item><loc_66><loc_82><loc_431><loc_120>twos</list_item>\n</unordered_list>\n"
        f"<otsl>{at}<ched>A<ched>B<nl></otsl>\n"
        f"<picture>{at}<caption>{at}Fig. 1</caption></picture>\n</doctag>"
    )


def test_boxes_are_in_the_units_of_the_format() -> None:
    regions = (Region(Box(80, 100, 400, 500), Label.TEXT, "Words"),)

    def draft(layout: Layout, x: float, y: float) -> str:
        return "".join(page_drafts(regions, {}, lambda r: r.text, layout, (x, y)))

    assert "[100, 125, 500, 625]" in draft(RECORDS, 1.25, 1.25)
    assert "[[100, 100, 500, 500]]" in draft(GROUNDING, 999 / 800, 999 / 1000)
    assert "<loc_50><loc_50><loc_250><loc_250>" in draft(DOCTAGS, 500 / 800, 500 / 1000)


def test_a_box_that_reaches_beyond_the_page_is_cut_there() -> None:
    regions = (Region(Box(-3, 10, 805, 1003), Label.TEXT, "Words"),)
    (draft,) = page_drafts(regions, {}, lambda r: r.text, RECORDS, (1.0, 1.0), (800, 1000))
    assert "[0, 10, 800, 1000]" in draft


def test_what_the_model_read_in_a_crop_takes_the_place_of_the_drafters_text() -> None:
    regions = (Region(Box(0, 0, 80, 20), Label.TEXT, "dratf"), Region(Box(0, 30, 80, 50), Label.TEXT, "tow"))
    read = {1: 'two "2"'}
    assert page_drafts(regions, read, lambda r: r.text, None) == ("dratf", 'two "2"')
    assert '"text": "two \\"2\\"' in page_drafts(regions, read, lambda r: r.text, RECORDS)[1]
    # Crops are often read without the marks that a page has.
    heading = (Region(Box(0, 0, 80, 20), Label.HEADING, "Teh ships", level=3),)
    (draft,) = page_drafts(heading, {0: "The ships"}, lambda r: render(r, DIALECTS["records"]), RECORDS)
    assert '"text": "### The ships"' in draft
    formula = (Region(Box(0, 0, 80, 20), Label.FORMULA, "x", "latex"),)
    (draft,) = page_drafts(formula, {0: r"\[y\]"}, lambda r: render(r, DIALECTS["records"]), RECORDS)
    assert '"text": "$$ y $$"' in draft
    # In a crop this model writes tags as well: they are those of the crop, not of the page.
    own = {1: "<doctag><text><loc_2><loc_3><loc_400><loc_450>two</text>\n</doctag>"}
    assert page_drafts(regions, own, lambda r: r.text, DOCTAGS)[1] == (
        "<text><loc_0><loc_30><loc_80><loc_50>two</text>\n</doctag>"
    )


def test_the_draft_of_a_crop_can_be_in_the_format_too() -> None:
    region = Region(Box(100, 100, 300, 200), Label.TABLE, "<table><tr><td>1</td></tr></table>", "html")
    text = crop_draft(region, render(region, DIALECTS["doctags"]), DOCTAGS)
    assert text == "<doctag><otsl><loc_0><loc_0><loc_500><loc_500><fcel>1<nl></otsl>\n</doctag>"
    assert crop_draft(region, "", DOCTAGS) == ""


# -- read back

WORDING = st.text(st.sampled_from('ab Z9.,:"\\{}[]\n<>|/$é港，_-'), min_size=1, max_size=40)
#: Tags that a text spells cannot be told from the format's own; space around a text is not the text's.
TEXTS = WORDING.map(str.strip).filter(lambda t: t and not re.search(r"<\||</?[a-z]|<$", t))
BOXES = st.builds(
    lambda x, y, w, h: Box(x, y, x + w, y + h),
    *(st.integers(0, 200) for _ in range(2)),
    *(st.integers(1, 200) for _ in range(2)),
)
PLAIN_LABELS = (Label.TEXT, Label.CAPTION, Label.TEXT)
BLOCKS = st.lists(st.builds(Block, st.sampled_from(PLAIN_LABELS), TEXTS, BOXES), min_size=1, max_size=6)


@pytest.mark.parametrize("name", LAYOUTS)
@given(blocks=BLOCKS)
@settings(max_examples=60)
def test_what_was_written_is_read_back(name: str, blocks: list[Block]) -> None:
    layout = LAYOUTS[name]
    found = layout.read(joined(layout, *blocks))
    assert found is not None
    distinct = [b for i, b in enumerate(blocks) if i == 0 or b != blocks[i - 1]]
    assert [(b.label, b.text, b.box) for b in found] == [(b.label, b.text, b.box) for b in distinct]


@pytest.mark.parametrize("name", LAYOUTS)
@given(blocks=BLOCKS, cut=st.floats(0, 1))
@settings(max_examples=60)
def test_of_an_output_cut_anywhere_all_that_is_there_is_kept(name: str, blocks: list[Block], cut: float) -> None:
    layout = LAYOUTS[name]
    whole = joined(layout, *blocks)
    text = whole[: int(len(whole) * cut)]
    found = layout.read(text) or ()
    assert len(found) <= len(blocks) + 1
    # All blocks whose successor has begun are whole, and of the last there is a beginning.
    starts = [len(joined(layout, *blocks[: k + 1])) + len(layout.separator) + 60 for k in range(len(blocks))]
    complete = [b for b, end in zip(blocks, starts, strict=True) if end < len(text)]
    complete = [b for i, b in enumerate(complete) if i == 0 or b != complete[i - 1]]
    assert [b.text for b in found[: len(complete)]] == [b.text for b in complete]


#: Pieces of all formats.
PIECES = [
    *('[{', '"bbox": [1, 2, 3, 4]', '"text": "', '"}', ", ", "]", "word", "\\", "\\u12", "\n"),
    *("<|ref|>", "text", "<|/ref|>", "<|det|>", "[[1, 2, 3, 4]]", "<|/det|>"),
    *("<doctag>", "<text>", "<loc_3>", "</text>", "<otsl>", "<fcel>", "<lcel>", "<nl>", "</otsl>", "<picture>"),
    *("<caption>", "<list_item>", "<ordered_list>", "</ordered_list>"),
]  # fmt: skip


@pytest.mark.parametrize("name", LAYOUTS)
@given(text=st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example(text='[{"bbox": [1e400, 2, 3, 4], "category": 5, "text": ["a"]}, 7, {"text": "\\ud800"}]')
@example(text="[" * 5000)
@settings(max_examples=100)
def test_no_output_is_too_broken_to_be_read(name: str, text: str) -> None:
    dialect = Dialect(layout=LAYOUTS[name])
    for region in page_regions(text, dialect.layout, (0.5, 2.0)):
        assert region.box.area > 0
        region.text.encode()
    for reason in ("eos", "length", "loop"):
        clean(text, dialect, reason)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", DIALECTS)
def test_a_page_in_any_dialect_becomes_the_same_markdown(name: str) -> None:
    dialect = DIALECTS[name]
    text = clean(written(page(), dialect), dialect)
    reference = clean(written(page(), DIALECTS["html tables"]), Dialect())

    def words(markdown: str) -> list[str]:
        markdown = re.sub(r"<[^<>]*>|^#+ |^```|^[-|: ]+$|\||\bbullet\b", " ", markdown, flags=re.MULTILINE)
        markdown = markdown.translate(str.maketrans("，。：；！？（）“”•、", ',.:;!?()""-,'))
        return re.findall(r"[A-Za-z0-9$\\{}=^.,]+", markdown)

    assert words(text) == words(reference)
    assert "<|" not in text
    assert "bbox" not in text
    assert "<loc_" not in text
    assert "cel>" not in text
    assert "$$\nE = \\frac{m c^{2}}{\\theta \\neq 0} \\label{a}\n$$" in text
    assert "Annals of the harbour" not in text
    assert ("| Calais | 1,204 | 7.5 |" if dialect.tables == "markdown" else "<td>Calais</td><td>1,204</td>") in text


def test_a_headings_level_is_that_of_its_marks() -> None:
    (region,) = page_regions(joined(RECORDS, block(Label.HEADING, "### More")), RECORDS)
    assert (region.text, region.level) == ("More", 3)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_regions_of_a_page_are_those_it_was_written_from(name: str) -> None:
    dialect = DIALECTS[name]
    named = page_regions(written(page(), dialect), dialect.layout, scale_of(dialect))
    assert dialect.layout is not None
    expected = [b for r, d in zip(page(), [drafts_of((r,), dialect) for r in page()], strict=True) if d for b in [r]]
    by_label = {label: [r for r in named if r.label is label] for label in (Label.TABLE, Label.FORMULA, Label.FIGURE)}
    for label, found in by_label.items():
        (original,) = [r for r in expected if r.label is label]
        (region,) = found
        for a, b in zip(
            (region.box.x0, region.box.y0, region.box.x1, region.box.y1),
            (original.box.x0, original.box.y0, original.box.x1, original.box.y1),
            strict=True,
        ):
            assert a == pytest.approx(b, abs=1.1)
    assert by_label[Label.TABLE][0].format == "html"
    assert [c.text for row in html_grid(by_label[Label.TABLE][0].text) for c in row][:3] == [
        "Port",
        "Ships, tons",
        "Calais",
    ]
    assert by_label[Label.FORMULA][0].text == r"E = \frac{m c^{2}}{\theta \neq 0} \label{a}"


# -- mistakes that models make


def test_backslashes_and_quotes_that_lack_their_escape_are_read_as_meant() -> None:
    text = (
        r'[{"bbox": [1, 1, 50, 50], "category": "Formula", "text": "\theta \neq \frac{a}{b} \nabla \beta"}, '
        r'{"bbox": [1, 60, 50, 90], "category": "Text", "text": "Let $\rho$ be "the" one\nof $\nu$.\tSo \$5."}]'
    )
    formula, words = RECORDS.read(text) or ()
    assert formula.text == r"\theta \neq \frac{a}{b} \nabla \beta"
    assert words.text == 'Let $\\rho$ be "the" one\nof $\\nu$.\tSo \\$5.'


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        (r"he said \"", 'he said "'),
        (r"{\"a\": \"b\"} and", '{"a": "b"} and'),
        (r"$$ \\frac{a}{b}", r"$$ \frac{a}{b}"),
        ("see [1]", "see [1]"),
        (r"a slash \\", "a slash \\"),
        ("half an escape \\u00", "half an escape "),
        ('done"', "done"),
        ('done"}]', "done"),
        (r"a face \ud83d\ude00 and", "a face \U0001f600 and"),
    ],
)
def test_of_a_cut_text_all_that_is_text_is_kept(cut: str, kept: str) -> None:
    (block,) = RECORDS.read('[{"bbox": [1, 2, 30, 40], "category": "Text", "text": "' + cut) or ()
    assert block.text == kept


def test_records_in_a_fence_or_with_other_keys_first_are_read() -> None:
    text = '```json\n[{"category": "Title", "text": "# A", "bbox_2d": [1, 2, 30, 40]}]\n```'
    assert RECORDS.read(text) == (Block(Label.TITLE, "# A", Box(1, 2, 30, 40), kind="Title"),)
    cut = '[{"category": "Title", "text": "# A", "bbox": [1, 2, 30, 40]}, {"category": "Text", "text": "and'
    assert [b.text for b in RECORDS.read(cut) or ()] == ["# A", "and"]
    assert RECORDS.read("[]") == ()
    assert RECORDS.read("[1] A. Author, On ships") is None


def test_records_that_loop_are_kept_once() -> None:
    once = '{"bbox": [1, 2, 30, 40], "category": "Text", "text": "The same words once more"}, '
    assert len(RECORDS.read("[" + once * 40 + once[:30]) or ()) == 1
    moving = "".join(once.replace("[1, 2", f"[1, {k}") for k in range(2, 30))
    assert clean("[" + moving, DIALECTS["records"], "loop") == "The same words once more"
    assert clean("[" + moving, DIALECTS["records"]).count("The same words") == 28


def test_a_grounded_text_in_the_place_of_its_label_is_read() -> None:
    text = "<|ref|>Invoice No. 7<|/ref|><|det|>[[10, 20, 300, 40], [10, 50, 310, 60]]<|/det|>\n"
    assert GROUNDING.read(text) == (Block(Label.TEXT, "Invoice No. 7", Box(10, 20, 310, 60)),)
    assert GROUNDING.read("Words and nothing else") is None
    assert clean("Before\n\n<|ref|>text<|/ref|><|det|>[[1, 2, 3", DIALECTS["grounding"], "length") == "Before"


def test_doctags_that_are_not_closed_end_where_the_next_begins() -> None:
    text = (
        "<doctag><text><loc_1><loc_2><loc_3><loc_4>one<section_header_level_1><loc_1><loc_2><loc_9><loc_9>two</text>x"
    )
    assert [(b.label, b.text, b.level) for b in DOCTAGS.read(text) or ()] == [
        (Label.TEXT, "one", None), (Label.HEADING, "twox", 2),
    ]  # fmt: skip
    lists = "<ordered_list><list_item>one</list_item>\n<list_item>2) two</list_item></ordered_list><list_item>• three"
    assert clean(lists, DIALECTS["doctags"]) == "1. one\n2. two\n- three"


@pytest.mark.parametrize(
    ("kind", "label"),
    [("Section-header", Label.HEADING), ("Page-header", Label.HEADER), ("sub_title", Label.HEADING),
     ("figure_title", Label.CAPTION), ("equation_block", Label.FORMULA), ("page_number", Label.PAGE_NUMBER),
     ("chart", Label.FIGURE), ("whatever", Label.TEXT), ("table_caption", Label.CAPTION)],
)  # fmt: skip
def test_words_for_labels_are_understood(kind: str, label: Label) -> None:
    assert stated_label(kind) is label


# -- tables

CELLS = st.text(st.sampled_from("ab Z9.,-é"), max_size=8).map(lambda t: " ".join(t.split()))
GRIDS = st.lists(
    st.lists(st.builds(Cell, CELLS, st.integers(1, 3), st.integers(1, 3), st.booleans()), min_size=1, max_size=4),
    min_size=1,
    max_size=4,
)


def texts(rows: list[list[Cell]]) -> list[str]:
    return [cell.text for row in rows for cell in row if cell.text]


@given(GRIDS)
@settings(max_examples=100)
def test_no_cell_is_lost_between_html_and_otsl(rows: list[list[Cell]]) -> None:
    grid = otsl_grid(otsl_table(rows, heads=True))
    assert texts(grid) == texts(rows)
    # Once in OTSL, spans that overlapped are settled: the places stay the same from there on.
    assert otsl_grid(otsl_table(grid, heads=True)) == grid
    shape = [[place[0].text if place else "" for place in row] for row in places(grid)]
    assert [[place[0].text if place else "" for place in row] for row in places(html_grid(html_table(grid)))] == shape


@given(GRIDS, st.booleans(), st.booleans(), st.sampled_from(["td", "th", "thead"]))
@settings(max_examples=80)
def test_html_of_any_style_reads_back(rows: list[list[Cell]], lines: bool, body: bool, head: str) -> None:
    style = HtmlStyle("\n" * lines, "  " * lines, ' border="1"', head, body, columns_first=body)  # type: ignore[arg-type]
    plain = [[replace(cell, head=False) for cell in row] for row in rows]
    assert [[replace(c, head=False) for c in row] for row in html_grid(html_table(rows, style))] == plain
    compact = clean(html_table(rows, style), Dialect())
    assert [[replace(c, head=False) for c in row] for row in html_grid(compact)] == plain
    assert "\n" not in compact
    assert "border" not in compact


def test_cells_of_html_can_be_escaped() -> None:
    assert html_table([[Cell("a<b & c")]], HtmlStyle(escape=True)) == "<table><tr><td>a&lt;b &amp; c</td></tr></table>"


def test_a_broken_otsl_table_keeps_its_text() -> None:
    assert texts(otsl_grid("lead<fcel>a<lcel>odd<nl><xcel><fcel>b<ucel>c<nl>tail<fcel>d<fc")) == [
        "lead", "a", "odd", "b", "c", "tail", "d",
    ]  # fmt: skip
    text = "Before.\n\n<fcel>a<fcel>b<nl><fcel>1<lcel><nl>\n\nAfter."
    assert clean(text, DIALECTS["otsl"]) == (
        'Before.\n\n<table><tr><td>a</td><td>b</td></tr><tr><td colspan="2">1</td></tr></table>\n\nAfter.'
    )


# -- spelling


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "full-width marks",
            "港口,(冬天)关闭:1.5 km, see http://a.b/c.",
            "港口，（冬天）关闭：1.5 km, see http://a.b/c.",
        ),
        ("full-width marks", "公式$a,b$,见(图1).", "公式$a,b$，见（图1）。"),
        ("half-width marks", "港口，（冬天）：Ａ１。", "港口,(冬天):A1."),
        ("html tables", "港口,（冬天）", "港口,（冬天）"),
        ("round and square brackets", "of $a_1$ and $5 or $6, $b$", r"of \(a_1\) and $5 or $6, \(b\)"),
        ("html tables", r"of \(a_1\)", "of $a_1$"),
    ],
)
def test_marks_and_inline_formulas_are_in_the_models_spelling(name: str, text: str, expected: str) -> None:
    assert render(Region(Box(0, 0, 9, 9), Label.TEXT, text), DIALECTS[name]) == expected


def test_headings_and_items_may_have_no_marks_or_the_printed_ones() -> None:
    bare = DIALECTS["no heading marks"]
    assert render(Region(Box(0, 0, 9, 9), Label.HEADING, "## A"), bare) == "A"
    assert render(Region(Box(0, 0, 9, 9), Label.LIST, "(1) a\n2) b\n- c"), bare) == "(1) a\n2) b\n• c"
