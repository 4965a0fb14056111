"""What a drafter says about a page: boxes, labels, rough text. Knows nothing of PDFs, models or plugins."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Label(StrEnum):
    """One label set for all drafters; adapters map their own labels onto it."""

    TITLE = "title"
    HEADING = "heading"
    TEXT = "text"
    LIST = "list"
    TABLE = "table"
    FORMULA = "formula"
    FIGURE = "figure"
    CAPTION = "caption"
    CODE = "code"
    FOOTNOTE = "footnote"
    REFERENCE = "reference"
    HEADER = "header"
    FOOTER = "footer"
    PAGE_NUMBER = "page_number"
    OTHER = "other"


#: Labels that document parsers leave out of their Markdown: never drafted, never cropped.
OMITTED = frozenset({Label.HEADER, Label.FOOTER, Label.PAGE_NUMBER, Label.FIGURE})

#: How `Region.text` is written: plain text, an HTML table, or LaTeX without delimiters.
Format = Literal["text", "html", "latex"]


@dataclass(frozen=True, slots=True)
class Box:
    """Axis-aligned box in page pixels, origin top left, `x1` and `y1` exclusive."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        return max(0.0, self.x1 - self.x0)

    @property
    def height(self) -> float:
        return max(0.0, self.y1 - self.y0)

    @property
    def area(self) -> float:
        return self.width * self.height

    def grown(self, by: float) -> Box:
        return Box(self.x0 - by, self.y0 - by, self.x1 + by, self.y1 + by)

    def clamped(self, width: float, height: float) -> Box:
        """The part inside a `width` x `height` page; has zero area when the box lies outside."""
        x0, y0 = min(max(self.x0, 0.0), width), min(max(self.y0, 0.0), height)
        return Box(x0, y0, min(max(self.x1, x0), width), min(max(self.y1, y0), height))


@dataclass(frozen=True, slots=True)
class Region:
    """One layout element with its draft text.

    `text` holds a paragraph as one line; a LIST holds one item a line, each with its mark (`- `, `1. `; nested items
    are indented by two spaces); a TABLE with `format="html"` holds `<table><tr><td>..</td></tr></table>`; a FORMULA
    with `format="latex"` has no delimiters. `level` is the heading level (1 to 6) where the drafter knows it. `score`
    is the drafter's confidence in 0..1 where it has one.
    """

    box: Box
    label: Label
    text: str = ""
    format: Format = "text"
    level: int | None = None
    score: float | None = None

    @property
    def readable(self) -> bool:
        """Whether a document parser would write this region down and there is draft text for it."""
        return self.label not in OMITTED and bool(self.text.strip())


@dataclass(frozen=True, slots=True)
class Draft:
    """A page as a drafter sees it: regions in reading order.

    `seconds` is the wall time the drafter took; `notes` say in plain words what a user should know (why a text layer
    was refused, which drafter `auto` chose).
    """

    regions: tuple[Region, ...] = ()
    drafter: str = "none"
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def readable(self) -> tuple[Region, ...]:
        return tuple(r for r in self.regions if r.readable)
