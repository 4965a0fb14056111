"""What docling's native pipeline says of a page: the words of the PDF in the order of the file, and its pictures."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hsdkit_plugins.drafters._docling import DoclingReader
from hsdkit_plugins.drafters._native import paragraph
from hsdkit_plugins.drafters.pdftext import regions_from

from hsdkit.documents import Page
from hsdkit.regions import Box, Draft
from hsdkit.textlayer import TextLayer, Word

#: A cell is as high as its font; letters without tails stand at this part of it.
_TAIL = 0.2


def convert_words(native: Any, page: Page) -> Draft:
    """The draft of docling's native pipeline: paragraphs, headings, tables and reading order come from the geometry of
    its words. Raises `ValueError` for JSON that is no DoclingDocument."""
    reader = DoclingReader(native, page)
    cells = [
        (paragraph(text), box)
        for item in reader.found.objects(native.get("texts"))
        for box, text in reader.parts(item)
        if text.strip()
    ]
    turn = _turn(cells)
    words = tuple(_word(text, box, turn) for text, box in cells)
    pictures = tuple(box for item in reader.found.objects(native.get("pictures")) for box, _ in reader.parts(item))
    regions = regions_from(TextLayer(words, (), pictures), page.width, page.height) if words else []
    return replace(reader.found.draft("docling"), regions=tuple(regions))


def _turn(cells: Sequence[tuple[str, Box]]) -> int:
    """How far most text is turned clockwise, in quarters: docling does not say. Words are longer than high; text that
    runs down the page is turned by one quarter, text that runs up by three."""
    long = [(text, box) for text, box in cells if len(text) > 2]
    tall = sum(len(text) for text, box in long if box.height > box.width)
    if 2 * tall <= sum(len(text) for text, _ in long):
        return 0
    steps = [b.y0 - a.y0 for (_, a), (_, b) in itertools.pairwise(cells) if abs(b.x0 - a.x0) < a.width / 2]
    return 1 if sum(step > 0 for step in steps) >= sum(step < 0 for step in steps) else 3


def _word(text: str, box: Box, turn: int) -> Word:
    size = box.width if turn else box.height
    baseline = {0: box.y1 - _TAIL * size, 1: box.x0 + _TAIL * size, 3: box.x1 - _TAIL * size}[turn]
    return Word(text, box, baseline, size, turn=turn)
