"""Paragraphs, headings, lists, figures: a block draws itself at the top of a frame and returns the new top."""

from collections.abc import Sequence

from training.formulas import FormulaPen
from training.pen import Frame, Full


class BlockPen(FormulaPen):
    """A pen that draws every kind of block. Each raises Full, drawing nothing, when the frame has no room."""

    def _paragraph(self, frame: Frame, prefix: Sequence[str]) -> float:
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

    def _heading(self, frame: Frame, prefix: Sequence[str], level: int | None = None) -> float:
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

    def _list(self, frame: Frame, prefix: Sequence[str]) -> float:
        r, s = self.rng, self.style
        face = s.family["regular"]
        numbered = r.random() < 0.4
        start = 1 if r.random() < 0.85 else r.randint(2, 30)
        bullets = r.sample(["•", "-", "–", "*", "•"], 2)
        suffix = r.choice([".", ".", ")"])
        base = r.uniform(0, s.size * 1.2)
        step = r.uniform(s.size * 1.2, s.size * 2)
        y, number, nested, spread = frame.top, start, False, r.uniform(0, 3) + s.spread
        for item in range(r.randint(2, 7)):
            nested = item > 0 and r.random() < (0.45 if nested else 0.15)
            if nested or not numbered:
                drawn, written = bullets[int(nested)], "- "
            else:
                drawn, written = f"{number}{suffix}", f"{number}. "
            x = frame.left + base + (step if nested else 0)
            body = x + max(self._width(drawn, face, s.size) + r.uniform(3, 6), step * 0.7)
            inner = Frame(body, frame.right, y, frame.bottom)
            words = self.writer.sentence(r.randint(1, 9))
            if inner.bottom - y < s.leading or not self._wrap(words[:1], (inner.width, inner.width), face, s.size):
                if item == 0:
                    raise Full
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

    def _figure(self, frame: Frame, prefix: Sequence[str]) -> float:
        """A box with lines in it, not written down; its caption is a paragraph."""
        r, s = self.rng, self.style
        height = r.uniform(40, 140)
        if frame.height < height + 2 * s.leading:
            raise Full
        width = frame.width * r.uniform(0.4, 1)
        left = frame.left + (frame.width - width) * r.choice([0, 0.5])
        top, bottom = frame.top + 2, frame.top + height
        fill = r.choice([None, r.randint(120, 235)])
        self.canvas.box(left, top, left + width, bottom, fill, r.randint(0, 150))
        for _ in range(r.randint(0, 8)):
            xs = [left + width * r.random() for _ in range(2)]
            ys = [top + (height - 2) * r.random() for _ in range(2)]
            self.canvas.line(xs[0], ys[0], xs[1], ys[1], r.randint(0, 200))
        inner = Frame(frame.left, frame.right, bottom + 4, frame.bottom)
        label = [r.choice(["Figure", "Fig."]), f"{r.randint(1, 30)}{r.choice('.:')}"]
        words = label + self.writer.sentence(r.randint(2, 9))
        return self._text_block(words, inner, prefix, s.family["regular"], s.size, s.leading, most=2)
