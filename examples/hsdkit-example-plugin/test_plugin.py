from pathlib import Path

from PIL import Image

from hsdkit.documents import Page
from hsdkit.plugins import plugins

HERE = Path(__file__).parent


def test_hocr_paragraphs_become_regions_in_page_pixels():
    config = plugins().component("drafter", "hocr").config(folder=str(HERE))
    drafter = plugins().build("drafter", "hocr", config)
    page = Page(1, Image.open(HERE / "letter.png").convert("RGB"), "letter.png")
    first, *others = drafter.draft(page).readable
    assert first.text == "How a page is read"
    assert 0 < first.box.x0 < first.box.x1 < page.width
    assert len(others) == 12


def test_rolmocr_is_prompted_as_its_authors_do():
    target = plugins().build("target", "rolmocr")
    assert target.prompt(None).startswith("Return the plain text representation of this document")
