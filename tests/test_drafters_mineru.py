"""MinerU 4: its Middle JSON as regions, its server, its errors; the library itself where its environment is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hsdkit_plugins.drafters.mineru import ENVIRONMENT, LIBRARY, MinerUConfig, convert, explain
from native import blank_page, native, serving, stays_sound
from papers import PROSE, column, pdf, text, together

from hsdkit.documents import open_document
from hsdkit.errors import DrafterError
from hsdkit.home import home
from hsdkit.regions import Box, Label
from hsdkit.workers import environments

#: Where environments may be that were installed before the tests, which have a home of their own.
USERS_HOME = home()
BASIC = native("mineru_basic.json")
FLASH = native("mineru_flash.json")


def test_the_recorded_page_becomes_regions_in_the_library_s_own_order():
    draft = convert(BASIC, blank_page())
    assert [(r.label.value, r.text) for r in draft.regions] == [
        ("header", "Journal of Page Reading"),
        ("title", "How a page is read"),
        ("heading", "1 Introduction"),
        ("text", "The mass $m$ is known, read() says. A second line."),
        ("formula", r"E = m c ^ { 2 } \tag{1}"),
        ("list", "- First the layout.\n2. Then the text.\n- And what has no mark."),
        ("caption", "Table 1: Crafts and places."),
        ("table", "<table><tr><td>Year</td><td>Craft</td></tr><tr><td>$x &lt; 1$</td><td>Type</td></tr></table>"),
        ("footnote", "a) By hand."),
        ("text", "右の段は左の段の後に読む。二行目。"),
        ("figure", ""),
        ("caption", "Figure 1. A press."),
        ("code", "for line in page:\n    read(line)"),
        ("figure", ""),
        ("reference", "[1] A. Reader. On pages. 1455."),
        ("reference", "[2] B. Writer. On words. 1796."),
        ("text", "1 Introduction 1 2 Methods 3"),
        ("other", "arXiv:2602.12957"),
        ("footnote", "* Written by hand."),
        ("page_number", "7"),
    ]
    by_label = {r.label: r for r in draft.regions}
    assert (by_label[Label.TABLE].format, by_label[Label.FORMULA].format) == ("html", "latex")
    assert (by_label[Label.TITLE].level, by_label[Label.HEADING].level, by_label[Label.TEXT].level) == (1, 2, None)
    assert draft.notes == ()


def test_boxes_come_from_parts_of_the_page_to_pixels():
    title = next(r for r in convert(BASIC, blank_page(500, 700)).regions if r.label is Label.TITLE)
    assert title.box == Box(100, pytest.approx(45.5), 400, pytest.approx(66.5))


def test_a_page_read_without_models_has_its_columns_in_order_and_its_table():
    title, left, right, table = convert(FLASH, blank_page(300, 400)).regions
    assert (title.label, title.text) == (Label.TITLE, "How a page is read")
    assert left.text == f"Left {PROSE}"
    assert right.text == f"Right {PROSE}"
    assert "<tr><td>1455</td><td>Type</td><td>Mainz</td></tr>" in table.text


def test_a_table_that_could_not_be_taken_apart_is_plain_rows():
    body = {"type": "table_body", "bbox": [0.1, 0.1, 0.9, 0.9], "content": "  Year   Craft \n\n 1455   Type\n"}
    page = {"blocks": [{"type": "table", "bbox": [0.1, 0.1, 0.9, 0.9], "content": [body]}]}
    (table,) = convert({"pages": [page]}, blank_page()).regions
    assert (table.label, table.format, table.text) == (Label.TABLE, "text", "Year   Craft\n1455   Type")


def test_a_heading_as_long_as_a_paragraph_is_one():
    block = {"type": "paragraph_title", "level": 2, "bbox": [0.1, 0.1, 0.9, 0.2], "content": [{"type": "text"}]}
    block["content"][0]["content"] = PROSE
    (region,) = convert({"pages": [{"blocks": [block]}]}, blank_page()).regions
    assert (region.label, region.level, region.text) == (Label.TEXT, None, PROSE)


def test_accents_that_stand_apart_are_no_regions():
    blocks = [{"type": "text", "bbox": [0.1, 0.1, 0.2, 0.2], "content": [{"type": "text", "content": c}]} for c in "´1"]
    assert [r.text for r in convert({"pages": [{"blocks": blocks}]}, blank_page()).regions] == ["1"]


def test_a_scan_that_flash_cannot_read_says_so():
    empty = FLASH | {"pages": [{"page_idx": 0}]}
    draft = convert(empty, blank_page())
    assert draft.regions == ()
    assert draft.notes == ("mineru: tier=flash reads only the text of PDFs; this page has none",)
    assert convert(BASIC | {"pages": [{"page_idx": 0}]}, blank_page()).notes == ()


def test_malformed_blocks_are_left_out_and_counted():
    blocks = [
        {"type": "text", "bbox": [0.1, 0.1, 0.5], "content": []},
        {"type": "text", "bbox": [0.5, 0.1, 0.1, 0.2], "content": []},
        {"type": "equation", "bbox": [0.1, 0.1, 0.5, 0.2], "content": None},
        {"bbox": [0.1, 0.1, 0.5, 0.2]},
        None,
        {"type": "text", "bbox": [0.1, 0.1, 0.5, 0.2], "content": [{"type": "text", "content": "Good."}, 5]},
    ]
    draft = convert({"pages": [{"blocks": blocks}]}, blank_page())
    assert [r.text for r in draft.regions] == ["Good."]
    assert draft.notes == ("mineru: 6 malformed entries left out",)


@pytest.mark.parametrize("junk", [None, [], {"pages": []}, {"pages": [{}, {}]}, {"pages": [5]}, {"pdf_info": []}])
def test_json_that_is_not_of_one_page_is_refused(junk: object):
    with pytest.raises(ValueError, match=r"Middle JSON 2\.0 of one page"):
        convert(junk, blank_page())


def test_no_nonsense_in_the_json_breaks_the_conversion_or_leaves_the_page():
    stays_sound(convert, BASIC)


def test_its_server_gives_the_same_draft():
    with serving(native("mineru_server.json")) as (url, seen):
        drafter = LIBRARY.drafter(MinerUConfig(url=url, tier="flash", timeout=50))
        assert drafter.draft(blank_page()).regions == convert(FLASH, blank_page()).regions
    path, body = seen[0]
    assert path == "/v1/file_parse?tier=flash&ocr_mode=txt&output_formats=middle_json&wait_timeout=50"
    assert b'name="files"; filename="page1.png"' in body


def test_a_server_that_is_not_done_is_named_with_the_status():
    with serving({"status": "running", "files": []}, 202) as (url, _):
        drafter = LIBRARY.drafter(MinerUConfig(url=url))
        with pytest.raises(DrafterError, match=f"page.pdf, page 1: {url} gave no result: status 'running'"):
            drafter.draft(blank_page())


def test_missing_models_are_named_with_the_command_that_gets_them_and_the_option_for_a_folder():
    said = explain(
        "FileNotFoundError: missing models: MinerU-4_models_onnx in /home/me/.mineru/models <- NetworkError: [E1020] "
        "Connection failed"
    )
    assert said
    assert said.startswith("its models MinerU-4_models_onnx are not in /home/me/.mineru/models and cannot be fetched")
    for part in ("mineru-models-download --tier basic", "drafter.models=FOLDER", "drafter.tier=flash"):
        assert part in said
    assert explain("RuntimeError: CUDA out of memory") is None


def test_flash_does_not_go_for_ocr_models_by_itself():
    assert MinerUConfig(tier="flash").options()["ocr"] == "txt"
    assert MinerUConfig(tier="flash", ocr="ocr").options()["ocr"] == "ocr"
    assert MinerUConfig().options() == {"tier": "basic", "ocr": "auto", "models": "", "device": ""}


@pytest.mark.skipif(environments.state(ENVIRONMENT) != "ready", reason="hsdkit drafter install mineru")
def test_the_library_itself_drafts_a_page_without_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HSDKIT_HOME", str(USERS_HOME))
    draw = together(text(["How a page is read"], 70, 370, 16, "Helvetica-Bold"), column(PROSE, 30, 340, 240, 9))
    drafter = LIBRARY.drafter(MinerUConfig(tier="flash"))
    try:
        with open_document(pdf(tmp_path / "page.pdf", draw)) as document:
            draft = drafter.draft(document.page(1))
    finally:
        drafter.close()
    assert [r.text for r in draft.regions] == ["How a page is read", PROSE]


def test_options_that_only_the_server_can_have_are_refused_with_its_address():
    with pytest.raises(ValueError, match=r"models=/m: the server at url=http://host:80 has its own"):
        MinerUConfig(url="http://host:80", models="/m")
