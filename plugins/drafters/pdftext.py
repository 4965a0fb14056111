"""Drafts from the PDF's own text layer: exact text, structure from fonts and geometry. Milliseconds a page."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hsdkit_plugins.drafters._blocks import blocks_of, body_of, regions_of
from hsdkit_plugins.drafters._furniture import part_furniture
from hsdkit_plugins.drafters._lines import Line, lines_of, turned_back, upright
from hsdkit_plugins.drafters._tables import Table, find_tables
from hsdkit_plugins.drafters._trust import Trust, trust

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.documents import Page
from hsdkit.errors import DocumentError, DrafterError
from hsdkit.reading_order import reading_order
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.textlayer import TextLayer, Word


@dataclass
class PdfTextConfig:
    """least_score: text layers that are trusted less than this (0..1) are refused; 0.7 is what OCR left in a scan."""

    least_score: float = 0.5


class PdfText:
    """Raises `DrafterError` for pages without a text layer that can be trusted, saying why."""

    name = "pdftext"

    def __init__(self, config: PdfTextConfig) -> None:
        self.config = config

    def draft(self, page: Page) -> Draft:
        start = time.perf_counter()
        verdict = self.judge(page)
        if verdict.score < self.config.least_score or not verdict.score:
            raise DrafterError(
                f"{page.source}, page {page.number}: {verdict.reason}; try drafter=auto or drafter=rapidocr"
            )
        layer = page.text_layer
        assert layer is not None  # judged above
        regions = tuple(replace(r, score=verdict.score) for r in regions_from(layer, page.width, page.height))
        notes = (verdict.reason,) if verdict.reason else ()
        return Draft(regions, self.name, time.perf_counter() - start, notes)

    def judge(self, page: Page) -> Trust:
        """How far this page's text layer can be trusted."""
        try:
            return trust(page.text_layer, page.width, page.height)
        except DocumentError as e:
            return Trust(0, str(e))

    def expected_seconds(self, page: Page) -> float:
        return 0.05


def regions_from(layer: TextLayer, width: int, height: int) -> list[Region]:
    """The layer's regions in reading order. A page that was typeset sideways is read sideways; the few words that are
    turned otherwise (a stamp in the margin) are left for the model to find."""
    turn = Counter({t: sum(len(w.text) for w in layer.words if w.turn == t) for t in range(4)}).most_common(1)[0][0]
    words = [upright(w, turn, width, height) for w in layer.words if w.turn == turn]
    rules = [turned_back(r, turn, width, height) for r in layer.rules]
    images = [turned_back(i, turn, width, height) for i in layer.images]
    if turn % 2:
        width, height = height, width
    regions = _layout(words, rules, images, width, height)
    back = -turn % 4
    return [
        replace(
            r, box=turned_back(r.box, back, width, height).clamped(*((height, width) if turn % 2 else (width, height)))
        )
        for r in regions
    ]


def _layout(words: list[Word], rules: list[Box], images: list[Box], width: int, height: int) -> list[Region]:
    tables = find_tables(words, rules)
    in_tables = {i for t in tables for i in t.words}
    lines = lines_of([w for i, w in enumerate(words) if i not in in_tables])
    lines, furniture = part_furniture(lines, height)
    pieces: list[Line | Table | Box] = [*lines, *tables, *(i for i in images if 0.01 < i.area / (width * height) < 0.7)]
    if not pieces:
        return furniture
    boxes = [p if isinstance(p, Box) else p.box for p in pieces]
    ordered = [pieces[i] for i in reading_order(boxes, gutter=0.35 * _median_size(lines))]
    body = body_of([p for p in ordered if isinstance(p, Line)] or lines) if lines else None
    regions: list[Region] = []
    run: list[Line] = []
    for piece in [*ordered, None]:
        if isinstance(piece, Line):
            run.append(piece)
            continue
        if run and body:
            regions += regions_of(blocks_of(run, body), body, height)
            run = []
        if isinstance(piece, Table):
            regions.append(Region(piece.box, Label.TABLE, piece.html, "html"))
        elif isinstance(piece, Box):
            regions.append(Region(piece, Label.FIGURE))
    top = [f for f in furniture if f.box.y1 < height / 2]
    return [*top, *regions, *(f for f in furniture if f not in top)]


def _median_size(lines: list[Line]) -> float:
    sizes = sorted(line.size for line in lines)
    return sizes[len(sizes) // 2] if sizes else 20.0


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [
        Component(
            "drafter",
            "pdftext",
            "the text layer of born-digital PDFs: exact text in milliseconds",
            PdfTextConfig,
            PdfText,
        )
    ]
