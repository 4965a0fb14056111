"""PP-StructureV3: its JSON as regions, its server, its errors."""

from __future__ import annotations

import copy
import json

import pytest
from hsdkit_plugins.drafters.ppstructurev3 import LIBRARY, PPStructureV3Config, convert, explain
from native import blank_page, native, serving, stays_sound

from hsdkit.errors import DrafterError
from hsdkit.regions import Box, Label

RECORDED = native("ppstructurev3.json")


def test_the_recorded_page_becomes_regions_in_the_library_s_own_order():
    draft = convert(RECORDED, blank_page())
    assert [(r.label.value, r.text) for r in draft.regions] == [
        ("header", "Journal of Page Reading"),
        ("title", "How a page is read"),
        ("heading", "1 Introduction"),
        (
            "text",
            "The light tool guesses what the page says and the model checks the guess in one pass over many words, "
            "all at once.",
        ),
        ("formula", r"E = m c ^ { 2 } \tag{1}"),
        ("text", "where the mass is known, as it is in every case of interest."),
        ("caption", "Table 1: Crafts and places."),
        ("table", "<table><tr><td>Year</td><td>Craft</td></tr><tr><td>1455</td><td>Type</td></tr></table>"),
        ("text", "The right column is read after the left one has been read to its end."),
        ("figure", ""),
        ("caption", "Figure 1. A press."),
        ("code", "for line in page:\nread(line)"),
        ("heading", "References"),
        ("reference", "[1] A. Reader. On pages. 1455. [2] B. Writer. On words. 1796."),
        ("footnote", "* Written by hand."),
        ("page_number", "7"),
    ]
    by_label = {r.label: r for r in draft.regions}
    assert (by_label[Label.TABLE].format, by_label[Label.FORMULA].format, by_label[Label.TEXT].format) == (
        "html",
        "latex",
        "text",
    )
    assert by_label[Label.FORMULA].box == Box(120, 340, 480, 390), "with its number beside it"
    assert by_label[Label.TABLE].score == 0.97
    assert draft.notes == ()


def test_boxes_of_an_image_the_server_scaled_come_back_in_page_pixels():
    small, large = convert(RECORDED, blank_page()), convert(RECORDED, blank_page(2000, 1400))
    for a, b in zip(small.regions, large.regions, strict=True):
        assert (b.box.x0, b.box.x1, b.box.y0, b.box.y1) == (2 * a.box.x0, 2 * a.box.x1, a.box.y0, a.box.y1)


def test_a_formula_number_beside_no_formula_stays_a_region():
    blocks = [b for b in RECORDED["parsing_res_list"] if b["block_label"] != "formula"]
    draft = convert(RECORDED | {"parsing_res_list": blocks}, blank_page())
    assert [r.text for r in draft.regions if r.label is Label.OTHER] == ["(1)"]


def test_malformed_blocks_are_left_out_and_counted():
    blocks = copy.deepcopy(RECORDED["parsing_res_list"])
    blocks[1]["block_bbox"] = [200, 90, float("nan"), 130]
    blocks[2]["block_bbox"] = [300, 205, 300, 205]
    blocks[3]["block_content"] = 5
    blocks.append("nonsense")
    draft = convert(RECORDED | {"parsing_res_list": blocks}, blank_page())
    assert len(draft.regions) == len(convert(RECORDED, blank_page()).regions) - 3
    assert draft.notes == ("ppstructurev3: 4 malformed entries left out",)


def test_no_nonsense_in_the_json_breaks_the_conversion_or_leaves_the_page():
    # What is read of it; the rest is what each model found.
    small = {k: RECORDED[k] for k in ("width", "height")} | {
        "parsing_res_list": RECORDED["parsing_res_list"][3:9],
        "layout_det_res": {"boxes": RECORDED["layout_det_res"]["boxes"][:2]},
    }
    stays_sound(convert, small)


def test_its_server_is_asked_for_the_page_as_it_lies_and_its_answer_gives_the_same_draft():
    with serving(native("ppstructurev3_server.json")) as (url, seen):
        drafter = LIBRARY.drafter(PPStructureV3Config(url=url, tables=False))
        assert drafter.draft(blank_page()).regions == convert(RECORDED, blank_page()).regions
    path, body = seen[0]
    asked = json.loads(body)
    assert path == "/layout-parsing"
    assert (asked["fileType"], asked["useTableRecognition"], asked["useFormulaRecognition"]) == (1, False, True)
    assert not any(asked[k] for k in ("useDocOrientationClassify", "useDocUnwarping", "visualize"))


def test_a_server_without_a_result_is_named_with_its_reason():
    with serving({"logId": "1", "errorCode": 500, "errorMsg": "out of memory"}) as (url, _):
        drafter = LIBRARY.drafter(PPStructureV3Config(url=url))
        with pytest.raises(DrafterError, match=f"page.pdf, page 1: {url} gave no layoutParsingResults: out of memory"):
            drafter.draft(blank_page())


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            "FileNotFoundError: missing models: PP-DocBlockLayout, SLANet_plus <- Exception: No available model "
            "hosting platforms detected. Please check your network connection.",
            "its models PP-DocBlockLayout, SLANet_plus are not on this machine",
        ),
        (
            "FileNotFoundError: missing models: PP-DocBlockLayout in /my models <- Exception: No available",
            "its models PP-DocBlockLayout are not in drafter.models=/my models",
        ),
    ],
)
def test_missing_models_are_named_with_the_command_that_gets_them_and_the_option_for_a_folder(error: str, says: str):
    said = explain(error)
    assert said
    assert said.startswith(says)
    assert "paddleocr pp_structurev3" in said
    assert "drafter.models=FOLDER" in said
    assert "\n" not in said


def test_other_errors_are_the_library_s_own():
    assert explain("RuntimeError: CUDA out of memory") is None
    assert "paddlepaddle==3.2.2 can" in str(explain("NotImplementedError: ConvertPirAttribute2RuntimeAttribute not"))
    assert explain("FileNotFoundError: no models folder /nowhere") == "drafter.models=/nowhere: there is no such folder"


def test_the_small_ocr_models_and_a_language_exclude_each_other():
    with pytest.raises(ValueError, match="ocr=mobile: cannot be had together with lang=korean"):
        PPStructureV3Config(ocr="mobile", lang="korean")


def test_options_that_only_the_server_can_have_are_refused_with_its_address():
    with pytest.raises(ValueError, match=r"models=/m: the server at url=http://host:80 has its own"):
        PPStructureV3Config(url="http://host:80", models="/m")
