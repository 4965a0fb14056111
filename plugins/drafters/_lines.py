"""Words to lines, and lines to running text: pure geometry and spelling, the same for text layers and OCR."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hsdkit.regions import Box, Label
from hsdkit.spelling import is_cjk, join_texts
from hsdkit.textlayer import Word

#: Widest gap inside a line in font sizes, between words that follow each other in the file, and between any others.
_GAP_FOLLOWING, _GAP_OTHER = 1.1, 0.45
#: The same after a list mark or section number, which often stand apart.
_GAP_MARK = 2.5
#: Some typesetters put this many times the space after a full stop.
_GAP_STOP = 1.6

#: What starts a list item or a numbered heading.
MARK = re.compile(r"[•‣◦▪●○■□►➢·*\-–—]$|\(?\d{1,3}[.)]$|\(?[a-z][.)]$|\(?[ivx]{1,5}[.)]$|\d{1,2}(\.\d{1,2}){0,4}\.?$")


@dataclass(frozen=True)
class Line:
    """Words on one baseline with nothing but spaces between them, in reading direction. `label` and `area` are the
    kind and box of the region a layout model puts it in."""

    words: tuple[Word, ...]
    label: Label | None = None
    area: Box | None = None

    @cached_property
    def box(self) -> Box:
        return bounding(w.box for w in self.words)

    @cached_property
    def _main(self) -> Word:
        """The longest word: what the line's font is."""
        return max(self.words, key=lambda w: len(w.text))

    @property
    def size(self) -> float:
        return self._main.size

    @property
    def baseline(self) -> float:
        return self._main.baseline

    @property
    def fonts(self) -> frozenset[str]:
        return frozenset(w.font for w in self.words)

    def share(self, test: str) -> float:
        """The part of the line's characters in words that are `bold`, `italic` or `mono`."""
        total = sum(len(w.text) for w in self.words)
        return sum(len(w.text) for w in self.words if getattr(w, test)) / total

    @cached_property
    def text(self) -> str:
        return join_words(self.words)


def bounding(boxes: Iterable[Box]) -> Box:
    """The smallest box around all of them (at least one)."""
    x0s, y0s, x1s, y1s = zip(*((b.x0, b.y0, b.x1, b.y1) for b in boxes), strict=True)
    return Box(min(x0s), min(y0s), max(x1s), max(y1s))


def overlap(box: Box, other: Box) -> float:
    """The part of `box` that lies in `other`."""
    x = min(box.x1, other.x1) - max(box.x0, other.x0)
    y = min(box.y1, other.y1) - max(box.y0, other.y0)
    return max(0.0, x) * max(0.0, y) / box.area if box.area else 0.0


def upright(word: Word, turn: int, width: float, height: float) -> Word:
    """The word on the page turned back, so that text of that `turn` runs from left to right."""
    box = turned_back(word.box, turn, width, height)
    baseline = (word.baseline, width - word.baseline, height - word.baseline, word.baseline)[turn]
    return replace(word, box=box, baseline=baseline, turn=0)


def turned_back(box: Box, turn: int, width: float, height: float) -> Box:
    """A box of a `width` x `height` page after the page is turned `turn` quarters counter-clockwise."""
    return (
        box,
        Box(box.y0, width - box.x1, box.y1, width - box.x0),
        Box(width - box.x1, height - box.y1, width - box.x0, height - box.y0),
        Box(height - box.y1, box.x0, height - box.y0, box.x1),
    )[turn]


def lines_of(words: Sequence[Word]) -> list[Line]:
    """Lines of upright words, by baseline and then by x. Columns and table cells become lines of their own."""
    rows: list[list[int]] = []
    for i in sorted(range(len(words)), key=lambda i: (words[i].baseline, words[i].box.x0)):
        if rows and words[i].baseline - words[rows[-1][0]].baseline <= 0.25 * min(
            words[i].size, words[rows[-1][0]].size
        ):
            rows[-1].append(i)
        else:
            rows.append([i])
    return [line for row in rows for line in _split(row, words)]


def settled(words: Sequence[Word]) -> list[Word]:
    """The words with an index or exponent put on the baseline of the word beside it."""
    baselines = [w.baseline for w in words]
    for order in (range(1, len(words)), range(len(words) - 2, -1, -1)):
        for i in order:
            beside = i - order.step
            if baselines[i] == words[i].baseline and _is_index(words[i], words[beside], baselines[beside]):
                baselines[i] = baselines[beside]
    return [w if w.baseline == y else replace(w, baseline=y) for w, y in zip(words, baselines, strict=True)]


def _is_index(small: Word, big: Word, baseline: float) -> bool:
    lifted = baseline - 0.8 * big.size < small.baseline < baseline + 0.4 * big.size
    apart = max(small.box.x0 - big.box.x1, big.box.x0 - small.box.x1)
    # A neighbour that has taken another's baseline is an index too: what stands at its height goes with it.
    return lifted and apart < 0.5 * big.size and (small.size < 0.85 * big.size or big.baseline != baseline)


def _split(row: list[int], words: Sequence[Word]) -> list[Line]:
    row = sorted(row, key=lambda i: (words[i].box.x0, i))
    runs = [[row[0]]]
    for before, i in itertools.pairwise(row):
        size = max(words[before].size, words[i].size)
        gap = words[i].box.x0 - max(words[k].box.x1 for k in runs[-1])
        limit = _GAP_FOLLOWING if abs(i - before) == 1 else _GAP_OTHER
        if len(runs[-1]) == 1 and MARK.match(words[before].text) and words[i].text[0].isalpha():
            limit = _GAP_MARK
        elif words[before].text[-1] in ".:":
            limit *= _GAP_STOP
        if gap > limit * size or (abs(i - before) > 1 and gap < -0.5 * size):
            runs.append([])
        runs[-1].append(i)
    return [Line(tuple(_in_direction([words[i] for i in run]))) for run in runs]


def _in_direction(words: list[Word]) -> list[Word]:
    letters = [unicodedata.bidirectional(ch) for w in words for ch in w.text if ch.isalpha()]
    return words[::-1] if sum(d in ("R", "AL") for d in letters) > len(letters) / 2 else words


def join_words(words: Sequence[Word]) -> str:
    """The text of words on one line. Chinese and Japanese get no spaces."""
    text = words[0].text
    for before, word in itertools.pairwise(words):
        close = word.box.x0 - before.box.x1 < 0.5 * word.size
        text += word.text if word.glued or (close and is_cjk(text[-1]) and is_cjk(word.text[0])) else f" {word.text}"
    return text


def join_lines(lines: Sequence[Line]) -> str:
    """A paragraph as one line of text, words that were broken at a line's end made whole."""
    return join_texts(*(line.text for line in lines)).replace("\u00ad", "")
