"""The example documents are what examples/make.py makes, and hold what they are there to show."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pypdfium2 as pdfium
import pytest

pytest.importorskip("reportlab")
EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module")
def make() -> ModuleType:
    sys.path.insert(0, str(EXAMPLES))
    try:
        spec = importlib.util.spec_from_file_location("examples_make", EXAMPLES / "make.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EXAMPLES))
    return module


@pytest.fixture(scope="module")
def made(make: ModuleType) -> dict[str, bytes]:
    return make.documents()


def pages(content: bytes) -> list[tuple[tuple[float, float], str, np.ndarray]]:
    """Size in points, text and 72 dpi grey pixels of each page."""
    document = pdfium.PdfDocument(content)
    return [
        (p.get_size(), p.get_textpage().get_text_bounded(), np.asarray(p.render().to_pil().convert("L"), np.int16))
        for p in document
    ]


@pytest.mark.parametrize("name", ["report.pdf", "scan.pdf", "ten_pages.pdf"])
def test_the_committed_file_is_what_the_script_makes(made: dict[str, bytes], name: str) -> None:
    committed = pages((EXAMPLES / name).read_bytes())
    remade = pages(made[name])
    assert [(size, text) for size, text, _ in committed] == [(size, text) for size, text, _ in remade]
    # other versions of the JPEG encoder and the rasteriser may round differently, nothing more
    assert all(np.abs(a - b).mean() < 2 for (_, _, a), (_, _, b) in zip(committed, remade, strict=True))


def test_the_script_is_deterministic(make: ModuleType, made: dict[str, bytes]) -> None:
    assert make.documents() == made


def test_files_stay_small() -> None:
    assert all(p.stat().st_size < 200_000 for p in EXAMPLES.glob("*.pdf"))


def test_each_document_shows_what_it_is_there_for(made: dict[str, bytes]) -> None:
    [(_, report, clean)] = pages(made["report.pdf"])
    assert report.isascii()
    assert all(t in report for t in ("How a page is read", "it mixes columns,", "1455"))
    [(_, layer, noisy)] = pages(made["scan.pdf"])
    assert layer == ""
    blank = (slice(-20, -8), slice(8, -8))  # below the last line
    assert clean[blank].std() == 0
    assert noisy[blank].std() > 1
    assert np.corrcoef(clean.ravel(), noisy.ravel())[0, 1] > 0.5
    booklet = pages(made["ten_pages.pdf"])
    assert len(booklet) == 10
    assert all(text.isascii() and len(text) > 500 for _, text, _ in booklet)
