"""PDF files through pypdfium2: rendering and the text layer, in the same pixels.

PDFium is not thread safe, so every call goes through one lock: pages may be used from several threads, one at a time.
"""

from __future__ import annotations

import contextlib
import io
import re
import threading
from functools import partial
from pathlib import Path

import pypdfium2 as pdfium
import pypdfium2.raw as c

from hsdkit.errors import DocumentError
from hsdkit.page_image import PageImage, bounded_scale
from hsdkit.pdf_geometry import Projection, projection_of
from hsdkit.pdf_text import read_text_layer
from hsdkit.textlayer import TextLayer

_LOCK = threading.RLock()

#: Largest page side in points that the PDF specification allows is 14,400; beyond this it is a damaged page.
_MAX_POINTS = 200_000


class PdfFile:
    """An open PDF. Pages are upright: /Rotate and `rotate` are applied, and what the crop box hides is cut off."""

    def __init__(self, path: Path, dpi: float, password: str | None, rotate: int, max_pixels: int) -> None:
        self._dpi = dpi
        self._rotate = rotate
        self._max_pixels = max_pixels
        with _LOCK:
            try:
                # Absolute, as pypdfium2 would take a leading ~ for a home folder.
                self._pdf = pdfium.PdfDocument(path.absolute(), password=password)
            except pdfium.PdfiumError as e:
                raise DocumentError(_why_not_opened(e, path, password)) from e
            self.count = len(self._pdf)
            if self.count and self._pdf.get_formtype() != c.FORMTYPE_NONE:
                with contextlib.suppress(pdfium.PdfiumError):  # a broken form leaves the pages readable
                    self._pdf.init_forms()  # filled-in fields are part of what a reader sees
        self._open = True

    def page(self, index: int) -> PageImage:
        with _LOCK:
            page = self._load(index)
            try:
                width, height = page.get_size()
                if not (0 < width < _MAX_POINTS and 0 < height < _MAX_POINTS):
                    raise DocumentError(f"has an impossible size of {width:g} x {height:g} points")
                wanted = self._dpi / 72
                scale = bounded_scale(width, height, wanted, self._max_pixels)
                image = page.render(scale=scale, rotation=self._rotate).to_pil()
                projection = projection_of(page, self._rotate, image.width, image.height)
            except (pdfium.PdfiumError, ValueError, MemoryError) as e:
                raise DocumentError(f"cannot be rendered: {e or type(e).__name__}") from e
            finally:
                page.close()
        notes: tuple[str, ...] = ()
        if scale < wanted:
            notes = (
                f"rendered at {scale * 72:.3g} instead of {self._dpi:g} dpi: the page measures "
                f"{width:.0f} x {height:.0f} points (max_pixels)",
            )
        text, alone = partial(self._text, index, projection), partial(self._alone, index)
        return PageImage(image.convert("RGB"), scale * 72, notes, text, alone)

    def _alone(self, index: int) -> bytes:
        """The page as a PDF of one page, turned as it is shown here; drafters that read PDFs get no other pages."""
        with _LOCK:
            self._load(index).close()  # says so if the document is closed
            try:
                with pdfium.PdfDocument.new() as copy:
                    copy.import_pages(self._pdf, [index])
                    page = copy[0]
                    page.set_rotation((page.get_rotation() + self._rotate) % 360)
                    page.close()
                    file = io.BytesIO()
                    copy.save(file)
            except (pdfium.PdfiumError, MemoryError) as e:
                raise DocumentError(f"cannot be copied into a PDF of its own: {e or type(e).__name__}") from e
        return file.getvalue()

    def _load(self, index: int) -> pdfium.PdfPage:
        if not self._open:
            raise DocumentError("the document is closed")
        try:
            return self._pdf[index]
        except pdfium.PdfiumError as e:
            raise DocumentError("is broken: PDFium cannot load it; repairing the file (qpdf, mutool) may help") from e

    def _text(self, index: int, projection: Projection) -> TextLayer:
        with _LOCK:
            page = self._load(index)
            try:
                return read_text_layer(page, projection)
            except pdfium.PdfiumError as e:
                raise DocumentError(f"its text layer cannot be read: {e}") from e
            finally:
                page.close()

    def close(self) -> None:
        with _LOCK:
            if self._open:
                self._open = False
                self._pdf.close()


def _why_not_opened(error: pdfium.PdfiumError, path: Path, password: str | None) -> str:
    code = getattr(error, "err_code", None)
    if code == c.FPDF_ERR_PASSWORD:
        if password:
            return "is encrypted and the password given is wrong"
        return "is encrypted: give its password with password=..."
    if code == c.FPDF_ERR_SECURITY:
        return "is encrypted in a way PDFium does not support; remove the encryption with another tool first"
    if _has_no_pages(path):
        return "has no pages"
    return f"is a broken PDF: {str(error).rstrip('.')}; repairing it (qpdf, mutool) may help"


def _has_no_pages(path: Path) -> bool:
    """Whether a file PDFium refuses to open is sound but for its empty page tree."""
    with path.open("rb") as file:
        content = file.read(1_000_000)
    return re.search(rb"/Count\s+0\b", content) is not None and re.search(rb"/Type\s*/Page\b", content) is None
