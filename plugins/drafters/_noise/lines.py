"""Whole lines lost, and cells of tables that trade places."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hsdkit_plugins.drafters._noise.cuts import printed_lines

from hsdkit.regions import Label, Region

if TYPE_CHECKING:
    import numpy as np

ROW = re.compile(r"<tr\b(?:(?!<tr\b).)*?</tr\s*>", re.DOTALL | re.IGNORECASE)
_CELL = re.compile(r"(<t[dh]\b[^<>]*>)((?:(?!<t[dh]\b).)*?)(</t[dh]\s*>)", re.DOTALL | re.IGNORECASE)


def without_lines(region: Region, rate: float, rng: np.random.Generator) -> str:
    """The text without that share of its lines: rows of an HTML table, items of a list, lines of a paragraph as far as
    its box tells where they end; a formula is one line."""
    text = region.text
    if region.format == "html":
        return ROW.sub(lambda row: "" if rng.random() < rate else row[0], text)
    if region.format == "latex":
        lines = [text]
    elif "\n" in text or region.label is Label.LIST:
        lines = text.splitlines(keepends=True)
    else:
        lines = printed_lines(text, region.box)
    kept = [line for line in lines if rng.random() >= rate]
    return text if len(kept) == len(lines) else "".join(kept).rstrip()


def with_swapped_cells(html: str, rate: float, rng: np.random.Generator) -> str:
    """About that share of the cells of an HTML table holds what belongs into the cell beside it. Tables in tables are
    left alone."""
    cells = list(_CELL.finditer(html))
    if html.lower().count("<table") > 1:
        return html
    texts = [cell[2] for cell in cells]
    draws = rng.random(len(cells)).tolist()
    at = 0
    while at + 1 < len(cells):
        if draws[at] < rate / 2:  # two cells are wrong then
            texts[at], texts[at + 1] = texts[at + 1], texts[at]
            at += 1
        at += 1
    out, last = [], 0
    for cell, text in zip(cells, texts, strict=True):
        out += [html[last : cell.start()], cell[1], text, cell[3]]
        last = cell.end()
    return "".join([*out, html[last:]])
