"""Makes the example documents beside this file: `python examples/make.py` (needs reportlab, Pillow, numpy, pypdfium2).

The same input always gives the same pages: PDF dates and ids are fixed, the scan's noise is seeded.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pypdfium2 as pdfium
from PIL import Image, ImageFilter
from prose import REPORT, TEN_PAGES, Block, Grid, Heading, Items, Para, Title
from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase.pdfmetrics import registerFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    NextPageTemplate,
    PageBreak,
    PageTemplate,
    Paragraph,
    Table,
    TableStyle,
)

#: Page size and body size: small pages, which are quick to read on a CPU.
PAGE = (105 * mm, 148 * mm)
BODY = 9.5
LEADING = 14.0
MARGIN = 6 * mm
GUTTER = 5 * mm
#: Bitstream Vera comes with reportlab and is embedded, so the pages look the same whatever fonts a machine has.
FONT, BOLD = "Vera", "VeraBd"
SCAN_DPI = 150

for _name in (FONT, BOLD):
    registerFont(TTFont(_name, f"{_name}.ttf"))


def _style(size: float, font: str = FONT, **more: float) -> ParagraphStyle:
    # splitLongWords and hyphenation off: a page must hold the words as they are written in prose.py
    return ParagraphStyle(
        f"{font}{size}", fontName=font, fontSize=size, leading=size * LEADING / BODY, splitLongWords=0, **more
    )


STYLES = {
    Title: _style(BODY * 1.55, BOLD, spaceAfter=8),
    Heading: _style(BODY * 1.25, BOLD, spaceBefore=8, spaceAfter=7, keepWithNext=1),
    Para: _style(BODY, spaceAfter=8),
    Items: _style(BODY, leftIndent=13, bulletIndent=2, spaceAfter=1, bulletFontSize=BODY),
}


def flowables(block: Block, width: float) -> list[Flowable]:
    """What reportlab lays out for one block in a column `width` points wide."""
    if isinstance(block, Grid):
        table = Table(block.rows, [share * width for share in block.widths], LEADING + 3, hAlign="LEFT", spaceBefore=3)
        table.setStyle(
            TableStyle(
                [
                    ("FONT", (0, 0), (-1, -1), FONT, BODY),
                    ("FONT", (0, 0), (-1, 0), BOLD, BODY),
                    ("GRID", (0, 0), (-1, -1), 0.6, colors.black),
                    ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
                    ("LEFTPADDING", (0, 0), (-1, -1), 3.5),
                ]
            )
        )
        table.spaceAfter = 9
        return [table]
    style = STYLES[type(block)]
    if isinstance(block, Items):
        marks = [f"{i}." if block.numbered else "-" for i, _ in enumerate(block.items, 1)]
        items: list[Flowable] = [Paragraph(t, style, bulletText=m) for t, m in zip(block.items, marks, strict=True)]
        items[-1].spaceAfter = 8  # type: ignore[attr-defined]
        return items
    return [Paragraph(block.text, style)]


def report() -> bytes:
    """One page: a title over two columns."""
    width, height = PAGE
    column = (width - 2 * MARGIN - GUTTER) / 2
    top = 24
    pads = {"leftPadding": 0, "rightPadding": 0, "topPadding": 0, "bottomPadding": 0}
    frames = [
        Frame(MARGIN, height - MARGIN - top, width - 2 * MARGIN, top, **pads),
        Frame(MARGIN, MARGIN, column, height - 2 * MARGIN - top, **pads),
        Frame(MARGIN + column + GUTTER, MARGIN, column, height - 2 * MARGIN - top, **pads),
    ]
    story = [f for block in REPORT for f in flowables(block, column)]
    return _build([PageTemplate("page", frames)], story, "How a page is read")


def ten_pages() -> bytes:
    """Ten pages of one column."""
    width, height = PAGE
    pads = {"leftPadding": 0, "rightPadding": 0, "topPadding": 0, "bottomPadding": 0}
    frame = Frame(MARGIN, MARGIN, width - 2 * MARGIN, height - 2 * MARGIN, **pads)
    story: list[Flowable] = []
    for page in TEN_PAGES:
        story += [f for block in page for f in flowables(block, width - 2 * MARGIN)]
        story += [NextPageTemplate("page"), PageBreak()]
    return _build([PageTemplate("page", [frame])], story[:-2], "A short history of the page")


def _build(templates: list[PageTemplate], story: list[Flowable], title: str) -> bytes:
    out = io.BytesIO()
    document = BaseDocTemplate(out, pagesize=PAGE, pageTemplates=templates, title=title, author="hsdkit", invariant=1)
    document.build(story)
    return out.getvalue()


def scan(pdf: bytes) -> bytes:
    """The first page of `pdf` as a scanner gives it: a little askew, blurred, noisy, unevenly lit; no text layer."""
    page = pdfium.PdfDocument(pdf)[0].render(scale=SCAN_DPI / 72).to_pil().convert("L")
    askew = page.rotate(0.6, Image.Resampling.BICUBIC, fillcolor=255).filter(ImageFilter.GaussianBlur(0.6))
    ink = np.asarray(askew, np.float32)
    y, x = np.mgrid[0 : ink.shape[0], 0 : ink.shape[1]].astype(np.float32)
    light = 0.95 - 0.07 * (x / x.max()) - 0.05 * (y / y.max() - 0.4) ** 2  # darker to the right: the book's spine
    noise = np.random.default_rng(7).normal(0, 6, ink.shape)
    grey = np.clip((30 + ink * (225 / 255)) * light + noise, 0, 255).astype(np.uint8)
    jpeg = io.BytesIO()
    Image.fromarray(grey).save(jpeg, "JPEG", quality=60)
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=PAGE, invariant=1)
    canvas.drawImage(ImageReader(io.BytesIO(jpeg.getvalue())), 0, 0, *PAGE)
    canvas.showPage()
    canvas.save()
    return out.getvalue()


def documents() -> dict[str, bytes]:
    """File name to content."""
    born_digital = report()
    return {"report.pdf": born_digital, "scan.pdf": scan(born_digital), "ten_pages.pdf": ten_pages()}


def main(folder: Path) -> None:
    for name, content in documents().items():
        (folder / name).write_bytes(content)
        print(f"{folder / name}: {len(content):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
