"""How a model writes Markdown, declared as data, and drafts rendered that way (`render`).

A draft in another syntax than the model's own is never accepted, whatever it says.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from hsdkit_plugins.targets.formats.blocks import Layout, bare_formula
from hsdkit_plugins.targets.tables import html_grid, html_table, markdown_table, plain_grid

from hsdkit.regions import Label, Region
from hsdkit.spelling import join_texts


@dataclass(frozen=True, slots=True)
class Dialect:
    """The habits of one model.

    tables: `html` (`<table><tr><td>`, nothing between the tags) or `markdown` (pipes).
    formula: what stands before and after a display formula.
    title, heading: the heading level of a title, and of a heading whose level the drafter does not know.
    bullet: the mark of an unordered list item.
    fence: whether code is put between ``` lines.
    ascii: whether the model writes printable ASCII only.
    layout: the format of a page output that is more than Markdown (records with boxes, tags); None for Markdown.
    """

    tables: Literal["html", "markdown"] = "html"
    formula: tuple[str, str] = ("$$\n", "\n$$")
    title: int = 1
    heading: int = 2
    bullet: str = "- "
    fence: bool = True
    ascii: bool = False
    layout: Layout | None = None


#: What models write in place of the typographic characters PDFs and OCR yield.
_LOOK = str.maketrans(
    {
        **dict.fromkeys("\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f", " "),
        **dict.fromkeys("\u00ad\u200b\u2060\ufeff", ""),
        "ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st",
        "\u2028": "\n", "\u2029": "\n\n", "\x0b": "\n", "\x0c": "\n", "\u2010": "-", "\u2011": "-",
    }
)  # fmt: skip
_ASCII = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"), **dict.fromkeys("“”„‟″«»", '"'), **dict.fromkeys("‒–—―−", "-"),
        **dict.fromkeys("•◦▪‣●○■□", "-"), "…": "...", "×": "x", "·": ".", "⁄": "/", "©": "(c)", "®": "(R)", "™": "TM",
        "ß": "ss", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE",
        "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "ı": "i",
    }
)  # fmt: skip

_BULLET = re.compile(r"[-*+•◦▪‣●○■□–—](?:\s+|$)")
_NUMBER = re.compile(r"\(?(\d{1,3})[.)]\s+")


def render(region: Region, dialect: Dialect) -> str:
    """The region's draft in the dialect; "" when nothing of it can be written. Never raises, keeps every word."""
    if region.label is Label.TABLE:
        text = _table(region, dialect)
    elif region.format == "latex" or region.label is Label.FORMULA:
        text = _formula(normalise(region.text, dialect).strip(), dialect)
    elif region.label is Label.CODE:
        text = _code(normalise(region.text, dialect), dialect)
    elif region.label is Label.LIST:
        text = "\n".join(filter(None, (_item(line, dialect) for line in _list_lines(region.text))))
    elif region.label in (Label.TITLE, Label.HEADING):
        text = _heading(region, dialect)
    else:
        text = one_line(region.text, dialect)
    return text


def normalise(text: str, dialect: Dialect) -> str:
    """Characters as the model would write them: ligatures and odd spaces always, typographic ones for ASCII models."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n").translate(_LOOK))
    if not dialect.ascii:
        return text
    # NFKD splits accents off letters and turns full-width forms, superscripts and the like into ASCII where it can.
    text = unicodedata.normalize("NFKD", text.translate(_ASCII))
    return "".join(c for c in text if c in "\n\t" or " " <= c <= "~")


def one_line(text: str, dialect: Dialect) -> str:
    """A paragraph on one line: words hyphenated at a line end are joined, Chinese and Japanese lines too."""
    text = join_texts(*map(str.strip, text.replace("\r\n", "\n").split("\n")))
    return " ".join(normalise(text, dialect).split())


def _heading(region: Region, dialect: Dialect) -> str:
    text = one_line(region.text, dialect)
    marked = re.match(r"(#{1,6})\s+(.*)", text)
    known = region.level or (dialect.title if region.label is Label.TITLE else dialect.heading)
    level = len(marked[1]) if marked else min(max(known, 1), 6)
    text = marked[2] if marked else text
    return f"{'#' * level} {text}" if text else ""


def _list_lines(text: str) -> list[str]:
    """One string an item: lines without a mark of their own continue the item before."""
    items: list[str] = []
    for line in text.replace("\r\n", "\n").translate(_LOOK).split("\n"):
        marked = _BULLET.match(line.lstrip()) or _NUMBER.match(line.lstrip())
        if items and not marked:
            items[-1] += f"\n{line.strip()}"
        else:
            items.append(line)
    return items


def _item(line: str, dialect: Dialect) -> str:
    indent = " " * (2 * ((len(line) - len(line.lstrip(" "))) // 2))
    line = line.lstrip()
    if number := _NUMBER.match(line):
        mark, rest = f"{number[1]}. ", line[number.end() :]
    elif bullet := _BULLET.match(line):
        mark, rest = dialect.bullet, line[bullet.end() :]
    else:
        mark, rest = dialect.bullet, line
    text = one_line(rest, dialect)
    return f"{indent}{mark}{text}" if text else ""


def _formula(text: str, dialect: Dialect) -> str:
    text = bare_formula(text)
    return f"{dialect.formula[0]}{text}{dialect.formula[1]}" if text else ""


def _code(text: str, dialect: Dialect) -> str:
    text = text.strip("\n").rstrip()
    if not text.strip() or not dialect.fence or text.startswith("```"):
        return text
    return f"```\n{text}\n```"


def _table(region: Region, dialect: Dialect) -> str:
    grid = html_grid(region.text) if region.format == "html" or "<table" in region.text.lower() else None
    if grid is None:
        grid = plain_grid(region.text.translate(_LOOK))
    rows = [[c.with_text(one_line(c.text, dialect)) for c in row] for row in grid]
    if not any(c.text for row in rows for c in row):
        return ""
    return html_table(rows) if dialect.tables == "html" else markdown_table(rows)
