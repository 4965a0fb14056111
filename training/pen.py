"""The pen every block is drawn with: it draws text and notes down, for every character, the cell it was drawn in."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from training.canvas import ALL_FAMILIES, PDF_FAMILIES, TRAIN_FAMILIES, TRAIN_WEIGHTS, Canvas, PdfCanvas, PilCanvas
from training.symbols import CELL
from training.words import Writer

NEXT = -1  # a markup symbol takes the cell of the glyph drawn after it


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
    as_read: bool = False  # text about 14 px high, as hsdkit scales pages for the model; else 10 to 16 px


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
class Frame:
    left: float
    right: float
    top: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top


@dataclass(frozen=True)
class Style:
    family: dict[str, str]
    size: float
    leading: float
    ink: int
    justified: bool
    indent: float  # first line of a paragraph
    gap: tuple[float, float]  # between blocks, in lines
    spread: float  # more room between the items of a list and the rows of a table


class Full(Exception):
    """The frame has no room for the block."""


class Pen:
    """One page under way: its canvas, its style, and what has been written down."""

    def __init__(self, spec: PageSpec, rng: random.Random) -> None:
        self.spec, self.rng = spec, rng
        # Random strings teach the most: nothing but their look tells what they are.
        shares = (0.35, 0.3, 0.2, 0.15) if spec.split == "held" else (0.25, 0.2, 0.25, 0.3)
        style = rng.choices(("prose", "plain", "mixed", "codes"), shares)[0]
        self.writer = Writer(rng, spec.split, style)
        self.grid = spec.width // CELL
        self.rows = spec.height // CELL
        self.page = Page(np.empty((0, 0), np.uint8))
        held = spec.split == "held" and spec.families is not None
        pdf = spec.pdf if spec.pdf is not None else (not held and spec.families is None and rng.random() < 0.2)
        self.canvas: Canvas = self._make_canvas(pdf)
        self.pdf = pdf
        self.style = self._make_style(pdf)

    def _make_canvas(self, pdf: bool) -> Canvas:
        spec, r = self.spec, self.rng
        self.background = 255
        if pdf:
            return PdfCanvas(spec.width, spec.height)
        self.background = r.randint(236, 255) if r.random() < 0.4 else 255
        u = r.random()
        if spec.as_read and u < 0.25:
            s = r.uniform(0.65, 0.95)  # small text, scaled up
            scale = (s, s)
        elif u < 0.4:
            scale = (1.0, 1.0)
        elif u < 0.65:
            scale = (2.0, 2.0)
        else:
            s = r.uniform(1.2, 2.2)
            scale = (s, s * r.uniform(0.95, 1.05))
        return PilCanvas(spec.width, spec.height, self.background, *scale)

    def _make_style(self, pdf: bool) -> Style:
        r, names = self.rng, self.spec.families
        if names is not None:
            name = r.choice(names)
        elif pdf:
            name = r.choice(tuple(PDF_FAMILIES))
        else:
            name = r.choices(tuple(TRAIN_FAMILIES), TRAIN_WEIGHTS)[0]
        if not self.spec.as_read:
            size = round(r.choice([r.uniform(10, 12.5), r.uniform(11, 14), r.uniform(12, 16)]) * 2) / 2
        elif r.random() < 0.88:
            size = round(r.triangular(12, 17, 14) * 2) / 2
        else:  # short texts, whose height cannot be measured
            size = round(r.uniform(10, 20) * 2) / 2
        indented = r.random() < 0.15
        airy = self.spec.as_read and r.random() < 0.35
        return Style(
            family=ALL_FAMILIES[name],
            size=size,
            leading=max(size * r.uniform(*((1.4, 1.9) if airy else (1.15, 1.5))), 12.5),
            ink=0 if r.random() < 0.4 else r.randint(0, 80),
            justified=r.random() < 0.3,
            indent=size * 1.4 if indented else 0.0,
            gap=(0.0, 0.2) if indented else (0.4, 1.8 if airy else 1.0),
            spread=r.uniform(0, 0.6) * size if airy else 0.0,
        )

    # ---- writing down what was drawn

    def _cell(self, x: float, y: float) -> int:
        row = min(max(int(y // CELL), 0), self.rows - 1)
        return row * self.grid + min(max(int(x // CELL), 0), self.grid - 1)

    def _mark(self, symbols: Sequence[str], before: bool = False) -> None:
        """Markup that is not drawn: it belongs to the next glyph, or with `before` to the last one."""
        cell = self.page.cells[-1] if before else NEXT
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
        frame: Frame,
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
        """Draws words as one logical line, wrapped; returns the new top. Raises Full when no line fits."""
        lines = self._wrap(words, (frame.width - indent, frame.width), face, size)
        fit = int(frame.height // leading)
        lines = lines[: min(fit, most)]
        if not lines:
            raise Full
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
