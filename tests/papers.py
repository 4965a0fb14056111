"""Small PDF files made on the spot for tests of documents and drafters."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pypdfium2 as pdfium
from reportlab.lib import pdfencrypt
from reportlab.pdfgen.canvas import Canvas

Draw = Callable[[Canvas], None]


def pdf(path: Path, *pages: Draw, size: tuple[float, float] = (300, 400), rotate: int = 0, password: str = "") -> Path:
    """A PDF with one page a drawing; `rotate` is the pages' /Rotate."""
    encrypt = pdfencrypt.StandardEncryption(password, canPrint=0) if password else None
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=size, invariant=1, encrypt=encrypt)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    path.write_bytes(out.getvalue())
    if rotate:
        document = pdfium.PdfDocument(out.getvalue())
        for page in document:
            page.set_rotation(rotate)
        document.save(path)
    return path


def text(lines: list[str], x: float = 30, y: float = 360, size: float = 10, font: str = "Helvetica") -> Draw:
    """Lines one below the other from a point (PDF coordinates: from the bottom left)."""

    def draw(canvas: Canvas) -> None:
        canvas.setFont(font, size)
        for k, line in enumerate(lines):
            canvas.drawString(x, y - 1.3 * size * k, line)

    return draw


def together(*draws: Draw) -> Draw:
    def draw(canvas: Canvas) -> None:
        for each in draws:
            each(canvas)

    return draw


PROSE = (
    "The light tool guesses what the page says and the model checks the guess in one pass over many words at "
    "once. What it would have written stays and what differs is put right before it goes on with the next line of "
    "text. Nothing that the model did not choose reaches the page in the end."
)


def column(words: str, x: float, y: float, width: float, size: float = 9) -> Draw:
    """Running text in a column `width` points wide, ragged right."""

    def draw(canvas: Canvas) -> None:
        canvas.setFont("Helvetica", size)
        lines: list[str] = [""]
        for word in words.split():
            longer = f"{lines[-1]} {word}".strip()
            if canvas.stringWidth(longer, "Helvetica", size) > width:
                lines.append(word)
            else:
                lines[-1] = longer
        text(lines, x, y, size)(canvas)

    return draw
