"""The text a PDF page carries, as words with boxes in page pixels. Knows nothing of PDFs and judges nothing."""

from __future__ import annotations

from dataclasses import dataclass

from hsdkit.regions import Box


@dataclass(frozen=True, slots=True)
class Word:
    """A run of characters of one font without a space inside.

    `box` is what the ink covers; `baseline` is the y (for text turned by 90 or 270 degrees: the x) of the line it
    stands on; `size` is the font size; all in page pixels. `turn` is how far the word is turned clockwise on the
    upright page, in quarters (0 to 3). `glued`: no space parts it from the word before (the font changed in between).
    `hyphen`: the word ends in a hyphen that the PDF marks as made by breaking a word.
    """

    text: str
    box: Box
    baseline: float
    size: float
    bold: bool = False
    italic: bool = False
    mono: bool = False
    font: str = ""
    turn: int = 0
    glued: bool = False
    hyphen: bool = False


@dataclass(frozen=True, slots=True)
class TextLayer:
    """A page's words in the order of the file, its ruling lines and pictures.

    `rules` are horizontal and vertical lines as boxes with one side of about the pen's width; `images` the boxes of
    pictures. Of the `characters` that are not spaces, `unmapped` have no known Unicode value (replacement,
    private-use and control codes included) and `invisible` are not painted, as in the text layer OCR puts on a scan.
    """

    words: tuple[Word, ...] = ()
    rules: tuple[Box, ...] = ()
    images: tuple[Box, ...] = ()
    characters: int = 0
    unmapped: int = 0
    invisible: int = 0
