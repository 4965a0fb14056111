"""Display formulas: letters, numbers, Greek, indices, fractions, roots and sums, drawn and written down as LaTeX."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from training.canvas import TRAIN_FAMILIES
from training.pen import Frame, Full
from training.symbols import GLYPH_CLASS, GREEK
from training.tables import TablePen

_OPERATORS = {" + ": "+", " - ": "−", " = ": "=", " < ": "<", " \\cdot ": "·", " \\times ": "×"}
_SYMBOL_FACE = TRAIN_FAMILIES["dejavu-serif"]["regular"]  # not every family has Greek, sums and roots


@dataclass(frozen=True)
class _Part:
    """A piece of a formula: its size around the baseline, and what draws it at (x, baseline)."""

    width: float
    up: float
    down: float
    draw: Callable[[float, float], None]


class FormulaPen(TablePen):
    """A pen that also draws display formulas."""

    def _formula(self, frame: Frame, prefix: Sequence[str]) -> float:
        r, s = self.rng, self.style
        size = s.size * r.uniform(1.0, 1.25)
        part = self._equation(size)
        height = part.up + part.down + 4
        if part.width > frame.width or height > frame.height:
            raise Full
        left = frame.left + (frame.width - part.width) * r.choice([0.5, 0.5, 0.5, 0.1])
        self._mark([*prefix, "$$\n"])
        part.draw(left, frame.top + 2 + part.up)
        self._mark(["\n$$"], before=True)
        return frame.top + height

    def _equation(self, size: float) -> _Part:
        r = self.rng
        left = [self._atom(size, 0)] if r.random() < 0.6 else [self._letter(size), self._argument(size)]
        return self._row([*left, self._operator(" = ", size), self._sum(size, 0)])

    def _sum(self, size: float, depth: int) -> _Part:
        """Terms with operators between them."""
        r = self.rng
        parts = [self._term(size, depth)]
        for _ in range(r.choice([0, 1, 1, 2] if depth == 0 else [0, 0, 1])):
            sign = r.choice([" + ", " - ", " - ", " \\cdot ", " \\times ", " + "] if not self.pdf else [" + ", " + "])
            parts += [self._operator(sign, size), self._term(size, depth)]
        return self._row(parts)

    def _term(self, size: float, depth: int) -> _Part:
        r, u = self.rng, self.rng.random()
        if depth < 2 and u < 0.25 - 0.1 * depth:
            return self._fraction(self._sum(size * 0.9, depth + 1), self._sum(size * 0.9, depth + 1), size)
        if depth < 1 and u < 0.32 and not self.pdf:
            return self._root(self._sum(size, depth + 1), size)
        if depth < 1 and u < 0.42 and not self.pdf:
            return self._row([self._big_sum(size), self._atom(size, depth)])
        atoms = [self._atom(size, depth) for _ in range(r.choice([1, 1, 2]))]
        return self._row([self._number(size), *atoms] if r.random() < 0.25 else atoms)

    def _atom(self, size: float, depth: int) -> _Part:
        """A symbol, often with an index or a power."""
        r = self.rng
        if r.random() < 0.2:
            return self._number(size)
        parts = [self._greek(size) if r.random() < 0.3 and not self.pdf else self._letter(size)]
        small = max(size * 0.7, 8.0)
        u = r.random() if depth < 2 else 1.0
        if u < 0.3:
            parts.append(self._script("_", self._short(small), 0.22 * size))
        elif u < 0.55:
            parts.append(self._script("^", self._short(small), -0.4 * size))
        return self._row(parts)

    def _short(self, size: float) -> _Part:
        return self.rng.choice([self._number, self._letter])(size)

    # ---- pieces

    def _row(self, parts: Sequence[_Part]) -> _Part:
        def draw(x: float, y: float) -> None:
            for part in parts:
                part.draw(x, y)
                x += part.width

        return _Part(sum(p.width for p in parts), max(p.up for p in parts), max(p.down for p in parts), draw)

    def _written(self, text: str, face: str, size: float, space: float = 0.0) -> _Part:
        """Text that is written down as it is drawn."""
        width = self._width(text, face, size) + space

        def draw(x: float, y: float) -> None:
            self._draw(text, x, y, face, size)

        return _Part(width, 0.75 * size, 0.25 * size, draw)

    def _symbol(self, drawn: str, written: str, face: str, size: float, around: float = 0.0) -> _Part:
        """A sign with another name in LaTeX; `around` is the space left and right of it."""
        width = self._width(drawn, face, size)

        def draw(x: float, y: float) -> None:
            self.canvas.text(x + around, y, drawn, face, size, self.style.ink)
            cell = self._cell(x + around + width / 2, y - 0.3 * size)
            glyphs = [written] if written in GLYPH_CLASS else list(written)
            self.page.glyphs += glyphs
            self.page.cells += [cell] * len(glyphs)

        return _Part(width + 2 * around, 0.75 * size, 0.25 * size, draw)

    def _letter(self, size: float) -> _Part:
        letter = self.rng.choice("abcdefghijkmnpqrstuvwxyzABCDEFGKLMNPQRSTVXYZ")
        return self._written(letter, self.style.family["italic"], size, 0.08 * size)

    def _number(self, size: float) -> _Part:
        number = str(self.rng.choice([self.rng.randint(0, 9), self.rng.randint(1, 40)]))
        return self._written(number, self.style.family["regular"], size)

    def _argument(self, size: float) -> _Part:
        """A letter in brackets."""
        face = self.style.family["regular"]
        return self._row([self._written("(", face, size), self._letter(size), self._written(")", face, size)])

    def _greek(self, size: float) -> _Part:
        letter, name = self.rng.choice(list(GREEK.items()))
        return self._symbol(letter, name, _SYMBOL_FACE, size)

    def _operator(self, name: str, size: float) -> _Part:
        face = self.style.family["regular"] if self.pdf else _SYMBOL_FACE
        return self._symbol(_OPERATORS[name], name, face, size, 0.25 * size)

    def _braced(self, before: str, part: _Part) -> Callable[[float, float], None]:
        def draw(x: float, y: float) -> None:
            self._mark([f"{before}{{"])
            part.draw(x, y)
            self._mark("}", before=True)

        return draw

    def _script(self, mark: str, part: _Part, shift: float) -> _Part:
        draw = self._braced(mark, part)
        return _Part(part.width + 1, part.up - shift, part.down + shift, lambda x, y: draw(x, y + shift))

    def _fraction(self, top: _Part, bottom: _Part, size: float) -> _Part:
        width, axis = max(top.width, bottom.width) + 4, 0.3 * size
        upper, lower = self._braced("\\frac", top), self._braced("", bottom)

        def draw(x: float, y: float) -> None:
            upper(x + (width - top.width) / 2, y - axis - 2 - top.down)
            lower(x + (width - bottom.width) / 2, y - axis + 3 + bottom.up)
            self.canvas.line(x, y - axis, x + width - 2, y - axis, self.style.ink)

        up, down = top.up + top.down + axis + 2, bottom.up + bottom.down + 3 - axis
        return _Part(width + 2, up, down, draw)

    def _root(self, part: _Part, size: float) -> _Part:
        sign = self._width("√", _SYMBOL_FACE, size)
        inner = self._braced("\\sqrt", part)

        def draw(x: float, y: float) -> None:
            self.canvas.text(x, y, "√", _SYMBOL_FACE, size, self.style.ink)
            self.canvas.line(x + sign, y - part.up - 1, x + sign + part.width, y - part.up - 1, self.style.ink)
            inner(x + sign, y)

        return _Part(sign + part.width + 1, part.up + 2, part.down, draw)

    def _big_sum(self, size: float) -> _Part:
        """A sum sign with its limits below and above."""
        small = max(size * 0.65, 8.0)
        low = self._row([self._letter(small), self._operator(" = ", small), self._number(small)])
        high, sign = self._short(small), self._symbol("∑", "\\sum", _SYMBOL_FACE, size * 1.4)
        below, above = self._braced("_", low), self._braced("^", high)
        width = max(low.width, high.width, sign.width)

        def draw(x: float, y: float) -> None:
            sign.draw(x + (width - sign.width) / 2, y + 0.2 * size)
            below(x + (width - low.width) / 2, y + 0.55 * size + low.up)
            above(x + (width - high.width) / 2, y - 0.95 * size - high.down)
            self._mark(" ", before=True)

        return _Part(width + 2, 0.95 * size + high.up + high.down, 0.55 * size + low.up + low.down, draw)
