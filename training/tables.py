"""Tables: rows and columns of short texts, at most one merged cell, in several looks."""

from collections.abc import Sequence

from training.pen import Frame, Full, Pen


class TablePen(Pen):
    """A pen that draws tables."""

    def _table(self, frame: Frame, prefix: Sequence[str]) -> float:
        r, s = self.rng, self.style
        regular = s.family["regular"]
        size = s.size if r.random() < 0.7 else max(10.0, s.size - 1)
        row_height = max(size * 1.25, 13) + r.uniform(1, 7) + s.spread
        pad = r.uniform(3, 8)
        columns = r.randint(2, max(2, min(7, int(frame.width // 70))))
        rows = min(r.randint(2, 9), int((frame.height - 2) // row_height))
        if rows < 2 or frame.width < 60:
            raise Full
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
            raise Full
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
