"""Where pages are drawn: on a PIL image, or in a PDF that pdfium then renders. Both take the same calls.

Coordinates are page pixels, origin top left; a text's y is its baseline.
"""

import io
import os
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np
from PIL import Image, ImageDraw, ImageFont

FONT_ROOT = Path(os.environ.get("TRAINING_FONTS", "/usr/share/fonts/truetype"))  # for machines without the packages


def _family(pattern: str, regular: str, bold: str, italic: str) -> dict[str, str]:
    return {"regular": pattern % regular, "bold": pattern % bold, "italic": pattern % italic}


_LIBERATION = "liberation/Liberation%s.ttf"
TRAIN_FAMILIES: dict[str, dict[str, str]] = {
    "dejavu-sans": _family("dejavu/DejaVuSans%s.ttf", "", "-Bold", "-Oblique"),
    "dejavu-serif": _family("dejavu/DejaVuSerif%s.ttf", "", "-Bold", "-Italic"),
    "dejavu-condensed": _family("dejavu/DejaVuSansCondensed%s.ttf", "", "-Bold", "-Oblique"),
    "liberation-sans": _family(_LIBERATION, "Sans-Regular", "Sans-Bold", "Sans-Italic"),
    "liberation-serif": _family(_LIBERATION, "Serif-Regular", "Serif-Bold", "Serif-Italic"),
    "liberation-mono": _family(_LIBERATION, "Mono-Regular", "Mono-Bold", "Mono-Italic"),
    "noto-sans": _family("noto/NotoSans-%s.ttf", "Regular", "Bold", "Italic"),
    "noto-serif": _family("noto/NotoSerif-%s.ttf", "Regular", "Bold", "Italic"),
    "roboto": _family("roboto/unhinted/RobotoTTF/Roboto-%s.ttf", "Regular", "Bold", "Italic"),
    "free-serif": _family("freefont/FreeSerif%s.ttf", "", "Bold", "Italic"),
}
TRAIN_WEIGHTS = (2, 2, 1, 5, 5, 0.6, 2, 2, 2, 1.5)
HELD_FAMILIES: dict[str, dict[str, str]] = {
    "open-sans": _family("open-sans/OpenSans-%s.ttf", "Regular", "Bold", "Italic"),
    "lato": _family("lato/Lato-%s.ttf", "Regular", "Bold", "Italic"),
    "free-sans": _family("freefont/FreeSans%s.ttf", "", "Bold", "Oblique"),
}
PDF_FAMILIES: dict[str, dict[str, str]] = {
    "helvetica": {"regular": "Helvetica", "bold": "Helvetica-Bold", "italic": "Helvetica-Oblique"},
    "times": {"regular": "Times-Roman", "bold": "Times-Bold", "italic": "Times-Italic"},
}
ALL_FAMILIES = {**TRAIN_FAMILIES, **HELD_FAMILIES, **PDF_FAMILIES}


class Canvas(Protocol):
    """What a layout needs to draw on."""

    def advance(self, text: str, face: str, size: float) -> list[float]:
        """The advance width of every character, in pixels."""

    def text(self, x: float, y: float, text: str, face: str, size: float, grey: int) -> None: ...

    def line(self, x0: float, y0: float, x1: float, y1: float, grey: int, width: float = 1) -> None: ...

    def box(self, x0: float, y0: float, x1: float, y1: float, fill: int | None, outline: int | None) -> None: ...

    def image(self) -> np.ndarray:
        """The finished page, uint8 of shape (height, width)."""


@cache
def _font(face: str, size: float) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(FONT_ROOT / face, size, layout_engine=ImageFont.Layout.BASIC)


@cache
def _advances(face: str, size: float) -> dict[str, float]:
    return {}


class PilCanvas:
    """A grey PIL image, drawn `sx` by `sy` times larger and scaled down: several looks of the same font."""

    def __init__(self, width: int, height: int, background: int, sx: float = 1.0, sy: float = 1.0) -> None:
        self.size = (width, height)
        self.sx, self.sy = sx, sy
        self._image = Image.new("L", (round(width * sx), round(height * sy)), background)
        self._draw = ImageDraw.Draw(self._image)

    def _points(self, size: float) -> float:
        return round(size * self.sy * 2) / 2

    def advance(self, text: str, face: str, size: float) -> list[float]:
        points = self._points(size)
        table = _advances(face, points)
        font = _font(face, points)
        for c in text:
            if c not in table:
                table[c] = font.getlength(c)
        return [table[c] / self.sx for c in text]

    def text(self, x: float, y: float, text: str, face: str, size: float, grey: int) -> None:
        self._draw.text((x * self.sx, y * self.sy), text, fill=grey, font=_font(face, self._points(size)), anchor="ls")

    def line(self, x0: float, y0: float, x1: float, y1: float, grey: int, width: float = 1) -> None:
        points = (x0 * self.sx, y0 * self.sy, x1 * self.sx, y1 * self.sy)
        self._draw.line(points, fill=grey, width=max(1, round(width * self.sy)))

    def box(self, x0: float, y0: float, x1: float, y1: float, fill: int | None, outline: int | None) -> None:
        points = (x0 * self.sx, y0 * self.sy, x1 * self.sx, y1 * self.sy)
        self._draw.rectangle(points, fill=fill, outline=outline, width=max(1, round(self.sy)))

    def image(self) -> np.ndarray:
        if self._image.size == self.size:
            return np.asarray(self._image)
        kernel = Image.Resampling.BOX if self.sx >= 2 else Image.Resampling.BICUBIC
        return np.asarray(self._image.resize(self.size, kernel))


class PdfCanvas:
    """A one-page PDF with the standard fonts, one point a pixel, rendered by pdfium as a reader's PDF would be."""

    def __init__(self, width: int, height: int) -> None:
        from reportlab.pdfgen.canvas import Canvas as Reportlab

        self.size = (width, height)
        self._buffer = io.BytesIO()
        self._pdf = Reportlab(self._buffer, pagesize=(width, height), pageCompression=0)

    def advance(self, text: str, face: str, size: float) -> list[float]:
        from reportlab.pdfbase.pdfmetrics import stringWidth

        table = _advances(face, size)
        for c in text:
            if c not in table:
                table[c] = stringWidth(c, face, size)
        return [table[c] for c in text]

    def text(self, x: float, y: float, text: str, face: str, size: float, grey: int) -> None:
        self._pdf.setFillGray(grey / 255)
        self._pdf.setFont(face, size)
        self._pdf.drawString(x, self.size[1] - y, text)

    def line(self, x0: float, y0: float, x1: float, y1: float, grey: int, width: float = 1) -> None:
        self._pdf.setStrokeGray(grey / 255)
        self._pdf.setLineWidth(width * 0.7)
        self._pdf.line(x0, self.size[1] - y0, x1, self.size[1] - y1)

    def box(self, x0: float, y0: float, x1: float, y1: float, fill: int | None, outline: int | None) -> None:
        if fill is not None:
            self._pdf.setFillGray(fill / 255)
        if outline is not None:
            self._pdf.setStrokeGray(outline / 255)
        self._pdf.setLineWidth(0.7)
        y = self.size[1] - y1
        self._pdf.rect(x0, y, x1 - x0, y1 - y0, stroke=int(outline is not None), fill=int(fill is not None))

    def image(self) -> np.ndarray:
        import pypdfium2

        self._pdf.showPage()
        self._pdf.save()
        document = pypdfium2.PdfDocument(self._buffer.getvalue())
        try:
            return np.asarray(document[0].render(scale=1).to_pil().convert("L").resize(self.size))
        finally:
            document.close()
