"""What OCR of a page will cost, before it is done: from its ink and from what earlier pages took."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

from hsdkit.documents import Page

#: What a usual server core takes, believed until the first page has shown what this one takes: seconds per megapixel to
#: find lines, per page for layout, per column of pixels (48 high) to read lines, to load the models.
_DETECT, _LAYOUT, _READ, _LOAD = 0.9, 0.4, 65e-6, 1.0

#: Pixel columns a character takes at a height of 48: about half its line's height.
_COLUMNS = 21
#: How much a new page counts against what was known.
_WEIGHT = 0.3


@dataclass
class OcrCost:
    """Rates are seconds of work on this machine, updated by every page; `characters` corrects the guess from ink."""

    threads: int
    layout: bool
    detect_side: int
    narrow: float
    _detect: float = _DETECT
    _layout: float = _LAYOUT
    _read: float = field(init=False)
    _columns: float = 1.0
    _load: float = _LOAD
    _ink: weakref.WeakKeyDictionary[Page, float] = field(default_factory=weakref.WeakKeyDictionary)

    def __post_init__(self) -> None:
        self._read = _READ / self.threads

    def expected(self, page: Page) -> float:
        columns = self._columns * self._guess(page)
        detect, layout = self._detect * self._megapixels(page), self._layout * self.layout
        finding = max(detect, layout) if self.threads > 1 else detect + layout
        return self._load + finding + self._read * columns

    def learn(self, page: Page, detect: float, layout: float, read: float, columns: int) -> None:
        """What a page took, in wall seconds, loading the models not counted; `columns` were read."""
        self._load = 0.0
        self._detect = _mixed(self._detect, detect / self._megapixels(page))
        if self.layout:
            self._layout = _mixed(self._layout, layout)
        if columns:
            self._read = _mixed(self._read, read / columns)
            self._columns = _mixed(self._columns, columns / max(1.0, self._guess(page)))

    def _megapixels(self, page: Page) -> float:
        scale = min(1.0, self.detect_side / max(page.width, page.height))
        return page.width * page.height * scale * scale / 1e6

    def _guess(self, page: Page) -> float:
        if page not in self._ink:
            from hsdkit.ink import characters_on

            self._ink[page] = characters_on(page.image)
        return self._ink[page] * _COLUMNS * self.narrow


def _mixed(old: float, new: float) -> float:
    return (1 - _WEIGHT) * old + _WEIGHT * new
