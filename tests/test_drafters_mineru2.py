"""MinerU 2's pipeline: its middle.json as regions, its server, its errors."""

from __future__ import annotations

import copy
import json

import pytest
from hsdkit_plugins.drafters.mineru2_pipeline import LIBRARY, MinerU2Config, convert, explain
from native import blank_page, native, serving, stays_sound

from hsdkit.errors import DrafterError
from hsdkit.regions import Box, Label

RECORDED = native("mineru2_pipeline.json")


def test_the_recorded_page_becomes_regions_in_the_library_s_own_order():
    draft = convert(RECORDED, blank_page())
    assert [(r.label.value, r.text) for r in draft.regions] == [
        ("heading", "How a page is read"),
        ("heading", "1 Introduction"),
        (
            "text",
            "The mass $m$ is known, as it is in every case that is of interest to those who read pages for a living.",
        ),
        ("formula", "E = m c ^ { 2 }"),
        ("list", "- First the layout\n- Then the text\n- And at the end the order of all of them"),
        ("caption", "Table 1: Crafts and places."),
        ("table", "<table><tr><td>Year</td><td>Craft</td></tr><tr><td>1455</td><td>Type</td></tr></table>"),
        ("footnote", "a) By hand."),
        (
            "text",
            "A paragraph that does not end in the left column, because there is no more room on this page for what "
            "the author has to say and not one word of it may be lost on the way",
        ),
        (
            "text",
            "so goes on in the right one, where there is as much room as anyone could wish for, until it ends here.",
        ),
        ("figure", ""),
        ("caption", "Figure 1. A press."),
        ("heading", "References"),
        ("reference", "[1] A. Reader. On pages. 1455."),
        ("reference", "[2] B. Writer. On words. 1796."),
        ("reference", "[3] C. Printer. On ink. 1800."),
        ("header", "Journal of Page Reading"),
        ("page_number", "7"),
    ]
    by_label = {r.label: r for r in draft.regions}
    assert (by_label[Label.TABLE].format, by_label[Label.FORMULA].format) == ("html", "latex")
    assert draft.notes == ()


def test_boxes_come_from_points_to_pixels():
    title = convert(RECORDED, blank_page(2000, 2800)).regions[0]
    assert title.box == Box(400, 180, 1600, 260)


def test_a_paragraph_that_mineru_joined_across_columns_is_parted_again():
    joined = [b for b in RECORDED["pdf_info"][0]["para_blocks"] if b.get("lines_deleted")]
    assert len(joined) == 1, "the recording has such a paragraph"
    assert joined[0]["lines"] == []


def test_malformed_blocks_are_left_out_and_counted():
    spoilt = copy.deepcopy(RECORDED)
    blocks = spoilt["pdf_info"][0]["para_blocks"]
    blocks[0]["bbox"] = [100, 45, 400]
    blocks[1]["type"] = None
    blocks.append(5)
    draft = convert(spoilt, blank_page())
    assert len(draft.regions) == len(convert(RECORDED, blank_page()).regions) - 2
    assert draft.notes == ("mineru2_pipeline: 3 malformed entries left out",)


@pytest.mark.parametrize("junk", [None, [], {"pdf_info": []}, {"pdf_info": [{}, {}]}, {"pdf_info": [5]}, {"pages": []}])
def test_json_that_is_not_of_one_page_is_refused(junk: object):
    with pytest.raises(ValueError, match="it has no pdf_info, or not of one page"):
        convert(junk, blank_page())


def test_no_nonsense_in_the_json_breaks_the_conversion_or_leaves_the_page():
    small = copy.deepcopy(RECORDED)
    page = small["pdf_info"][0]
    kinds = ("title", "text", "interline_equation", "list", "table")
    firsts = [next(b for b in page["para_blocks"] if b["type"] == kind) for kind in kinds]
    page["para_blocks"] = [*firsts, next(b for b in page["para_blocks"] if b.get("lines_deleted"))]
    stays_sound(convert, small)


def test_its_server_is_told_the_backend_and_gives_the_same_draft():
    answer = {"backend": "pipeline", "version": "2.7.6", "results": {"page1": {"middle_json": json.dumps(RECORDED)}}}
    with serving(answer) as (url, seen):
        drafter = LIBRARY.drafter(MinerU2Config(url=url, lang="en", tables=False))
        assert drafter.draft(blank_page()).regions == convert(RECORDED, blank_page()).regions
    path, body = seen[0]
    assert path == "/file_parse"
    for name, value in (
        ("backend", "pipeline"),
        ("lang_list", "en"),
        ("table_enable", "false"),
        ("return_md", "false"),
    ):
        assert f'name="{name}"\r\n\r\n{value}\r\n'.encode() in body


def test_a_server_without_a_result_is_named_with_its_reason():
    with serving({"error": "Failed to process file"}) as (url, _):
        drafter = LIBRARY.drafter(MinerU2Config(url=url))
        with pytest.raises(DrafterError, match=f"page.pdf, page 1: {url} gave no middle_json: Failed to process file"):
            drafter.draft(blank_page())


def test_missing_models_are_named_with_the_command_that_gets_them_and_the_option_for_a_folder():
    said = explain("FileNotFoundError: missing models: opendatalab/PDF-Extract-Kit-1.0 <- LocalEntryNotFoundError: x")
    assert said
    assert said.startswith("its models (opendatalab/PDF-Extract-Kit-1.0) are not on this machine")
    assert "mineru-models-download" in said
    assert "drafter.models=FOLDER" in said
    assert explain("RuntimeError: CUDA out of memory") is None
