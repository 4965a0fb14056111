"""PDFs as pages: selection, rendering, the text layer's place on the image, and files that cannot be read."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
import pytest
from hypothesis import given
from hypothesis import strategies as st
from papers import pdf, text, together

from hsdkit.documents import find_inputs, open_document, parse_pages
from hsdkit.errors import ConfigError, DocumentError, HsdkitError


@pytest.fixture
def three_pages(tmp_path: Path) -> Path:
    return pdf(tmp_path / "three.pdf", *(text([f"Page {n}"]) for n in (1, 2, 3)))


def test_pages_are_numbered_from_one_and_rendered_at_the_resolution_asked_for(three_pages: Path):
    with open_document(three_pages, dpi=72) as document:
        assert (len(document), document.count, document.name) == (3, 3, "three.pdf")
        pages = list(document)
    assert [p.number for p in pages] == [1, 2, 3]
    assert (pages[0].width, pages[0].height, pages[0].dpi) == (300, 400, 72)
    assert pages[0].image.mode == "RGB"
    assert pages[0].source == "three.pdf"


def test_only_selected_pages_are_read(three_pages: Path):
    with open_document(three_pages, pages="3,1") as document:
        assert document.numbers == (1, 3)
        assert [w.text for p in document for w in p.text_layer.words] == ["Page", "1", "Page", "3"]


@pytest.mark.parametrize("rotate", [0, 90])
@pytest.mark.parametrize("turned", [0, 270])
def test_a_page_as_a_pdf_of_its_own_looks_the_same(tmp_path: Path, rotate: int, turned: int):
    path = pdf(tmp_path / "two.pdf", text(["Other"], 40, 350), text(["Hamburg"], 40, 350), rotate=rotate)
    with open_document(path, rotate=turned, dpi=72) as document:
        page = document.page(2)
        layer = page.text_layer
        (tmp_path / "one.pdf").write_bytes(page.pdf)
    with open_document(tmp_path / "one.pdf", dpi=72) as alone:
        assert len(alone) == 1
        assert alone.page(1).image.tobytes() == page.image.tobytes()
        assert alone.page(1).text_layer == layer


def test_a_closed_document_s_page_is_no_pdf_any_more(three_pages: Path):
    with open_document(three_pages) as document:
        page = document.page(1)
    with pytest.raises(DocumentError, match=r"^three\.pdf, page 1: the document is closed$"):
        _ = page.pdf


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("turned", [0, 90])
def test_text_boxes_land_on_the_ink_of_rotated_pages(tmp_path: Path, rotate: int, turned: int):
    path = pdf(tmp_path / "r.pdf", together(text(["Hamburg"], 40, 350), text(["gypsum"], 200, 60)), rotate=rotate)
    with open_document(path, rotate=turned, dpi=144) as document:
        page = document.page(1)
        words = page.text_layer.words
    assert [w.text for w in words] == ["Hamburg", "gypsum"]
    assert {w.turn for w in words} == {(rotate + turned) // 90 % 4}
    dark = np.asarray(page.image)[:, :, 0] < 128
    for word in words:
        box = word.box.grown(1.5)
        inside = dark[int(box.y0) : int(box.y1) + 1, int(box.x0) : int(box.x1) + 1]
        assert inside.sum() > 0.1 * inside.size
        dark[int(box.y0) : int(box.y1) + 1, int(box.x0) : int(box.x1) + 1] = False
    assert not dark.any(), "ink outside the boxes"


def test_what_the_crop_box_hides_is_neither_shown_nor_text(tmp_path: Path):
    path = pdf(tmp_path / "c.pdf", together(text(["inside"], 120, 200), text(["outside"], 10, 390)))
    document = pdfium.PdfDocument(path)
    document[0].set_cropbox(100, 100, 250, 300)
    document.save(tmp_path / "cropped.pdf")
    with open_document(tmp_path / "cropped.pdf", dpi=72) as cropped:
        page = cropped.page(1)
        (word,) = page.text_layer.words
    assert (page.width, page.height, word.text) == (150, 200, "inside")
    assert word.box.x0 == pytest.approx(20, abs=2)
    assert word.baseline == pytest.approx(100, abs=1)


def test_font_weight_size_and_spaces(tmp_path: Path):
    path = pdf(tmp_path / "f.pdf", together(text(["plain"], size=10), text(["bold"], 30, 300, 20, "Helvetica-Bold")))
    with open_document(path, dpi=144) as document:
        plain, bold = document.page(1).text_layer.words
    assert (plain.bold, bold.bold) == (False, True)
    assert (plain.size, bold.size) == pytest.approx((20, 40))


def test_ruling_lines_are_found(tmp_path: Path):
    def grid(canvas):
        canvas.grid([50, 100, 150], [100, 120, 140])
        canvas.rect(200, 100, 40, 0.5, stroke=0, fill=1)

    with open_document(pdf(tmp_path / "g.pdf", grid), dpi=72) as document:
        rules = document.page(1).text_layer.rules
    assert sum(r.width > r.height for r in rules) == 4
    assert sum(r.height > r.width for r in rules) == 3


def test_a_huge_page_is_scaled_down_before_it_is_rendered(tmp_path: Path):
    path = pdf(tmp_path / "huge.pdf", text(["big"], 5000, 5000, 900), size=(14_400, 14_400))
    with open_document(path, dpi=300, max_pixels=250_000) as document:
        page = document.page(1)
        (word,) = page.text_layer.words
    assert 240_000 < page.width * page.height <= 251_000
    assert page.dpi == pytest.approx(2.5, rel=0.01)
    assert "instead of 300 dpi" in page.notes[0]
    assert 0 < word.box.x0 < word.box.x1 < page.width


def test_a_skinny_page_keeps_within_the_bound(tmp_path: Path):
    path = pdf(tmp_path / "skinny.pdf", text(["x"], 0, 5, 3), size=(14_400, 4))
    with open_document(path, dpi=600, max_pixels=20_000) as document:
        page = document.page(1)
    assert page.width * page.height <= 20_600
    assert page.height >= 1


def test_the_text_layer_needs_the_open_document(three_pages: Path):
    with open_document(three_pages) as document:
        early, late = document.page(1), document.page(2)
        kept = early.text_layer
    assert early.text_layer is kept
    with pytest.raises(DocumentError, match=r"three\.pdf, page 2: the document is closed"):
        _ = late.text_layer
    with pytest.raises(DocumentError, match="closed"):
        document.page(3)


def test_one_broken_page_leaves_the_others(tmp_path: Path):
    path = pdf(tmp_path / "three.pdf", *(text([f"Page {n}"]) for n in (1, 2, 3)))
    content = path.read_bytes()
    kids = re.search(rb"/Kids \[ (\d+) 0 R (\d+) 0 R (\d+) 0 R \]", content)
    assert kids
    missing = b"0" * len(kids[2])
    path.write_bytes(content[: kids.start(2)] + missing + content[kids.end(2) :])
    with open_document(path) as document:
        assert len(document) == 3
        with pytest.raises(DocumentError, match=r"three\.pdf, page 2: is broken"):
            document.page(2)
        assert [document.page(n).text_layer.words[1].text for n in (1, 3)] == ["1", "3"]


def test_a_broken_form_leaves_the_pages_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = pdf(tmp_path / "form.pdf", lambda canvas: canvas.acroForm.checkbox(name="agreed", x=20, y=20))
    asked = []

    def broken(self: pdfium.PdfDocument) -> None:
        asked.append(self)
        raise pdfium.PdfiumError("Initializing form env failed for document.")

    monkeypatch.setattr(pdfium.PdfDocument, "init_forms", broken)
    with open_document(path) as document:
        assert document.page(1).width > 100
    assert asked


def message(path: Path, **options) -> str:
    with pytest.raises(HsdkitError) as caught:
        open_document(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_encrypted_files_ask_for_the_password(tmp_path: Path):
    path = pdf(tmp_path / "secret.pdf", text(["hush"]), password="open")
    assert message(path) == "secret.pdf: is encrypted: give its password with password=..."
    assert message(path, password="wrong") == "secret.pdf: is encrypted and the password given is wrong"
    with open_document(path, password="open") as document:
        assert [w.text for w in document.page(1).text_layer.words] == ["hush"]


def test_files_that_are_no_documents_say_why(tmp_path: Path):
    assert message(tmp_path / "gone.pdf").endswith("gone.pdf: no such file")
    assert "is a folder" in message(tmp_path)
    (tmp_path / "empty.pdf").touch()
    assert message(tmp_path / "empty.pdf") == "empty.pdf: the file is empty (0 bytes)"
    (tmp_path / "note.pdf").write_text("Dear reader,")
    assert message(tmp_path / "note.pdf").startswith("note.pdf: is neither a PDF nor an image")
    (tmp_path / "stub.pdf").write_bytes(b"%PDF-1.7\n1 0 obj")
    assert message(tmp_path / "stub.pdf").startswith("stub.pdf: is a broken PDF")


def test_a_pdf_without_pages_says_so(tmp_path: Path):
    empty = pdfium.PdfDocument.new()
    empty.save(tmp_path / "none.pdf")
    assert message(tmp_path / "none.pdf") == "none.pdf: has no pages"


def test_a_pdf_with_a_broken_cross_reference_table_is_repaired(three_pages: Path):
    content = three_pages.read_bytes()
    start = content.rindex(b"startxref")
    three_pages.write_bytes(content[:start] + b"startxref\n7\n%%EOF")
    with open_document(three_pages) as document:
        assert len(document) == 3


def test_pages_out_of_range_name_the_file(three_pages: Path):
    expected = "three.pdf, page 9: out of range, the document has 3 pages"
    assert message(three_pages, pages="2,9") == expected
    with open_document(three_pages) as document, pytest.raises(DocumentError, match="page 4: out of range"):
        document.page(4)


@pytest.mark.parametrize(("name", "value"), [("rotate", 45), ("dpi", 0), ("dpi", 9999), ("max_pixels", 3)])
def test_options_that_make_no_sense(three_pages: Path, name: str, value: int):
    assert message(three_pages, **{name: value}).startswith(f"{name}={value}: ")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, (1, 2, 3, 4, 5)),
        ("2", (2,)),
        (4, (4,)),
        ("1-3,5", (1, 2, 3, 5)),
        ("4-", (4, 5)),
        ("-2", (1, 2)),
        (" 5 , 1-2,2", (1, 2, 5)),
        ([3, 1], (1, 3)),
    ],
)
def test_parse_pages(given, expected):
    assert parse_pages(given, 5) == expected


@pytest.mark.parametrize("given", ["", "a", "1..3", "3-1", "-", "1-2-3", "1;2", ",", "0x1", "²", []])
def test_pages_that_cannot_be_understood(given):
    with pytest.raises(ConfigError, match=r"pages="):
        parse_pages(given, 5)


@pytest.mark.parametrize("given", ["6", "0", "1-9", 0, "6-"])
def test_pages_that_are_not_there(given):
    with pytest.raises(DocumentError, match="out of range, the document has 5 pages"):
        parse_pages(given, 5)


@given(st.integers(1, 60).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(1, n), min_size=1))))
def test_any_set_of_pages_can_be_written_as_ranges(case):
    count, wanted = case
    runs: list[list[int]] = []
    for n in sorted(wanted):
        if runs and n == runs[-1][-1] + 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    written = ",".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)
    assert parse_pages(written, count) == tuple(sorted(wanted))


@given(st.text("0123456789-, x", max_size=12))
def test_any_text_is_either_pages_or_a_clear_error(given):
    try:
        pages = parse_pages(given, 7)
    except HsdkitError:
        return
    assert pages == tuple(sorted(set(pages)))
    assert set(pages) <= set(range(1, 8))


def test_find_inputs_takes_files_folders_and_globs_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("in/b.PDF", "in/a.png", "in/notes.txt", "in/.hidden.pdf", "in/deep/c.pdf", "odd [1].pdf"):
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    assert find_inputs(["in"]) == [Path("in/a.png"), Path("in/b.PDF")]
    assert find_inputs(["in/**/*.pdf", "in"]) == [Path("in/deep/c.pdf"), Path("in/a.png"), Path("in/b.PDF")]
    assert find_inputs(["odd [1].pdf", "in/notes.txt", "in/notes.txt"]) == [Path("odd [1].pdf"), Path("in/notes.txt")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [("gone.pdf", "no such file"), ("*.tiff", "no file matches"), ("bare", "no PDF or image in this folder")],
)
def test_inputs_that_name_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, expected: str):
    (tmp_path / "bare").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DocumentError, match=expected):
        find_inputs([given])


def test_no_inputs_at_all():
    with pytest.raises(DocumentError, match="no input"):
        find_inputs([])
