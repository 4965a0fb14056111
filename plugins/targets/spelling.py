"""How a model spells what is on the page: odd characters, the width of punctuation, delimiters of inline formulas."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

#: As printed; half-width marks everywhere; or full-width marks after Chinese and Japanese text.
Width = Literal["printed", "half", "full"]

#: What models write in place of the typographic characters PDFs and OCR yield.
LOOK = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f", " "),
        **dict.fromkeys("\u00ad\u200b\u2060\ufeff", ""),
        "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st",
        "\u2028": "\n", "\u2029": "\n\n", "\x0b": "\n", "\x0c": "\n", "\u2010": "-", "\u2011": "-",
    }
)  # fmt: skip

#: Full-width forms of ASCII (U+FF01 to U+FF5E) and the ideographic space, full stop and comma.
_HALF = str.maketrans({chr(c): chr(c - 0xFEE0) for c in range(0xFF01, 0xFF5F)} | {"\u3000": " ", "。": ".", "、": ","})
_FULL = dict(zip(",.:;!?()", "，。：；！？（）", strict=True))
_CJK = r"\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6"
#: Marks beside Chinese text; a point inside a number or a name is none.
_MARK = re.compile(rf"(?<=[{_CJK}])(?:[,:;!?()]|\.(?![\w./]))|[,:;!?()](?=[{_CJK}])")
_PAIRED = re.compile(r"（([^（）()]*)\)|\(([^（）()]*)）")

_DOLLAR = re.compile(r"(?<![\\$])\$(?![\s$])([^$\n]*?[^\s\\$])\$(?![\d$])")
#: None begins within another: where an end is missing, each of several would be tried with all that follows.
_ROUND = re.compile(r"\\\(((?:(?!\\\().)+?)\\\)")


def plain(text: str) -> str:
    """The text with ligatures, odd spaces and odd line ends as models write them, and in normal form C."""
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n").translate(LOOK))


def in_width(text: str, width: Width) -> str:
    """The text with its punctuation in that width. Formulas between $ are left as they are."""
    if width == "printed":
        return text
    if width == "half":
        return text.translate(_HALF)
    parts = re.split(r"(\$[^$]*\$)", text)
    return "".join(part if i % 2 else _full(part) for i, part in enumerate(parts))


def _full(text: str) -> str:
    before = ""
    while before != text:  # a mark may follow one that has just become full-width
        before, text = text, _MARK.sub(lambda m: _FULL[m[0]], text)
        text = _PAIRED.sub(lambda m: f"（{m[1] if m[1] is not None else m[2]}）", text)
    return text


def with_inline(text: str, delimiters: tuple[str, str]) -> str:
    """The text with inline formulas between these delimiters, whichever of `$..$` and `\\(..\\)` they stand in."""
    before, after = delimiters
    if delimiters != ("$", "$"):
        text = _DOLLAR.sub(lambda m: f"{before}{m[1]}{after}", text)
    if delimiters != (r"\(", r"\)"):
        text = _ROUND.sub(lambda m: f"{before}{m[1].strip()}{after}", text)
    return text
