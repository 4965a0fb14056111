"""OCR drafting and the choice between it and the text layer, on pages rendered here."""

from __future__ import annotations

import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from hsdkit_plugins.drafters._lines import Line
from hsdkit_plugins.drafters._ocr_cost import OcrCost
from hsdkit_plugins.drafters._ocr_regions import ocr_line, regions_of_lines, split_at_columns, without_overlaps
from hsdkit_plugins.drafters.auto import Auto, AutoConfig
from hsdkit_plugins.drafters.rapidocr import RapidOcr, RapidOcrConfig
from papers import PROSE, column, pdf, text, together
from PIL import Image
from rapidfuzz.distance import Levenshtein

from hsdkit.components import Component, Requirement
from hsdkit.documents import Page, open_document
from hsdkit.ink import printed_characters
from hsdkit.plugins import plugins
from hsdkit.regions import Box, Label

needs_ocr = pytest.mark.skipif(
    any(importlib.util.find_spec(m) is None for m in ("rapidocr", "rapid_layout", "onnxruntime")),
    reason="rapidocr is not installed: pip install hsdkit[rapidocr]",
)


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def rows(canvas) -> None:
        for k, row in enumerate([("Year", "Craft", "Place"), ("1455", "Type", "Mainz"), ("1796", "Stone", "Munich")]):
            for x, cell in zip((30, 110, 190), row, strict=True):
                text([cell], x, 110 - 20 * k, 10)(canvas)

    return pdf(
        tmp_path_factory.mktemp("ocr") / "paper.pdf",
        together(
            text(["How a page is read"], 30, 370, 16, "Helvetica-Bold"),
            column("Left " + PROSE, 30, 340, 110, 9),
            column("Right " + PROSE, 160, 340, 110, 9),
            rows,
        ),
    )


def scanned(paper: Path, dpi: int = 100) -> Page:
    """The page as an image alone."""
    with open_document(paper, dpi=dpi) as document:
        return dataclasses.replace(document.page(1), read_text=None)


@pytest.fixture(scope="module")
def drafter() -> RapidOcr:
    return RapidOcr(RapidOcrConfig(threads=1))


@needs_ocr
def test_a_rendered_page_is_read_in_order_with_its_title_and_table(paper: Path, drafter: RapidOcr):
    drafted = drafter.draft(scanned(paper))
    first, left, right, table = drafted.readable
    assert first.label in (Label.TITLE, Label.HEADING)
    assert first.text == "How a page is read"
    for region, start in ((left, "Left "), (right, "Right ")):
        assert Levenshtein.normalized_distance(region.text, start + PROSE) < 0.05
        assert region.score is not None
        assert region.score > 0.8
    assert (table.label, table.format) == (Label.TABLE, "html")
    assert "<tr><td>1455</td><td>Type</td><td>Mainz</td></tr>" in table.text
    assert drafted.seconds > 0


@needs_ocr
@pytest.mark.parametrize("turn", [1, 3])
def test_a_scan_that_lies_on_its_side_is_read_and_said_to(tmp_path: Path, drafter: RapidOcr, turn: int):
    page = scanned(pdf(tmp_path / "a.pdf", column(PROSE, 20, 60, 380, 10), size=(420, 90)))
    upright = drafter.draft(page)
    drafted = drafter.draft(dataclasses.replace(page, image=page.image.rotate(-90 * turn, expand=True)))
    assert drafted.notes == (f"the page lies on its side; rotate={360 - 90 * turn} would put it upright",)
    (region,) = drafted.regions
    assert region.text == upright.regions[0].text
    assert region.box.height > region.box.width


@needs_ocr
def test_the_same_page_gives_the_same_draft(paper: Path, drafter: RapidOcr):
    page = scanned(paper)
    again = RapidOcr(RapidOcrConfig(threads=2)).draft(page)
    assert again.regions == drafter.draft(page).regions


@needs_ocr
def test_an_empty_page_gives_an_empty_draft(drafter: RapidOcr):
    assert drafter.draft(Page(1, Image.new("RGB", (300, 400), "white"))).regions == ()


@needs_ocr
def test_models_are_loaded_once(paper: Path, drafter: RapidOcr):
    page = scanned(paper)
    drafter.draft(page)
    models = drafter._models
    drafter.draft(page)
    assert drafter._models is models


def test_overlapping_areas_lose_to_the_likelier_whatever_their_class():
    big, inner = Box(0, 0, 100, 100), Box(10, 10, 90, 90)
    apart, crossing = Box(0, 120, 100, 200), Box(50, 90, 150, 190)
    areas = [(inner, Label.TEXT, 0.6), (big, Label.TABLE, 0.9), (apart, Label.TEXT, 0.8), (crossing, Label.TEXT, 0.5)]
    assert [box for box, _, _ in without_overlaps(areas)] == [big, apart, crossing]


@pytest.mark.parametrize("wrong", [{"narrow": 0.1}, {"detect_side": 1}, {"threads": -1}, {"threads": 100_000}])
def test_options_that_make_no_sense(wrong: dict):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        RapidOcrConfig(**wrong)


def test_the_expected_time_grows_with_the_text_and_follows_what_pages_took(paper: Path):
    page, blank = scanned(paper), Page(1, Image.new("RGB", (417, 556), "white"), dpi=100)
    cost = OcrCost(threads=1, layout=False, detect_side=1216, narrow=0.75)
    loading = cost.expected(page)
    for _ in range(25):
        cost.learn(page, detect=0.2, layout=0, read=1.0, columns=8000)
    assert cost.expected(page) == pytest.approx(1.2, rel=0.02)
    assert cost.expected(blank) == pytest.approx(0.2, rel=0.05)
    assert loading > 1.0, "the first page pays for loading the models"


@pytest.mark.parametrize("dpi", [72, 100, 144, 200])
def test_ink_tells_about_how_many_characters_there_are(paper: Path, dpi: int):
    printed = len("".join((PROSE * 2).split()))
    assert 0.6 * printed < printed_characters(np.asarray(scanned(paper, dpi).image.convert("L"))) < 2 * printed


def test_auto_takes_the_text_layer_where_it_can(paper: Path):
    drafter = Auto(AutoConfig())
    with open_document(paper, dpi=100) as document:
        page = document.page(1)
        assert drafter.expected_seconds(page) < 0.1
        drafted = drafter.draft(page)
    assert drafted.drafter == "pdftext"
    assert drafted.notes == ("drafted from the text layer",)
    assert drafted.readable


@needs_ocr
def test_auto_reads_images_and_says_why(paper: Path):
    drafter = Auto(AutoConfig())
    page = scanned(paper)
    assert drafter.expected_seconds(page) > 0.1
    drafted = drafter.draft(page)
    assert drafted.drafter == "rapidocr"
    assert drafted.notes[0] == "drafted by rapidocr: an image has no text layer"
    assert drafted.readable


def test_auto_without_ocr_leaves_the_page_undrafted_with_a_note(paper: Path, monkeypatch: pytest.MonkeyPatch):
    page = scanned(paper)
    assert Auto(AutoConfig(ocr="none")).draft(page).notes == (
        "no draft: an image has no text layer, and drafter.ocr is none",
    )
    missing = Component("drafter", "rapidocr", "", RapidOcrConfig, RapidOcr, (Requirement("nope", "hsdkit[rapidocr]"),))
    monkeypatch.setattr(type(plugins()), "component", lambda self, kind, name: missing)
    drafter = Auto(AutoConfig())
    drafted = drafter.draft(page)
    assert drafted.regions == ()
    assert drafted.notes == (
        'no draft: an image has no text layer, and drafter rapidocr is not installed (pip install "hsdkit[rapidocr]")',
    )
    assert drafter.expected_seconds(page) == 0


def test_auto_cannot_fall_back_on_itself():
    with pytest.raises(ValueError, match="ocr=auto"):
        AutoConfig(ocr="auto")


def test_all_drafters_are_components():
    assert {"auto", "pdftext", "rapidocr", "replay"} <= {c.name for c, _ in plugins().components("drafter")}


def test_a_line_found_across_a_gutter_is_cut_between_the_columns():
    areas = [(Box(100, 0, 200, 300), Label.TEXT, 0.9), (Box(0, 0, 90, 300), Label.TEXT, 0.9)]
    across = np.array([[2, 50], [198, 60], [198, 80], [2, 70]], np.float32)
    own = np.array([[2, 90], [88, 90], [88, 110], [2, 110]], np.float32)
    below = across + np.float32([0, 400])
    left, right, kept, apart = split_at_columns([across, own, below], areas)
    assert left[1, 0] == right[0, 0] == pytest.approx(95)
    assert left[1, 1] == right[0, 1] == pytest.approx(54.74, abs=0.1)
    assert (left[0] == across[0]).all()
    assert (right[2] == across[2]).all()
    assert (kept == own).all()
    assert (apart == below).all()


def line(text: str, x0: float, y0: float, x1: float, y1: float) -> Line:
    return ocr_line(np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float32), text)


def test_vertical_writing_is_read_from_right_to_left():
    lines = [
        line("第二行的文字", 100, 50, 120, 200),
        line("第一行的文字", 140, 50, 160, 200),
        line("題", 60, 10, 80, 30),
    ]
    found = regions_of_lines(lines, [], 300, 300)
    assert [r.text for r in found] == ["題", "第一行的文字第二行的文字"]


def test_a_figure_that_is_the_page_keeps_its_text():
    lines = [line(f"line number {k} of the text", 20, 40 * k, 180, 40 * k + 14) for k in range(5)]
    found = regions_of_lines(lines, [(Box(0, 0, 300, 300), Label.FIGURE, 0.9)], 300, 300)
    assert "line number 4 of the text" in " ".join(r.text for r in found)
