"""Drafts from the PDF's own text layer: exact text, structure from fonts and geometry. Milliseconds a page."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hsdkit_plugins.drafters._lines import lines_of, settled, turned_back, upright
from hsdkit_plugins.drafters._page import page_regions
from hsdkit_plugins.drafters._tables import find_tables
from hsdkit_plugins.drafters._trust import Trust, trust

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.documents import Page
from hsdkit.errors import DocumentError, DrafterError
from hsdkit.regions import Draft, Region
from hsdkit.textlayer import TextLayer


@dataclass(frozen=True)
class PdfTextConfig:
    """least_score: text layers trusted less than this (0..1) are refused; a layer that OCR left in a scan has 0.7."""

    least_score: float = 0.5


class PdfText:
    """Raises `DrafterError` for pages without a text layer that can be trusted, saying why."""

    name = "pdftext"

    def __init__(self, config: PdfTextConfig) -> None:
        self.config = config

    def draft(self, page: Page) -> Draft:
        start = time.perf_counter()
        verdict = self.judge(page)
        layer = page.text_layer if verdict.score else None
        if layer is None:
            raise DrafterError(
                f"{page.source}, page {page.number}: {verdict.reason}; drafter=auto or drafter=rapidocr reads the image"
            )
        regions = regions_from(layer, page.width, page.height)
        scored = tuple(replace(r, score=verdict.score) for r in regions)
        notes = (verdict.reason,) if verdict.reason else ()
        return Draft(scored, self.name, time.perf_counter() - start, notes)

    def judge(self, page: Page) -> Trust:
        """How far this page's text layer can be trusted; 0 where that is less than asked for, and it is not used."""
        try:
            verdict = trust(page.text_layer, page.width, page.height)
        except DocumentError as e:
            return Trust(0, str(e))
        if verdict.score >= self.config.least_score:
            return verdict
        return Trust(0, verdict.reason or f"its text layer is trusted {verdict.score:.2f} only (drafter.least_score)")

    def expected_seconds(self, page: Page) -> float:
        return 0.05


def regions_from(layer: TextLayer, width: int, height: int) -> list[Region]:
    """The layer's regions in reading order. A page that was typeset sideways is read sideways; the few words that are
    turned otherwise (a stamp in the margin) are left for the model to find."""
    letters: Counter[int] = Counter()
    for word in layer.words:
        letters[word.turn] += len(word.text)
    turn = letters.most_common(1)[0][0]
    words = settled([upright(w, turn, width, height) for w in layer.words if w.turn == turn])
    rules = [turned_back(r, turn, width, height) for r in layer.rules]
    # Specks are ornaments; a picture of the whole page is a scan or a background.
    pictures = [turned_back(i, turn, width, height) for i in layer.images if 0.01 < i.area / (width * height) < 0.7]
    wide, high = (height, width) if turn % 2 else (width, height)
    tables = find_tables(words, rules)
    in_tables = {i for t in tables for i in t.words}
    lines = lines_of([w for i, w in enumerate(words) if i not in in_tables])
    regions = page_regions(lines, tables, pictures, high)
    return [replace(r, box=turned_back(r.box, -turn % 4, wide, high).clamped(width, height)) for r in regions]


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "the text layer of born-digital PDFs: exact text in milliseconds"
    return [Component("drafter", "pdftext", summary, PdfTextConfig, PdfText)]
