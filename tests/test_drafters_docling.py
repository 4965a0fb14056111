"""Docling's documents as drafts: recorded with docling's own classes (tests/data/native/record_docling.py)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hsdkit_plugins.drafters import docling
from hsdkit_plugins.drafters._docling import convert, table
from hsdkit_plugins.drafters._docling_words import convert_words
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from hsdkit.documents import Page
from hsdkit.drafting import safe_draft
from hsdkit.errors import DrafterError
from hsdkit.regions import Box, Label
from hsdkit.workers import environments

NATIVE = Path(__file__).parent / "data" / "native"
#: Twice the size of the recorded page, which measures 600 x 800 points.
PAGE = Page(1, Image.new("RGB", (1200, 1600)), "a.pdf")


def recorded(name: str = "docling.json") -> Any:
    return json.loads((NATIVE / name).read_text(encoding="utf-8"))


def found(label: Label) -> list[str]:
    return [r.text for r in convert(recorded(), PAGE).regions if r.label == label]


def test_regions_come_in_docling_s_reading_order_under_our_labels():
    labels = [r.label for r in convert(recorded(), PAGE).regions]
    expected = [
        Label.HEADER, Label.TITLE, Label.HEADING, Label.TEXT, Label.TEXT, Label.LIST, Label.TEXT, Label.FORMULA,
        Label.FORMULA, Label.CODE, Label.LIST, Label.CAPTION, Label.TABLE, Label.FOOTNOTE, Label.FIGURE, Label.CAPTION,
        Label.REFERENCE, Label.TEXT, Label.FOOTER,
    ]  # fmt: skip
    assert labels == expected


def test_points_from_the_bottom_left_become_pixels_from_the_top_left():
    regions = convert(recorded(), PAGE).regions
    title = next(r for r in regions if r.label == Label.TITLE)
    assert title.box == Box(100, 80, 1100, 120)
    assert title.level == 1
    assert next(r.box for r in regions if r.text == "From the top left.") == Box(620, 900, 1100, 950)


def test_headings_are_counted_below_the_title():
    assert [r.level for r in convert(recorded(), PAGE).regions if r.label == Label.HEADING] == [2]


def test_a_paragraph_that_goes_on_in_the_next_column_is_two_regions():
    left, right = [r for r in convert(recorded(), PAGE).regions if r.label == Label.TEXT][:2]
    assert left.text == "This paragraph begins in the left column"
    assert right.text == "and ends in the right one."
    assert (left.box.x1, right.box.x0) == (580, 620)


def test_lists_keep_marks_and_levels_and_are_one_region():
    fruit, checked = found(Label.LIST)
    assert fruit == "- apples\n- pears\n  1. green\n  2. yellow\n- plums"
    assert checked == "- ☑ agreed"
    box = next(r.box for r in convert(recorded(), PAGE).regions if r.text == fruit)
    assert box == Box(120, 420, 580, 536)


def test_pieces_of_one_line_are_one_text():
    assert "where $x^2$ is the area" in found(Label.TEXT)


def test_formulas_are_latex_where_docling_wrote_latex():
    first, second = [r for r in convert(recorded(), PAGE).regions if r.label == Label.FORMULA]
    assert (first.text, first.format) == ("E = mc^{2}", "latex")
    assert (second.text, second.format) == ("a = b + c", "text")


def test_code_keeps_its_lines():
    assert found(Label.CODE) == ["for x in y:\n    print(x)"]


def test_tables_are_html_with_spans_between_caption_and_footnote():
    [html] = found(Label.TABLE)
    assert html == (
        '<table><tr><td rowspan="2">Fruit</td><td colspan="2">Measured</td></tr><tr><td>g</td><td>cm</td></tr>'
        "<tr><td>apple</td><td>&lt; 200</td><td></td></tr></table>"
    )
    assert found(Label.CAPTION) == ["Table 1: Sizes & <weights>", "Figure 1: A pear"]
    assert found(Label.FOOTNOTE) == ["a: in winter"]


def test_words_in_pictures_and_on_other_pages_are_left_out():
    texts = " ".join(r.text for r in convert(recorded(), PAGE).regions)
    assert "words in the picture" not in texts
    assert "On another page" not in texts


def test_a_picture_without_a_table_s_data_or_a_second_cell_in_a_place():
    assert table(None) == ""
    assert table({"table_cells": []}) == ""
    twice = {"start_row_offset_idx": 0, "start_col_offset_idx": 0, "text": "a"}
    assert table({"table_cells": [twice, twice | {"text": "b"}]}) == "<table><tr><td>a</td></tr></table>"


def test_a_table_takes_no_more_room_than_a_page_has():
    def cell(row: int, column: int, span: int) -> dict[str, Any]:
        place = {"start_row_offset_idx": row, "start_col_offset_idx": column}
        return {**place, "row_span": span, "col_span": span, "text": "a"}

    assert table({"table_cells": [cell(10**9, 0, 1), cell(0, 0, 10**9), cell(400, 400, 1)]}) == ""
    many = [cell(0, 0, 100)] * 20_000 + [cell(k, 0, 140 - k) for k in range(1, 100)]
    assert (
        table({"table_cells": many})
        == '<table><tr><td rowspan="100" colspan="100">a</td></tr>' + "<tr></tr>" * 99 + "</table>"
    )


def test_the_native_pipeline_s_words_become_paragraphs_in_reading_order():
    regions = convert_words(recorded("docling_words.json"), Page(1, Image.new("RGB", (596, 841)), "report.pdf")).regions
    assert [(r.label, r.text) for r in regions[:2]] == [
        (Label.TITLE, "How a page is read"),
        (Label.HEADING, "The task"),
    ]
    assert regions[2].text.startswith("A parser looks at the picture of a page and writes down what")


@pytest.mark.parametrize("turn", [1, 3])
def test_a_page_that_was_set_sideways_is_read_sideways(turn: int):
    """The recorded page, turned clockwise by quarters: its boxes turned with it."""
    native = recorded("docling_words.json")
    size = native["pages"]["1"]["size"]
    width, height = size["width"], size["height"]
    for item in native["texts"]:
        b = item["prov"][0]["bbox"]
        left, top, right, bottom = b["l"], height - b["t"], b["r"], height - b["b"]
        turned = (
            (height - bottom, left, height - top, right) if turn == 1 else (top, width - right, bottom, width - left)
        )
        b |= dict(zip("ltrb", turned, strict=True)) | {"coord_origin": "TOPLEFT"}
    size |= {"width": height, "height": width}
    upright = convert_words(recorded("docling_words.json"), Page(1, Image.new("RGB", (596, 841)), "report.pdf"))
    sideways = convert_words(native, Page(1, Image.new("RGB", (841, 596)), "report.pdf"))
    assert [r.text for r in sideways.regions] == [r.text for r in upright.regions]
    assert sideways.regions[0].box.height > sideways.regions[0].box.width


def test_a_document_without_words_is_an_empty_draft():
    empty = recorded("docling_words.json") | {"texts": []}
    assert convert_words(empty, PAGE).regions == ()


@pytest.mark.parametrize(
    ("native", "expected"),
    [([], "no DoclingDocument"), ({"schema_name": "Other"}, "no DoclingDocument"),
     ({"schema_name": "DoclingDocument", "pages": {}}, "has no page"),
     ({"schema_name": "DoclingDocument", "pages": {"1": {"size": {"width": 0, "height": 1}}}}, "measures 0 x 1")],
)  # fmt: skip
def test_json_of_something_else_is_refused(native: Any, expected: str):
    with pytest.raises(ValueError, match=expected):
        convert(native, PAGE)


def test_a_reference_that_goes_round_or_nowhere_is_counted_and_costs_nothing_else():
    native = recorded()
    groups = next(i for i, g in enumerate(native["groups"]) if g["label"] == "list")
    native["groups"][groups]["children"].append({"$ref": f"#/groups/{groups}"})
    native["body"]["children"] += [{"$ref": "#/texts/999"}, {"$ref": 5}, None]
    draft = convert(native, PAGE)
    assert len(draft.regions) == len(convert(recorded(), PAGE).regions)
    assert draft.notes == ("docling: 3 malformed entries left out",)


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here] * bool(here) + [p for k, v in inner for p in paths(v, (*here, k))]


ALL = paths(recorded())


@example(("body",), None)
@example(("pages", "1", "page_no"), 1e400)
@settings(max_examples=150)
@given(st.sampled_from(ALL), st.sampled_from([None, 5, -1, 1e400, "x", "#/body", [], {}, [None], {"$ref": "#/body/0"}]))
def test_a_spoiled_value_is_refused_in_order_or_costs_its_region(path: tuple[Any, ...], value: Any):
    """Never anything but a draft or an error of the kind a drafter may raise."""
    native = copy.deepcopy(recorded())
    *parents, last = path
    target = native
    for key in parents:
        target = target[key]
    target[last] = value

    class Spoiled:
        name = "docling"

        def draft(self, page: Page) -> Any:
            try:
                return convert(native, page)
            except (ValueError, KeyError, TypeError) as e:
                raise DrafterError(str(e)) from e

    draft, notes = safe_draft(Spoiled(), PAGE)
    assert all(note.startswith(("no draft: drafter 'docling' failed: ", "drafter 'docling': ")) for note in notes)
    assert "Error" not in " ".join(notes), "an error no drafter foresees"
    assert all(r.box.area for r in draft.regions)


OFFLINE = (
    "LocalEntryNotFoundError: Got: ConnectError: [Errno -2] Name or service not known An error happened while trying "
    "to locate the files on the Hub <- ConnectError: [Errno -2] Name or service not known"
)
FOLDER = (
    "FileNotFoundError: RapidOCR artifacts not found or incomplete in artifacts_path. Expected under: /m/RapidOcr "
    "Resolved: backend=torch ppocr_version=PP-OCRv6"
)


@pytest.mark.parametrize("error", [OFFLINE, FOLDER])
def test_missing_models_are_told_with_the_command_the_option_and_the_way_without(error: str):
    """The errors are docling's own, offline and with an empty folder."""
    said = docling.explain(error)
    assert said is not None
    for part in ("docling-tools models download -o FOLDER", "drafter.artifacts_path=FOLDER", "drafter.pipeline=native"):
        assert part in said
    assert "\n" not in said


def test_other_errors_are_left_as_they_are():
    assert docling.explain("ValueError: no such page") is None
    assert "drafter.pipeline=standard" in (docling.explain("ValueError: the native pipeline reads PDFs only") or "")


class Answers:
    """A server that answers with what it is given."""

    url = "http://h:5001"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def upload(self, path: str, file: Path, fields: dict[str, Any], name: str = "files") -> Any:
        self.asked = path, fields
        return self.answer


OPTIONS = docling.DoclingConfig().options()


def test_docling_serve_gives_the_same_document():
    server: Any = Answers({"document": {"json_content": recorded()}, "status": "success", "errors": []})
    assert docling.ask(server, Path("page1.pdf"), OPTIONS) == recorded()
    assert server.asked[0] == "/v1/convert/file"
    assert server.asked[1]["to_formats"] == "json"


@pytest.mark.parametrize("answer", [{"status": "failure", "errors": [{"error_message": "out of ink"}]}, {}, [], None])
def test_a_server_that_converts_nothing_is_an_error(answer: Any):
    server: Any = Answers(answer)
    with pytest.raises(DrafterError, match=r"^http://h:5001 (could not convert the page|answers something else)"):
        docling.ask(server, Path("page1.pdf"), OPTIONS)


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"threads": -1}, "threads=-1"), ({"url": "http://h", "pipeline": "native"}, "pipeline=native"),
     ({"url": "http://h", "artifacts_path": "/m"}, "artifacts_path=/m"),
     ({"url": "http://h", "threads": 2}, "threads=2"), ({"url": "h:5001"}, "url=h:5001"),
     ({"via": "server"}, "via=server"), ({"via": "process", "url": "http://h"}, "via=process"),
     ({"timeout": 0}, "timeout=0"), ({"max_pages": 0}, "max_pages=0")],
)  # fmt: skip
def test_options_that_cannot_work_are_refused(options: dict[str, Any], expected: str):
    with pytest.raises(ValueError, match=f"^{expected}: "):
        docling.DoclingConfig(**options)


def test_its_pins_ship_with_it():
    assert any(pin.startswith("docling==") for pin in docling.ENVIRONMENT.pins)
    assert docling.LIBRARY.script.is_file()
    assert environments.folder(docling.ENVIRONMENT).name.startswith("docling-")
