"""Makes letter.png and letter.hocr from page 1 of ../report.pdf: `python make_letter.py`.

The hOCR has the form of what `tesseract letter.png letter hocr` writes, with misreadings of its kind.
"""

import re
from html import escape
from pathlib import Path

from hsdkit.documents import open_document
from hsdkit.plugins import plugins
from hsdkit.regions import Box

HERE = Path(__file__).parent
#: An OCR program's resolution is seldom that of the page image: boxes here are three times as large.
TIMES = 3
PAGE = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en">
 <head><title></title><meta name='ocr-capabilities' content='ocr_page ocr_carea ocr_par ocr_line ocrx_word'/></head>
 <body>
  <div class='ocr_page' id='page_1' title='image "letter.png"; bbox {}; ppageno 0'>
{}
  </div>
 </body>
</html>
"""


def as_read(text: str) -> str:
    """Without structure, and with some letters mistaken for others."""
    words = " ".join(re.sub("<[^>]*>|- ", " ", text).split())
    return words.replace("ll", "l1", 1).replace("ck", "clc").replace("mi", "rni", 1)


def main() -> None:
    with open_document(HERE.parent / "report.pdf", pages=1, dpi=90) as document:
        page = document.page(1)
        regions = plugins().build("drafter", "pdftext").draft(page).readable
    paragraphs = [
        f"   <p class='ocr_par' id='par_1_{i}' lang='eng' title=\"bbox {numbers(r.box)}\">{escape(as_read(r.text))}</p>"
        for i, r in enumerate(regions, 1)
    ]
    page.image.save(HERE / "letter.png", optimize=True)
    (HERE / "letter.hocr").write_text(
        PAGE.format(numbers(Box(0, 0, page.width, page.height)), "\n".join(paragraphs)), "utf-8"
    )


def numbers(box: Box) -> str:
    return " ".join(str(round(TIMES * n)) for n in (box.x0, box.y0, box.x1, box.y1))


if __name__ == "__main__":
    main()
