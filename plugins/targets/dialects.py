"""How a model writes Markdown, declared as data, and drafts rendered that way (`render`).

A draft in another syntax than the model's own is never accepted, whatever it says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from hsdkit_plugins.targets.formats.blocks import Layout, bare_formula
from hsdkit_plugins.targets.otsl import is_otsl, otsl_grid, otsl_table
from hsdkit_plugins.targets.spelling import LOOK, Width, in_width, plain, with_inline
from hsdkit_plugins.targets.tables import PLAIN, Grid, HtmlStyle, html_grid, html_table, markdown_table, plain_grid

from hsdkit.protocols import BLANK_LINE
from hsdkit.regions import Label, Region
from hsdkit.spelling import join_texts


@dataclass(frozen=True, slots=True)
class Dialect:
    """The habits of one model.

    tables: `html`, `markdown` (pipes) or `otsl`; html: how it writes HTML; heads: whether OTSL marks head cells.
    formula, inline: what stands before and after a display formula, and a formula within text.
    title, heading: the heading level of a title, and of a heading whose level the drafter does not know; 0: no marks.
    bullet: the mark of an unordered list item; numbers: `dot` (always `1. `) or `printed` (`1)`, `(1)` as they are).
    fence: whether code is put between ``` lines.
    width: of punctuation: as printed, always half-width, or full-width after Chinese and Japanese text.
    separator: what stands between two blocks of Markdown.
    layout: the format of a page output that is more than Markdown (records with boxes, tags); None for Markdown.
    layout_in_crops: whether the output for a crop is in that format too.
    """

    tables: Literal["html", "markdown", "otsl"] = "html"
    html: HtmlStyle = PLAIN
    heads: bool = False
    formula: tuple[str, str] = ("$$\n", "\n$$")
    inline: tuple[str, str] = ("$", "$")
    title: int = 1
    heading: int = 2
    bullet: str = "- "
    numbers: Literal["dot", "printed"] = "dot"
    fence: bool = True
    width: Width = "printed"
    separator: str = BLANK_LINE
    layout: Layout | None = None
    layout_in_crops: bool = False


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
    """Characters as the model would write them: ligatures and odd spaces always, punctuation in the
    model's width."""
    return in_width(plain(text), dialect.width)


def one_line(text: str, dialect: Dialect) -> str:
    """A paragraph on one line: words hyphenated at a line end are joined, Chinese and Japanese lines too."""
    text = join_texts(*map(str.strip, text.replace("\r\n", "\n").split("\n")))
    return with_inline(" ".join(normalise(text, dialect).split()), dialect.inline)


def _heading(region: Region, dialect: Dialect) -> str:
    text = one_line(region.text, dialect)
    marked = re.match(r"(#{1,6})\s+(.*)", text)
    known = region.level or (dialect.title if region.label is Label.TITLE else dialect.heading)
    level = len(marked[1]) if marked else min(max(known, 1), 6)
    text = marked[2] if marked else text
    if not (dialect.title if region.label is Label.TITLE else dialect.heading):
        return text
    return f"{'#' * level} {text}" if text else ""


def _list_lines(text: str) -> list[str]:
    """One string an item: lines without a mark of their own continue the item before."""
    items: list[str] = []
    for line in text.replace("\r\n", "\n").translate(LOOK).split("\n"):
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
        printed = " ".join(number[0].split()) + " "
        mark, rest = f"{number[1]}. " if dialect.numbers == "dot" else printed, line[number.end() :]
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
    grid = table_grid(region)
    rows = [[c.with_text(one_line(c.text, dialect)) for c in row] for row in grid]
    if not any(c.text for row in rows for c in row):
        return ""
    if dialect.tables == "otsl":
        return otsl_table(rows, dialect.heads)
    return html_table(rows, dialect.html) if dialect.tables == "html" else markdown_table(rows)


def table_grid(region: Region) -> Grid:
    """The cells of a table region, whichever way its text writes them."""
    if region.format == "html" or "<table" in region.text.lower():
        return html_grid(region.text)
    if is_otsl(region.text):
        return otsl_grid(region.text)
    return plain_grid(region.text.translate(LOOK))
