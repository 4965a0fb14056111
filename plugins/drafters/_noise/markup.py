"""Which characters of a draft may be misread: what is printed, not the tags, commands and separators around it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import Enum

from hsdkit.regions import Format, Label, Region


class Part(Enum):
    """MARKUP stays; of what is PRINTED a NEEDED character (the argument of a LaTeX command) may be misread but not be
    lost, and a FREE one may."""

    MARKUP = 0
    NEEDED = 1
    FREE = 2


#: A piece of draft text: one character, or a run of markup.
Glyph = tuple[str, Part]

# No pattern here looks past the next thing of its own kind: text with many beginnings and no end takes linear time.
_FORMULA = r"\$\$?[^$\n\\^_]*[\\^_][^$\n]*\$\$?|\\\((?:(?!\\\().)*?\\\)|\\\[(?:(?!\\\[).)*?\\\]"
#: Formulas inside of text and cells; "$5 and $6" is none.
FORMULA = re.compile(_FORMULA, re.DOTALL)
#: Separators of lines, items and columns; blanks at the ends.
_BLANKS = r"[^\S\n]{2,}|[^\S ]|\A\s+|\s+\Z"
_MARK = r"(?m:^[ \t]*(?:[-*+•]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,4})[.)])[ \t]+)"
_TAG = r"<!--(?:(?!<!--).)*?-->|</?[A-Za-z][^<>]*>|&(?:#\d+|#[xX][0-9a-fA-F]+|\w+);|[<&]\s*[^<>]?"
_TEXT = re.compile(rf"(?P<formula>{_FORMULA})|\||{_BLANKS}", re.DOTALL)
_LIST = re.compile(rf"(?P<formula>{_FORMULA})|{_MARK}|\||{_BLANKS}", re.DOTALL)
_HTML = re.compile(rf"{_TAG}|(?P<formula>{_FORMULA})|{_BLANKS}", re.DOTALL)
_LATEX = re.compile(
    r"\\(?:begin|end)\s*\{[^{}]*\}(?:\s*\{[^{}]*\})?"
    r"|\\(?:[hv]space|raisebox|rule|label|ref|color|textcolor|operatorname)(?![A-Za-z])\*?\s*(?:\{[^{}]*\})*"
    r"|\\m?(?:kern|skip|hskip)(?![A-Za-z])\s*[-\d.]*\s*(?:[a-z]{2})?"
    r"|\\(?:left|right|middle|[bB]igg?[lrm]?)(?![A-Za-z])\s*(?:\\[A-Za-z]+|\\.|.)"
    r"|\\\\\s*\[[^\[\]]*\]"
    r"|(?P<command>\\[A-Za-z]+\*?\s*|[\^_]\s*)|\\.|[{}&~#%$\[\]'\\]|\s+",
    re.DOTALL,
)


def glyphs(region: Region) -> list[Glyph]:
    """The region's text in pieces; joined they are the text."""
    return _latex(region.text) if region.format == "latex" else list(_marked(region))


def safe(form: Format) -> Callable[[str], bool]:
    """Whether text may be written into a draft of that format without becoming markup."""
    if form == "latex":
        return lambda text: all(c.isascii() and (c.isalnum() or c in "+-=.,:;/!()") for c in text)
    return lambda text: not set(text) & set("<>&|\\$")


def _marked(region: Region) -> Iterator[Glyph]:
    pattern = _HTML if region.format == "html" else _LIST if region.label is Label.LIST else _TEXT
    last = 0
    for match in pattern.finditer(region.text):
        yield from ((c, Part.FREE) for c in region.text[last : match.start()])
        formula = match["formula"]
        yield from _latex(formula) if formula else [(match[0], Part.MARKUP)]
        last = match.end()
    yield from ((c, Part.FREE) for c in region.text[last:])


def _latex(text: str) -> list[Glyph]:
    found: list[Glyph] = []
    last, needed, command = 0, 0, ""
    for match in [*_LATEX.finditer(text), None]:
        for c in text[last : match.start() if match else len(text)]:
            # A letter in the place of the 1 would make \fracl2 of \frac12.
            stays = command.startswith("\\") and not command[-1].isspace()
            found.append((c, Part.MARKUP if stays else Part.NEEDED if needed else Part.FREE))
            needed, command = max(0, needed - 1), ""
        if match is None:
            return found
        command = match["command"] or ""
        if command[:1] in ("^", "_") and found and found[-1][1] is Part.FREE:
            found[-1] = (found[-1][0], Part.NEEDED)  # without the y, x^{2}y^{2} has two superscripts in a row
        found.append((match[0], Part.MARKUP))
        # Two characters, as \frac12 takes; the one of ^2 and the letter of \hat x are the common case.
        needed = 2 if command else needed if match[0].isspace() else 0
        last = match.end()
    return found
