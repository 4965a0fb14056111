"""Draws one page and writes down its Markdown, with the cell of the page every character of it was drawn in.

The layout is known because we make it: blocks flow down one or two columns; running heads, page numbers and figure
boxes are drawn but not written down.
"""

import random
from collections.abc import Iterable, Sequence

import numpy as np

from training.blocks import BlockPen
from training.degrade import degrade
from training.pen import NEXT, Frame, Full, Page, PageSpec
from training.symbols import GLYPH_CLASS


def draw_page(spec: PageSpec, rng: random.Random) -> Page:
    """Draws a page; the same spec and generator state give the same page. It may be empty if nothing fitted."""
    return _Painter(spec, rng).paint()


class _Painter(BlockPen):
    def _flow(self, frame: Frame, kinds: Sequence[str], weights: Sequence[float], once: bool = False) -> None:
        """Fills a frame with blocks from top to bottom."""
        r, s = self.rng, self.style
        blocks = {
            "paragraph": self._paragraph,
            "heading": self._heading,
            "list": self._list,
            "table": self._table,
            "formula": self._formula,
            "figure": self._figure,
        }
        last, misses, y = "", 0, frame.top
        while misses < 3 and frame.bottom - y >= s.leading:
            kind = r.choices(kinds, weights)[0]
            if kind == last == "heading" and len(kinds) > 1:
                continue
            gap = 0.0 if not last else r.uniform(*s.gap) * s.leading
            if kind != "paragraph" or last not in ("", "paragraph"):
                gap = max(gap, 0.4 * s.leading) if last else 0.0
            size_before = len(self.page.glyphs)
            prefix = ["\n\n"] if size_before else []
            try:
                y = blocks[kind](Frame(frame.left, frame.right, y + gap, frame.bottom), prefix)
            except Full:
                misses += 1
                del self.page.glyphs[size_before:], self.page.cells[size_before:]
                continue
            last = kind
            if once or r.random() < 0.02:
                break

    def _running(self, spec: PageSpec, left: float, right: float) -> tuple[float, float]:
        """Running head and page number, drawn and left out; returns the top and bottom of the body."""
        r, s = self.rng, self.style
        top, bottom = r.uniform(3, 14 + spec.height / 20), spec.height - r.uniform(2, 10)
        size = max(9.0, s.size - r.uniform(1, 3))
        face = s.family[r.choice(["regular", "regular", "italic"])]
        if r.random() < 0.3:
            y = r.uniform(10, 22)
            words = " ".join(self.writer.title(r.randint(1, 5)))
            if self._width(words, face, size) < (right - left) * 0.7:
                at = r.choice([left, (left + right - self._width(words, face, size)) / 2])
                self.canvas.text(at, y, words, face, size, s.ink)
                if r.random() < 0.6:
                    number = str(r.randint(1, 999))
                    self.canvas.text(right - self._width(number, face, size), y, number, face, size, s.ink)
                if r.random() < 0.4:
                    self.canvas.line(left, y + 5, right, y + 5, s.ink)
                top = y + r.uniform(14, 26)
        if r.random() < 0.35:
            number = r.choice(["{}", "{}", "- {} -", "Page {}", "{} / 99"]).format(r.randint(1, 400))
            width = self._width(number, face, size)
            y = spec.height - r.uniform(6, 14)
            self.canvas.text(r.choice([(left + right - width) / 2, right - width]), y, number, face, size, s.ink)
            bottom = y - size - r.uniform(6, 14)
        return top, bottom

    def paint(self) -> Page:
        spec, r = self.spec, self.rng
        crop = spec.crop if spec.crop is not None else spec.height < 128
        names = ("paragraph", "heading", "list", "table", "formula", "figure")
        kinds = spec.kinds or (names[:5] if crop else names)
        chances = {"paragraph": 0.55, "heading": 0.17, "list": 0.14, "table": 0.11, "formula": 0.06, "figure": 0.03}
        weights = [chances[kind] for kind in kinds]
        if crop:
            left, right = r.uniform(1, 10), spec.width - r.uniform(1, 8)
            self._flow(Frame(left, right, r.uniform(0, 6), spec.height - 1), kinds, weights, once=spec.crop is True)
        else:
            left = r.uniform(4, 6 + spec.width / 14)
            right = spec.width - r.uniform(3, 5 + spec.width / 16)
            top, bottom = (r.uniform(2, 12), spec.height - 1.0)
            if spec.height >= 256:
                top, bottom = self._running(spec, left, right)
            columns = spec.columns or (2 if spec.width >= 320 and spec.height >= 160 and r.random() < 0.3 else 1)
            if columns == 2:
                self._two_columns(Frame(left, right, top, bottom), kinds, weights)
            else:
                self._flow(Frame(left, right, top, bottom), kinds, weights)
        self._resolve()
        image = self.canvas.image()
        degraded = spec.degraded if spec.degraded is not None else r.random() < 0.25
        self.page.image = degrade(image, r) if degraded else image
        return self.page

    def _two_columns(self, frame: Frame, kinds: Sequence[str], weights: Sequence[float]) -> None:
        r, s = self.rng, self.style
        top = frame.top
        if r.random() < 0.4:
            try:
                top = self._heading(frame, [], level=1) + s.leading * r.uniform(0.3, 1)
            except Full:
                top = frame.top
        gutter = r.uniform(14, 30)
        middle = (frame.left + frame.right) / 2
        self._flow(Frame(frame.left, middle - gutter / 2, top, self._end(frame)), kinds, weights)
        start = top if r.random() < 0.9 else top + r.uniform(0, 20)
        self._flow(Frame(middle + gutter / 2, frame.right, start, self._end(frame)), kinds, weights)

    def _end(self, frame: Frame) -> float:
        """Where a column ends: not always at the bottom."""
        r = self.rng
        short = self.spec.as_read and r.random() < 0.4
        return frame.bottom - (r.uniform(0.05, 0.5) * frame.height if short else 0.0)

    def _resolve(self) -> None:
        cells, following = self.page.cells, None
        for i in range(len(cells) - 1, -1, -1):
            if cells[i] == NEXT:
                cells[i] = following if following is not None else (cells[i - 1] if i else 0)
            else:
                following = cells[i]


def first_in_cells(values: Iterable[int], places: Iterable[int], cells: int, slots: int, empty: int) -> np.ndarray:
    """The first `slots` values of every cell in reading order, int64 (cells, slots); `empty` where there are fewer."""
    found = np.full((cells, slots), empty, np.int64)
    filled = np.zeros(cells, np.int64)
    for value, cell in zip(values, places, strict=True):
        if filled[cell] < slots:
            found[cell, filled[cell]] = value
            filled[cell] += 1
    return found


def dense_targets(page: Page, cells: int, slots: int) -> np.ndarray:
    """Classes of the first `slots` glyphs of every cell, int64 (cells, slots); 0 is empty."""
    return first_in_cells((GLYPH_CLASS[glyph] for glyph in page.glyphs), page.cells, cells, slots, 0)


__all__ = ["Page", "PageSpec", "dense_targets", "draw_page", "first_in_cells"]
