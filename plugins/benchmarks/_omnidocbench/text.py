"""How texts and formulas are written before they are compared."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_FENCES = tuple(re.compile(rf"^```{name}\n?", re.MULTILINE) for name in ("markdown", "html", "latex"))
_FENCE_END = re.compile(r"```\n?$", re.MULTILINE)
_INLINE = re.compile(r"\$(.*?)\$|\\\((.*?)\\\)")
_ESCAPED = re.compile(r"\\([\\_&%^])")
#: Besides escape sequences written out, the evaluator drops the two letters after a slash in "w/t", "and/nor".
_WRITTEN_OUT = ("\\t", "\\n", "\t", "\n", "/t", "/n")
_NO_WORD = re.compile(r"[^\w一-鿿]")

_FORMULA_MARKS = (
    re.compile(r"\\tag\{.*?\}"),
    re.compile(r"\\hspace\{.*?\}"),
    re.compile(r"\\begin\{.*?\}"),
    re.compile(r"\\end\{.*?\}"),
    re.compile(r"\\arraycolsep.*?\}"),
)
_BRACKETS = re.compile(r"\\\[(.+?)(?<!\\)\\\]")
#: Taken out one after the other, wherever they stand: order matters.
_STYLES = (
    *(f"\\math{style}" for style in ("bf", "rm", "normal", "it", "bb", "cal", "scr", "frak", "sf", "tt")),
    *("\\textbf", "\\text", "\\boldmath", "\\boldsymbol", "\\operatorname", "\\bm", "\\symbfit", "\\mathbfcal"),
    *("\\symbf", "\\scriptscriptstyle", "\\notag", "\\setlength", "\\coloneqq"),
    *("\\space", "\\thickspace", "\\thinspace", "\\medspace", "\\nobreakspace", "\\negmedspace", "\\quad", "\\qquad"),
    *("\\enspace", "\\substackw", " ", "$$", "\\left", "\\right", "\\displaystyle"),
)


def unfenced(markdown: str) -> str:
    """Without code fences of Markdown, HTML and LaTeX; every fence at the end of a line goes."""
    for fence in _FENCES:
        markdown = fence.sub("", markdown)
    return _FENCE_END.sub("", markdown)


def shortened_runs(text: str) -> str:
    """Runs of more than four underscores or spaces cut to four."""
    return re.sub(" {4,}", "    ", re.sub("_{4,}", "____", text))


def text_norm(text: str) -> str:
    """Inline formulas as Unicode, then letters, digits and underscores only."""
    return words_only(inline_as_unicode(text))


def words_only(text: str) -> str:
    for mark in _WRITTEN_OUT:
        text = text.replace(mark, "")
    return _NO_WORD.sub("", text)


def inline_as_unicode(text: str) -> str:
    """Inline formulas that hold a command, a sub- or a superscript written in Unicode; others keep their delimiters."""

    def written(match: re.Match[str]) -> str:
        formula = _ESCAPED.sub("", match[1] if match[1] is not None else match[2])
        if not any(mark in formula for mark in r"\^_"):
            return match[0]
        try:
            return latex_as_unicode(formula + " " if formula.endswith("\\") else formula).strip()
        except Exception:  # of a formula that cannot be parsed the parser raises what it likes
            return match[0]

    return _INLINE.sub(written, text)


def latex_as_unicode(latex: str) -> str:
    return str(_converter().latex_to_text(latex))


@cache
def _converter() -> Any:
    import logging

    from pylatexenc.latex2text import LatexNodes2Text

    logging.getLogger("pylatexenc").setLevel(logging.ERROR)
    return LatexNodes2Text()


def formula_norm(latex: str) -> str:
    """A formula without delimiters, environments, styles and spaces, in small letters."""
    latex = latex.strip().strip("$").strip("\n")
    if match := _BRACKETS.search(latex):
        latex = match[1].strip()
    for mark in _FORMULA_MARKS:
        latex = mark.sub("", latex)
    latex = latex.strip(".")
    for style in _STYLES:
        latex = latex.replace(style, "")
    return latex.lower()
