"""Draws one page and writes down its Markdown, with the cell of the page every character of it was drawn in.

The layout is known because we make it: blocks flow down one or two columns; running heads, page numbers and figure
boxes are drawn but not written down.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from training.canvas import (
    ALL_FAMILIES,
    HELD_FAMILIES,
    PDF_FAMILIES,
    TRAIN_FAMILIES,
    TRAIN_WEIGHTS,
    Canvas,
    PdfCanvas,
    PilCanvas,
)
from training.degrade import degrade
from training.symbols import CELL, GLYPH_CLASS
from training.words import Writer

_NEXT = -1  # a markup symbol takes the cell of the glyph drawn after it


@dataclass(frozen=True)
class PageSpec:
    """What to draw. Sizes are pixels and multiples of 16; `None` leaves a choice to the generator."""

    width: int
    height: int
    split: str = "train"
    families: tuple[str, ...] | None = None
    kinds: tuple[str, ...] | None = None  # of "paragraph", "heading", "list", "table", "figure"
    columns: int | None = None
    degraded: bool | None = None
    pdf: bool | None = None
    crop: bool | None = None  # one block, narrow margins


@dataclass
class Page:
    """`image` is uint8 (height, width). `glyphs[i]` is a character or a tag, drawn in cell `cells[i]` (row-major)."""

    image: np.ndarray
    glyphs: list[str] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.glyphs)


@dataclass(frozen=True)
class _Frame:
    left: float
    right: float
    top: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left


@dataclass(frozen=True)
class _Style:
    family: dict[str, str]
    size: float
    leading: float
    ink: int
    justified: bool
    indent: float  # first line of a paragraph
    gap: tuple[float, float]  # between blocks, in lines


class _Full(Exception):
    """The frame has no room for the block."""


def draw_page(spec: PageSpec, rng: random.Random) -> Page:
    """Draws a page; the same spec and generator state give the same page. It may be empty if nothing fitted."""
    return _Painter(spec, rng).paint()


class _Painter:
    def __init__(self, spec: PageSpec, rng: random.Random) -> None:
        self.spec, self.rng = spec, rng
        style = rng.choices(("prose", "plain", "mixed", "codes"), (0.35, 0.3, 0.2, 0.15))[0]
        self.writer = Writer(rng, spec.split, style)
        self.grid = spec.width // CELL
        self.rows = spec.height // CELL
        self.page = Page(np.empty((0, 0), np.uint8))
        held = spec.split == "held" and spec.families is not None
        pdf = spec.pdf if spec.pdf is not None else (not held and spec.families is None and rng.random() < 0.2)
        self.canvas: Canvas = self._make_canvas(pdf)
        self.pdf = pdf
        self.style = self._make_style(pdf)

    # ---- choices

    def _make_canvas(self, pdf: bool) -> Canvas:
        spec, r = self.spec, self.rng
        self.background = 255
        if pdf:
            return PdfCanvas(spec.width, spec.height)
        self.background = r.randint(236, 255) if r.random() < 0.4 else 255
        u = r.random()
        if u < 0.4:
            scale = (1.0, 1.0)
        elif u < 0.65:
            scale = (2.0, 2.0)
        else:
            s = r.uniform(1.2, 2.2)
            scale = (s, s * r.uniform(0.95, 1.05))
        return PilCanvas(spec.width, spec.height, self.background, *scale)

    def _make_style(self, pdf: bool) -> _Style:
        r, names = self.rng, self.spec.families
        if names is not None:
            name = r.choice(names)
        elif pdf:
            name = r.choice(tuple(PDF_FAMILIES))
        else:
            name = r.choices(tuple(TRAIN_FAMILIES), TRAIN_WEIGHTS)[0]
        size = round(r.choice([r.uniform(10, 12.5), r.uniform(11, 14), r.uniform(12, 16)]) * 2) / 2
        indented = r.random() < 0.15
        return _Style(
            family=ALL_FAMILIES[name],
            size=size,
            leading=max(size * r.uniform(1.15, 1.5), 12.5),
            ink=0 if r.random() < 0.4 else r.randint(0, 80),
            justified=r.random() < 0.3,
            indent=size * 1.4 if indented else 0.0,
            gap=(0.0, 0.2) if indented else (0.4, 1.0),
        )

    # ---- writing down what was drawn

    def _cell(self, x: float, y: float) -> int:
        row = min(max(int(y // CELL), 0), self.rows - 1)
        return row * self.grid + min(max(int(x // CELL), 0), self.grid - 1)

    def _mark(self, symbols: Sequence[str], before: bool = False) -> None:
        """Markup that is not drawn: it belongs to the next glyph, or with `before` to the last one."""
        cell = self.page.cells[-1] if before else _NEXT
        self.page.glyphs += symbols
        self.page.cells += [cell] * len(symbols)

    def _width(self, text: str, face: str, size: float) -> float:
        return sum(self.canvas.advance(text, face, size))

    def _draw(self, text: str, x: float, baseline: float, face: str, size: float, ink: int | None = None) -> float:
        """Draws `text`, notes every character's cell, returns the end x."""
        self.canvas.text(x, baseline, text, face, size, self.style.ink if ink is None else ink)
        middle = baseline - 0.3 * size
        for c, advance in zip(text, self.canvas.advance(text, face, size), strict=True):
            self.page.glyphs.append(c)
            self.page.cells.append(self._cell(x + advance / 2, middle))
            x += advance
        return x

    def _draw_line(
        self, words: list[str], x: float, baseline: float, face: str, size: float, right: float | None
    ) -> None:
        """One line of words; with `right` the spaces are stretched to end there."""
        text = " ".join(words)
        if right is None or len(words) < 2:
            self._draw(text, x, baseline, face, size)
            return
        stretch = (right - x - self._width(text, face, size)) / (len(words) - 1)
        space = self._width(" ", face, size)
        for i, word in enumerate(words):
            if i:
                self.page.glyphs.append(" ")
                self.page.cells.append(self._cell(x + (space + stretch) / 2, baseline - 0.3 * size))
                x += space + stretch
            x = self._draw(word, x, baseline, face, size)

    def _wrap(self, words: list[str], widths: tuple[float, float], face: str, size: float) -> list[list[str]]:
        """Breaks words into lines; `widths` are those of the first and of later lines. Too long words are dropped."""
        lines: list[list[str]] = []
        line: list[str] = []
        used = 0.0
        space = self._width(" ", face, size)
        for word in words:
            need = self._width(word, face, size)
            room = widths[0] if not lines else widths[1]
            if line and used + space + need <= room:
                line.append(word)
                used += space + need
                continue
            if need > min(widths):
                continue
            if line:
                lines.append(line)
            line, used = [word], need
        if line:
            lines.append(line)
        return lines

    def _text_block(
        self,
        words: list[str],
        frame: _Frame,
        prefix: Sequence[str],
        face: str,
        size: float,
        leading: float,
        *,
        most: int = 99,
        indent: float = 0.0,
        centred: bool = False,
        justified: bool = False,
    ) -> float:
        """Draws words as one logical line, wrapped; returns the new top. Raises _Full when no line fits."""
        lines = self._wrap(words, (frame.width - indent, frame.width), face, size)
        fit = int((frame.bottom - frame.top) // leading)
        lines = lines[: min(fit, most)]
        if not lines:
            raise _Full
        y = frame.top
        for i, line in enumerate(lines):
            self._mark(prefix if i == 0 else [" "])
            x = frame.left + (indent if i == 0 else 0)
            if centred:
                x = frame.left + (frame.width - self._width(" ".join(line), face, size)) / 2
            stretch = justified and i < len(lines) - 1
            self._draw_line(line, x, y + leading / 2 + size * 0.35, face, size, frame.right if stretch else None)
            y += leading
        return y

    # ---- blocks

    def _paragraph(self, frame: _Frame, prefix: Sequence[str]) -> float:
        r, s = self.rng, self.style
        face = s.family["regular"]
        if r.random() < 0.06:
            face = s.family[r.choice(["bold", "italic", "italic"])]
        most = r.choice([1, 2, 3, 4, 5, 6, 8, 12])
        count = int(most * frame.width / (s.size * 2.2)) + 2
        words = self.writer.prose(r.randint(max(1, count // 2), count))
        return self._text_block(
            words, frame, prefix, face, s.size, s.leading, most=most, indent=s.indent, justified=s.justified
        )

    def _heading(self, frame: _Frame, prefix: Sequence[str], level: int | None = None) -> float:
        r, s = self.rng, self.style
        level = level or r.choices((1, 2, 3), (0.3, 0.45, 0.25))[0]
        factor = {1: r.uniform(1.7, 2.0), 2: r.uniform(1.3, 1.5), 3: r.uniform(1.05, 1.15)}[level]
        size = round(s.size * factor * 2) / 2
        words = self.writer.title(r.randint(1, 6))
        return self._text_block(
            words,
            frame,
            [*prefix, *"#" * level, " "],
            s.family["bold"],
            size,
            size * 1.3,
            most=2,
            centred=level == 1 and r.random() < 0.3,
        )

    def _list(self, frame: _Frame, prefix: Sequence[str]) -> float:
        r, s = self.rng, self.style
        face = s.family["regular"]
        numbered = r.random() < 0.4
        start = 1 if r.random() < 0.85 else r.randint(2, 30)
        bullets = r.sample(["•", "-", "–", "*", "•"], 2)
        suffix = r.choice([".", ".", ")"])
        base = r.uniform(0, s.size * 1.2)
        step = r.uniform(s.size * 1.2, s.size * 2)
        y, number, nested, spread = frame.top, start, False, r.uniform(0, 3)
        for item in range(r.randint(2, 7)):
            nested = item > 0 and r.random() < (0.45 if nested else 0.15)
            if nested or not numbered:
                drawn, written = bullets[int(nested)], "- "
            else:
                drawn, written = f"{number}{suffix}", f"{number}. "
            x = frame.left + base + (step if nested else 0)
            body = x + max(self._width(drawn, face, s.size) + r.uniform(3, 6), step * 0.7)
            inner = _Frame(body, frame.right, y, frame.bottom)
            words = self.writer.sentence(r.randint(1, 9))
            if inner.bottom - y < s.leading or not self._wrap(words[:1], (inner.width, inner.width), face, s.size):
                if item == 0:
                    raise _Full
                break
            baseline = y + s.leading / 2 + s.size * 0.35
            mark = prefix if item == 0 else ["\n"]
            self._mark([*mark, *("  " if nested else "")])
            if nested or not numbered:
                self.canvas.text(x, baseline, drawn, face, s.size, s.ink)
                self._mark(written)
            else:
                end = self._draw(f"{number}", x, baseline, face, s.size)
                self.canvas.text(end, baseline, suffix, face, s.size, s.ink)
                self._mark(". ", before=True)
                number += 1
            y = self._text_block(words, inner, [], face, s.size, s.leading, most=3) + spread
        return y

    def _table(self, frame: _Frame, prefix: Sequence[str]) -> float:
        r, s = self.rng, self.style
        regular = s.family["regular"]
        size = s.size if r.random() < 0.7 else max(10.0, s.size - 1)
        row_height = max(size * 1.25, 13) + r.uniform(1, 7)
        pad = r.uniform(3, 8)
        columns = r.randint(2, max(2, min(7, int(frame.width // 70))))
        rows = min(r.randint(2, 9), int((frame.bottom - frame.top - 2) // row_height))
        if rows < 2 or frame.width < 60:
            raise _Full
        most = frame.width / columns - 2 * pad - 2
        kinds = [r.random() < 0.5 for _ in range(columns)]  # a column of numbers, or of words
        header = r.random() < 0.6
        texts = [
            [self._cell_text(most, regular, size, kinds[j] and not (header and i == 0)) for j in range(columns)]
            for i in range(rows)
        ]
        bold = s.family["bold"]
        widths = [max(self._width(row[j], bold, size) for row in texts) + 2 * pad + 1 for j in range(columns)]
        slack = max(0.0, frame.width - sum(widths)) / columns * r.choice([0, r.random(), 1])
        edges = [frame.left]
        for w in widths:
            edges.append(edges[-1] + w + slack)
        if edges[-1] > frame.right + 1:
            raise _Full
        spans = self._spans(rows, columns)
        look = r.choice(["grid", "grid", "rules", "three", "bare", "zebra"])
        top, bottom = frame.top + 1, frame.top + 1 + rows * row_height
        shade = r.randint(205, 240)
        for i in range(rows):
            if (look == "zebra" and i % 2) or (header and i == 0 and look in ("grid", "zebra") and r.random() < 0.4):
                y = top + i * row_height
                self.canvas.box(edges[0], y, edges[-1], y + row_height, shade, None)
        self._mark([*prefix, "<table>"])
        hidden: set[tuple[int, int]] = set()
        for i, row in enumerate(texts):
            self._mark(["<tr>"])
            face = bold if header and i == 0 else regular
            for j, text in enumerate(row):
                if (i, j) in hidden:
                    continue
                down, across = spans.get((i, j), (1, 1))
                hidden |= {(i + a, j + b) for a in range(down) for b in range(across)} - {(i, j)}
                tag = f'<td colspan="{across}">' if across > 1 else f'<td rowspan="{down}">' if down > 1 else "<td>"
                left, right = edges[j], edges[j + across]
                width = self._width(text, face, size)
                x = left + pad
                if (kinds[j] and i) or across > 1:
                    x = right - pad - width if across == 1 else (left + right - width) / 2
                baseline = top + (i + down / 2) * row_height + size * 0.35
                self._mark([tag])
                self._draw(text, x, baseline, face, size)
                self._mark(["</td>"], before=True)
            self._mark(["</tr>"], before=True)
        self._mark(["</table>"], before=True)
        self._rules(look, edges, [top + i * row_height for i in range(rows + 1)], spans)
        return bottom + 2

    def _cell_text(self, most: float, face: str, size: float, number: bool) -> str:
        r = self.rng
        text = self.writer.number() if number else self.writer.word()
        if not number and r.random() < 0.4:
            text += " " + self.writer.word()
        while text and self._width(text, face, size) * 1.08 > most:
            text = text[:-1]
        return text.strip() or r.choice("0123456789")

    def _spans(self, rows: int, columns: int) -> dict[tuple[int, int], tuple[int, int]]:
        """At most one merged cell: (row, column) to (rows, columns) it covers."""
        r = self.rng
        if columns < 3 or rows < 3 or r.random() > 0.2:
            return {}
        if r.random() < 0.6:
            across = r.randint(2, 3)
            return {(r.choice([0, 0, r.randrange(rows)]), r.randint(0, columns - across)): (1, across)}
        return {(r.randrange(1, rows - 1), 0): (2, 1)}

    def _rules(
        self, look: str, xs: list[float], ys: list[float], spans: dict[tuple[int, int], tuple[int, int]]
    ) -> None:
        grey = min(200, self.style.ink + self.rng.randint(0, 90))
        covered = {
            ("h" if down > 1 else "v", i + down - 1 if down > 1 else i, j + k if down == 1 else j)
            for (i, j), (down, across) in spans.items()
            for k in range(1, max(across, 2))
        }
        if look in ("grid", "rules", "three"):
            for i, y in enumerate(ys):
                if look == "three" and 1 < i < len(ys) - 1:
                    continue
                for j in range(len(xs) - 1):
                    if ("h", i, j) not in covered:
                        self.canvas.line(xs[j], y, xs[j + 1], y, grey)
        if look == "grid":
            for j, x in enumerate(xs):
                for i in range(len(ys) - 1):
                    if ("v", i, j) not in covered:
                        self.canvas.line(x, ys[i], x, ys[i + 1], grey)

    def _figure(self, frame: _Frame, prefix: Sequence[str]) -> float:
        """A box with lines in it, not written down; its caption is a paragraph."""
        r, s = self.rng, self.style
        height = r.uniform(40, 140)
        if frame.bottom - frame.top < height + 2 * s.leading:
            raise _Full
        width = frame.width * r.uniform(0.4, 1)
        left = frame.left + (frame.width - width) * r.choice([0, 0.5])
        top, bottom = frame.top + 2, frame.top + height
        fill = r.choice([None, r.randint(120, 235)])
        self.canvas.box(left, top, left + width, bottom, fill, r.randint(0, 150))
        for _ in range(r.randint(0, 8)):
            xs = [left + width * r.random() for _ in range(2)]
            ys = [top + (height - 2) * r.random() for _ in range(2)]
            self.canvas.line(xs[0], ys[0], xs[1], ys[1], r.randint(0, 200))
        inner = _Frame(frame.left, frame.right, bottom + 4, frame.bottom)
        label = [r.choice(["Figure", "Fig."]), f"{r.randint(1, 30)}{r.choice('.:')}"]
        words = label + self.writer.sentence(r.randint(2, 9))
        return self._text_block(words, inner, prefix, s.family["regular"], s.size, s.leading, most=2)

    # ---- the page

    def _flow(self, frame: _Frame, kinds: Sequence[str], weights: Sequence[float], once: bool = False) -> None:
        """Fills a frame with blocks from top to bottom."""
        r, s = self.rng, self.style
        blocks = {
            "paragraph": self._paragraph,
            "heading": self._heading,
            "list": self._list,
            "table": self._table,
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
                y = blocks[kind](_Frame(frame.left, frame.right, y + gap, frame.bottom), prefix)
            except _Full:
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
        names = ("paragraph", "heading", "list", "table", "figure")
        kinds = spec.kinds or (names[:4] if crop else names)
        chances = {"paragraph": 0.55, "heading": 0.17, "list": 0.14, "table": 0.11, "figure": 0.03}
        weights = [chances[kind] for kind in kinds]
        if crop:
            left, right = r.uniform(1, 10), spec.width - r.uniform(1, 8)
            self._flow(_Frame(left, right, r.uniform(0, 6), spec.height - 1), kinds, weights, once=spec.crop is True)
        else:
            left = r.uniform(4, 6 + spec.width / 14)
            right = spec.width - r.uniform(3, 5 + spec.width / 16)
            top, bottom = (r.uniform(2, 12), spec.height - 1.0)
            if spec.height >= 256:
                top, bottom = self._running(spec, left, right)
            columns = spec.columns or (2 if spec.width >= 320 and spec.height >= 160 and r.random() < 0.3 else 1)
            if columns == 2:
                self._two_columns(_Frame(left, right, top, bottom), kinds, weights)
            else:
                self._flow(_Frame(left, right, top, bottom), kinds, weights)
        self._resolve()
        image = self.canvas.image()
        degraded = spec.degraded if spec.degraded is not None else r.random() < 0.25
        self.page.image = degrade(image, r) if degraded else image
        return self.page

    def _two_columns(self, frame: _Frame, kinds: Sequence[str], weights: Sequence[float]) -> None:
        r, s = self.rng, self.style
        top = frame.top
        if r.random() < 0.4:
            try:
                top = self._heading(frame, [], level=1) + s.leading * r.uniform(0.3, 1)
            except _Full:
                top = frame.top
        gutter = r.uniform(14, 30)
        middle = (frame.left + frame.right) / 2
        self._flow(_Frame(frame.left, middle - gutter / 2, top, frame.bottom), kinds, weights)
        start = top if r.random() < 0.9 else top + r.uniform(0, 20)
        self._flow(_Frame(middle + gutter / 2, frame.right, start, frame.bottom), kinds, weights)

    def _resolve(self) -> None:
        cells, following = self.page.cells, None
        for i in range(len(cells) - 1, -1, -1):
            if cells[i] == _NEXT:
                cells[i] = following if following is not None else (cells[i - 1] if i else 0)
            else:
                following = cells[i]


def dense_targets(page: Page, cells: int, slots: int) -> np.ndarray:
    """Classes of the first `slots` glyphs of every cell in reading order, int64 (cells, slots); 0 is empty."""
    targets = np.zeros((cells, slots), np.int64)
    filled = np.zeros(cells, np.int64)
    for glyph, cell in zip(page.glyphs, page.cells, strict=True):
        if filled[cell] < slots:
            targets[cell, filled[cell]] = GLYPH_CLASS[glyph]
            filled[cell] += 1
    return targets


__all__ = ["HELD_FAMILIES", "Page", "PageSpec", "dense_targets", "draw_page"]
