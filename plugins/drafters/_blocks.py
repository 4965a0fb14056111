"""Lines in reading order to regions: paragraphs, headings, lists, captions, footnotes, code."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hsdkit_plugins.drafters._formulas import formulas_whole
from hsdkit_plugins.drafters._lines import Line, bounding, join_lines

from hsdkit.regions import Box, Label, Region

_BULLET = re.compile(r"([•‣◦▪●○■□►➢·*\-–—])\s+(?=\S)")
_NUMBER = re.compile(r"(\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)])\s+(?=\S)")
_SECTION = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,4})\.?\s+\S")
_CAPTION = re.compile(r"(figure|fig\.|table|tab\.|scheme|chart|abbildung|abb\.|tabelle|tableau|图|表|図)\s*\d", re.I)
_REFERENCE = re.compile(r"\[\d{1,3}\]\s")
#: A rule drawn with characters.
_ORNAMENT = re.compile(r"([.·_*=~\-–—\s])\1{4,}")
_END = tuple(".!?:;。！？：；")

#: Heading level by size relative to the body text; the second number is for text that is not bold on a page where some
#: is (a name or a date under the title is larger, too).
_LEVELS = ((1.4, 1.4, 1), (1.14, 1.3, 2))


@dataclass
class Block:
    """Lines that belong together; `mark` is the list mark or reference number they start with."""

    lines: list[Line]
    mark: str = ""
    indent: float = 0.0
    boxes: list[Box] = field(default_factory=list)

    @property
    def box(self) -> Box:
        return bounding(line.box for line in self.lines)

    @property
    def label(self) -> Label | None:
        return self.lines[0].label

    @property
    def size(self) -> float:
        return max(self.lines, key=lambda line: len(line.text)).size

    def share(self, test: str) -> float:
        return sum(line.share(test) for line in self.lines) / len(self.lines)


@dataclass(frozen=True, slots=True)
class Body:
    """What is normal on this page: the size of most characters, the distance of lines in sizes, whether any is bold."""

    size: float
    leading: float
    has_bold: bool = False
    font: str = ""


def body_of(lines: Sequence[Line]) -> Body:
    sizes: Counter[float] = Counter()
    fonts: Counter[str] = Counter()
    for line in lines:
        sizes[round(line.size, 1)] += len(line.text)
        fonts.update({word.font: len(word.text) for word in line.words})
    size = sizes.most_common(1)[0][0]
    steps = [
        (b.baseline - a.baseline) / a.size
        for a, b in itertools.pairwise(lines)
        if abs(a.size - b.size) < 0.05 * a.size and 0.8 * a.size < b.baseline - a.baseline < 2.2 * a.size
    ]
    leading = sorted(steps)[len(steps) // 2] if steps else 1.2
    return Body(size, leading, any(line.share("bold") > 0.9 for line in lines), fonts.most_common(1)[0][0])


def blocks_of(lines: Sequence[Line], body: Body) -> list[Block]:
    """Lines in reading order cut where a new paragraph, item or heading starts."""
    blocks: list[Block] = []
    lines = [line for line in lines if not _ORNAMENT.fullmatch(line.text)]
    for k, line in enumerate(lines):
        before = blocks[-1] if blocks else None
        mark = _mark(line)
        if (
            before is None
            or _apart(before, line, body)
            or _starts_paragraph(before, line, lines[k + 1 : k + 2])
            or (mark and _starts_item(before, line, mark))
        ):
            blocks.append(Block([line], mark, line.box.x0))
        else:
            before.lines.append(line)
    return blocks


def _mark(line: Line) -> str:
    for pattern in (_BULLET, _NUMBER, _REFERENCE):
        if match := pattern.match(line.text):
            return match[0].strip()
    return ""


def _apart(block: Block, line: Line, body: Body) -> bool:
    """Whether the line cannot belong to the block: other font, other column, or too far below."""
    last = block.lines[-1]
    if line.area != last.area:
        return True
    if abs(line.baseline - last.baseline) < 0.2 * line.size and 0 <= line.box.x0 - last.box.x1 < 2.5 * line.size:
        return False  # one line in two pieces
    if abs(line.size - last.size) > 0.08 * last.size and abs(line.size - block.size) > 0.08 * block.size:
        return True
    for test in ("bold", "mono"):
        if abs(line.share(test) - last.share(test)) > 0.9 and abs(line.share(test) - block.share(test)) > 0.9:
            return True
    if not line.fonts & {font for n in block.lines for font in n.fonts} and min(len(line.text), len(last.text)) > 3:
        return True
    if min(line.box.x1, last.box.x1) <= max(line.box.x0, last.box.x0):
        return True
    step = line.baseline - last.baseline
    if step <= 0:
        # Pieces of one line, as around an index that stands apart.
        return step < -0.5 * line.size or line.box.x0 < last.box.x1 - line.size
    usual = body.leading * line.size
    if len(block.lines) > 1:
        usual = min(block.lines[1].baseline - block.lines[0].baseline, 1.8 * line.size) or usual
    return step > 1.3 * max(usual, line.size)


def _starts_paragraph(block: Block, line: Line, following: Sequence[Line]) -> bool:
    """Indented, or after a line that ended early although the next word would have fitted in."""
    last = block.lines[-1]
    em = line.size
    below = [f for f in following if f.baseline > line.baseline and f.box.x0 < line.box.x1 and f.box.x1 > line.box.x0]
    left, right = block.box.x0, max(block.box.x1, line.box.x1, *(f.box.x1 for f in below))
    if block.mark or line.share("mono") > 0.9:
        return False
    centred = abs((line.box.x0 + line.box.x1) - (last.box.x0 + last.box.x1)) < em and line.box.x0 - left > 0.5 * em
    if centred or line.size > 1.14 * em:
        return False
    indented = 0.7 * em < line.box.x0 - last.box.x0 < 4 * em and line.box.x0 - left > 0.7 * em
    hanging = len(block.lines) < 2 or last.box.x0 - left > 0.5 * em  # no left edge is known yet
    if indented and (last.text.endswith(_END) or not hanging):
        return True
    room = right - last.box.x1
    return last.text.endswith(_END) and room > _first_width(line) + em and not line.text[0].islower()


def _first_width(line: Line) -> float:
    """Width of the line's first word (OCR gives whole lines as one)."""
    first = line.words[0]
    return first.box.width * len(first.text.split()[0]) / len(first.text)


def _starts_item(block: Block, line: Line, mark: str) -> bool:
    """A mark in the middle of a block is an item's when the block is one of the same kind, or ended a sentence."""
    if block.mark:
        return _kind(mark) == _kind(block.mark) or abs(line.box.x0 - block.indent) > 0.5 * line.size
    return mark.startswith("[") or block.lines[-1].text.endswith(_END)


def _kind(mark: str) -> str:
    return re.sub(r"\d+", "1", re.sub(r"[a-z]+", "a", mark))


def regions_of(blocks: Sequence[Block], body: Body, height: float) -> list[Region]:
    """Blocks as labelled regions; neighbouring items become one list."""
    regions: list[Region] = []
    items: list[Block] = []
    for k, block in enumerate(blocks):
        heading = _heading(block, body)
        if block.mark and not block.mark.startswith("[") and heading is None and not _is_footnote(block, body, height):
            if items and not _same_list(items[-1], block):
                regions.append(_list(items))
                items = []
            items.append(block)
            continue
        if items:
            regions.append(_list(items))
            items = []
        first = not any(r.label in (Label.TITLE, Label.HEADING) for r in regions) and block.box.y0 < 0.4 * height
        regions.append(_region(block, heading, first, body, height, blocks[k + 1 :]))
    if items:
        regions.append(_list(items))
    return formulas_whole(regions, body.size)


def _region(
    block: Block, heading: int | None, first: bool, body: Body, height: float, after: Sequence[Block]
) -> Region:
    text = join_lines(block.lines)
    if heading is not None:
        biggest = first and heading == 1 and all(b.size <= 1.02 * block.size for b in after)
        return Region(block.box, Label.TITLE if biggest else Label.HEADING, text, level=heading)
    if block.label not in (None, Label.TEXT, Label.HEADING):
        return Region(block.box, block.label, text)
    if _CAPTION.match(text):
        return Region(block.box, Label.CAPTION, text)
    if block.mark.startswith("["):
        return Region(block.box, Label.REFERENCE, text)
    if block.share("mono") > 0.9 and len(block.lines) > 1:
        return Region(block.box, Label.CODE, "\n".join(_code_line(line, block) for line in block.lines))
    if _is_footnote(block, body, height):
        return Region(block.box, Label.FOOTNOTE, text)
    return Region(block.box, Label.TEXT, text)


def _is_footnote(block: Block, body: Body, height: float) -> bool:
    small, low = block.size < 0.93 * body.size, block.box.y0 > 0.6 * height
    return small and low and block.lines[0].text[0] in "0123456789*†‡§¹²³"


def _code_line(line: Line, block: Block) -> str:
    width = sum(w.box.width for w in line.words) / sum(len(w.text) for w in line.words)
    return " " * round((line.box.x0 - block.box.x0) / max(width, 1.0)) + line.text


def _heading(block: Block, body: Body) -> int | None:
    """The heading level, `None` for what is no heading: short, and larger than the body text or all bold."""
    text = join_lines(block.lines)
    if len(block.lines) > 4 or len(text) > 200 or not any(ch.isalpha() for ch in text) or _CAPTION.match(text):
        return None
    ratio = block.size / body.size
    bold = block.share("bold") > 0.9
    capitals = text.isupper() and sum(ch.isalpha() for ch in text) > 3
    plain = body.has_bold and not bold and not capitals
    by_size = next((level for least, least_plain, level in _LEVELS if ratio >= (least_plain if plain else least)), None)
    marked = (bold or capitals) and ratio > 0.95 and len(block.lines) <= 2 and not text.endswith((".", ",", ";"))
    if block.label not in (None, Label.TEXT, Label.HEADING):
        return None
    # "2.1 Methods" in italics: the number and the other font make it one.
    section = _SECTION.match(text)
    other = block.share("italic") > 0.9 or all(body.font not in line.fonts for line in block.lines)
    if section and "." in section[1] and len(block.lines) == 1 and other and len(text) < 100:
        return section[1].count(".") + 1
    running = len(text) > 120 or "=" in text or (text.endswith(".") and (len(text) > 80 or (plain and not section)))
    if block.label != Label.HEADING and ((by_size is None and not marked) or (by_size != 1 and running)):
        return None
    if section:
        return min(6, section[1].count(".") + (2 if by_size == 2 else 1))
    return by_size or 3


def _same_list(before: Block, block: Block) -> bool:
    gap = block.box.y0 - before.box.y1
    return -block.size < gap < 1.6 * block.size and min(before.box.x1, block.box.x1) > max(before.box.x0, block.box.x0)


def _list(items: Sequence[Block]) -> Region:
    """One item a line, nested items indented by two spaces a level."""
    em = items[0].size
    edges: list[float] = []
    for x in sorted(i.indent for i in items):
        if not edges or x - edges[-1] > 0.7 * em:
            edges.append(x)
    rows = []
    for item in items:
        level = max(k for k, x in enumerate(edges) if item.indent >= x - 0.1)
        text = join_lines(item.lines)[len(item.mark) :].strip()
        mark = "-" if _BULLET.match(f"{item.mark} x") else item.mark
        rows.append(f"{'  ' * level}{mark} {text}")
    return Region(bounding(i.box for i in items), Label.LIST, "\n".join(rows))
