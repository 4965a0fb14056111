"""A page as blocks with boxes: what all formats of page output have in common.

A `Layout` spells blocks as one model does and reads them back. What lies between blocks and the regions of drafters is
here: which regions are written, boxes in the model's own units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from hsdkit.regions import Box, Format, Label, Region


@dataclass(frozen=True, slots=True)
class Block:
    """One element of a page output. `box` is in the units of the format (None where it is missing or broken), `text` as
    the model writes it in Markdown, `kind` the format's own word for its label ("" for drafts)."""

    label: Label
    text: str = ""
    box: Box | None = None
    level: int | None = None
    kind: str = ""


class Layout(Protocol):
    """A format of page output, declared as data and two pure functions.

    separator: what stands between two blocks. grid: boxes are written in 0..grid across and down; None when they are
    written in pixels of the image that the model sees.
    """

    @property
    def separator(self) -> str: ...

    @property
    def grid(self) -> int | None: ...

    def write(self, blocks: Sequence[Block]) -> tuple[str, ...]:
        """One string a block; joined by the separator they are the page. Blocks the format has no word for are left
        out."""
        ...

    def read(self, text: str) -> tuple[Block, ...] | None:
        """The blocks of an output, cut or broken ones mended as far as they can be read; None when the text is not of
        this format at all."""
        ...


#: Units of a format a page pixel, across and down.
Scale = tuple[float, float]


def page_drafts(
    regions: Sequence[Region],
    read: Mapping[int, str],
    render: Callable[[Region], str],
    layout: Layout | None,
    scale: Scale = (1.0, 1.0),
    size: tuple[float, float] = (1e6, 1e6),
) -> tuple[str, ...]:
    """The page's draft, one string a block, from a drafter's regions and what was read in their crops (by index). Boxes
    are cut at the page's `size`: no model writes any beyond it."""
    if layout is None:
        texts = (read.get(index) or render(r) for index, r in enumerate(regions) if r.readable)
        return tuple(filter(None, texts))
    blocks = [
        Block(
            r.label,
            _own(read[index], r, layout, render) if index in read else render(r),
            _scaled(r.box.clamped(*size), *scale),
            r.level,
        )
        for index, r in enumerate(regions)
    ]
    return layout.write(blocks)


def crop_draft(region: Region, text: str, layout: Layout) -> str:
    """The draft of a region's crop for a model that writes its format there too: one block that fills the crop."""
    grid = layout.grid or 0
    box = Box(0, 0, grid, grid) if grid else Box(0, 0, region.box.width, region.box.height)
    return layout.separator.join(layout.write([Block(region.label, text, box, region.level)])) if text else ""


def _own(text: str, region: Region, layout: Layout, render: Callable[[Region], str]) -> str:
    """What was read in a region's crop as text of a block: where it is in the format itself, what its blocks say; with
    the marks of headings and formulas that a page has, for crops are often read without."""
    if blocks := layout.read(text):
        return "\n".join(
            render(replace(region, label=b.label, text=content, format=format, level=_level(b)))
            for b in blocks
            for content, format in [_content(b)]
            if content
        )
    if region.label is Label.FORMULA:
        return render(replace(region, text=text, format="latex"))
    if region.label in (Label.TITLE, Label.HEADING) and not text.startswith("#"):
        return render(replace(region, text=text))
    return text


def page_regions(text: str, layout: Layout | None, scale: Scale = (1.0, 1.0)) -> tuple[Region, ...]:
    """The regions that an output names, boxes in page pixels; blocks without a box are left out."""
    blocks = (layout.read(text) or ()) if layout is not None else ()
    x, y = scale
    return tuple(
        Region(_scaled(b.box, 1 / x, 1 / y), b.label, *_content(b), _level(b))
        for b in blocks
        if b.box is not None and b.box.area > 0
    )


#: Words that formats use for labels, in the order they are looked for.
_WORDS = (
    ("caption", Label.CAPTION), ("figure_title", Label.CAPTION), ("footnote", Label.FOOTNOTE),
    ("page_number", Label.PAGE_NUMBER), ("header", Label.HEADER), ("footer", Label.FOOTER),
    ("sub_title", Label.HEADING), ("section", Label.HEADING), ("heading", Label.HEADING), ("title", Label.TITLE),
    ("table", Label.TABLE), ("formula", Label.FORMULA), ("equation", Label.FORMULA), ("list", Label.LIST),
    ("code", Label.CODE), ("algorithm", Label.CODE), ("reference", Label.REFERENCE), ("image", Label.FIGURE),
    ("picture", Label.FIGURE), ("figure", Label.FIGURE), ("chart", Label.FIGURE), ("number", Label.PAGE_NUMBER),
)  # fmt: skip


def stated_label(kind: str) -> Label:
    """The label that a model's own word for it means: `Section-header`, `sub_title`, `image_caption`, ..."""
    word = kind.lower().replace("-", "_").replace(" ", "_")
    if word.startswith("section"):
        return Label.HEADING
    return next((label for part, label in _WORDS if part in word), Label.TEXT)


def without_repeats(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks without those that say the same in the same place as the one before: a model that loops."""
    return tuple(b for i, b in enumerate(blocks) if i == 0 or b != blocks[i - 1])


def _content(block: Block) -> tuple[str, Format]:
    if block.label is Label.TABLE and "<t" in block.text:
        return block.text, "html"
    if block.label is Label.FORMULA:
        return bare_formula(block.text), "latex"
    if block.label in (Label.TITLE, Label.HEADING):
        return block.text.lstrip("#").strip(), "text"
    return block.text, "text"


def _level(block: Block) -> int | None:
    """The heading level that is stated, or that its marks say."""
    heading = block.label in (Label.TITLE, Label.HEADING)
    return block.level or (len(block.text) - len(block.text.lstrip("#")) or None if heading else None)


def bare_formula(text: str) -> str:
    """LaTeX without the delimiters around it."""
    text = text.strip()
    for before, after in (("$$", "$$"), (r"\[", r"\]"), (r"\(", r"\)"), ("$", "$")):
        if len(text) > len(before + after) and text.startswith(before) and text.endswith(after):
            return text[len(before) : -len(after)].strip()
    return text


def rounded(box: Box | None) -> Box:
    """The box with whole coordinates, as models write them; that of nothing is empty."""
    box = box or Box(0, 0, 0, 0)
    return Box(*(float(round(v)) for v in (box.x0, box.y0, box.x1, box.y1)))


def _scaled(box: Box, x: float, y: float) -> Box:
    return replace(box, x0=box.x0 * x, y0=box.y0 * y, x1=box.x1 * x, y1=box.y1 * y)
