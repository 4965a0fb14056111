"""A page as Markdown with a label and a box before each block, as DeepSeek-OCR and its kin write it.

DeepSeek-OCR:   `<|ref|>text<|/ref|><|det|>[[x0, y0, x1, y1]]<|/det|>` and, on the next line, the block's Markdown.
Unlimited-OCR:  `<|det|>text [x0, y0, x1, y1]<|/det|>` with the text right behind it, a block a line.
Both are read by the same `read`; which one is written is data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hsdkit_plugins.targets.formats.blocks import Block, rounded, stated_label, without_repeats

from hsdkit.regions import Box, Label

_TAG = re.compile(
    r"<\|ref\|>(?P<ref>(?:(?!<\|).)*)<\|/ref\|>\s*<\|det\|>(?P<at>(?:(?!<\|).)*)<\|/det\|>"
    r"|<\|det\|>\s*(?P<kind>[^\[<]*?)\s*(?P<box>\[(?:(?!<\|).)*)<\|/det\|>",
    re.DOTALL,
)
#: A tag begun at the end of a cut output; tags that lack their other half.
_CUT = re.compile(r"<\|(?:ref|det)\|>[^\n]{0,80}\Z|<\|/?[a-z]*\|?\Z|<\Z")
_STRAY = re.compile(r"<\|/?(?:ref|det|grounding)\|>")
_PAGE_SPLIT = re.compile(r"<-+ ?Page ?Split ?-+>", re.IGNORECASE)
_CENTER = re.compile(r"</?center>")
_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Grounding:
    """The `Layout` of tagged Markdown.

    names: the word a label is written as; labels that are missing are left out.
    tag: what stands before a block, with `{name}` and `{box}`.
    joint: what stands between a tag and its text. trailer: what ends every text but those of tables.
    separator: what stands between two blocks.
    pairs: whether captions are written into the figure or table that they stand beside, centred below figures.
    """

    names: Mapping[Label, str]
    tag: str = "<|ref|>{name}<|/ref|><|det|>[[{box}]]<|/det|>"
    joint: str = "\n"
    trailer: str = "  "
    separator: str = "\n\n"
    pairs: bool = True

    grid = 999

    def write(self, blocks: Sequence[Block]) -> tuple[str, ...]:
        texts = []
        todo = [b for b in blocks if b.label in self.names and (b.text.strip() or b.label is Label.FIGURE)]
        while todo:
            block = todo.pop(0)
            following = todo[0].label if todo else None
            if self.pairs and block.label is Label.CAPTION and following is Label.TABLE:
                texts.append(self._table(todo.pop(0), caption=block))
            elif self.pairs and block.label is Label.FIGURE and following is Label.CAPTION:
                texts.append(self._tag(block) + self.joint + self._caption(todo.pop(0)))
            elif block.label is Label.TABLE:
                texts.append(self._table(block))
            else:
                texts.append(
                    self._tag(block) + self.joint + block.text * (block.label is not Label.FIGURE) + self.trailer
                )
        return tuple(texts)

    def _table(self, block: Block, caption: Block | None = None) -> str:
        tag = self._tag(block) + self.joint
        if caption is not None:
            tag += f"{self._tag(caption, 'table_caption')}{self.joint}{caption.text} {self.trailer}\n"
        return tag + ("\n" if self.pairs else "") + block.text

    def _caption(self, block: Block) -> str:
        return f"{self._tag(block, 'image_caption')}{self.joint}<center>{block.text} </center>{self.trailer}"

    def _tag(self, block: Block, name: str = "") -> str:
        box = rounded(block.box)
        numbers = ", ".join(f"{min(max(v, 0), self.grid):.0f}" for v in (box.x0, box.y0, box.x1, box.y1))
        return self.tag.replace("{name}", name or self.names[block.label]).replace("{box}", numbers)

    def read(self, text: str) -> tuple[Block, ...] | None:
        tags = list(_TAG.finditer(text))
        if not tags and not _STRAY.search(text):
            return None
        blocks = [Block(Label.TEXT, lead)] if (lead := _content(text[: tags[0].start() if tags else len(text)])) else []
        ends = [tag.start() for tag in tags[1:]]
        for tag, end in zip(tags, [*ends, len(text)], strict=False):
            kind = (tag["ref"] if tag["ref"] is not None else tag["kind"]).strip()
            blocks.append(self._block(kind, _box(tag["at"] or tag["box"] or ""), _content(text[tag.end() : end])))
        return without_repeats(_untangled(blocks))

    def _block(self, kind: str, box: Box | None, text: str) -> Block:
        label = next((label for label, name in self.names.items() if name == kind), None) or stated_label(kind)
        if not text and label is Label.TEXT and kind not in self.names.values():
            # Asked to read with boxes, DeepSeek-OCR puts the text itself where labels stand.
            return Block(Label.TEXT, kind, box)
        return Block(label, text, box, kind=kind)


def _content(text: str) -> str:
    text = _PAGE_SPLIT.sub("", _STRAY.sub("", _CUT.sub("", text)))
    return _CENTER.sub("", text).strip()


def _untangled(blocks: Sequence[Block]) -> list[Block]:
    """A table's caption stands between its tag and its rows: give each its own text back, the caption first."""
    out: list[Block] = []
    for block in blocks:
        before = out[-1] if out else None
        if block.label is Label.CAPTION and before and before.label is Label.TABLE and not before.text:
            caption, found, rows = block.text.partition("<table")
            out[-1] = replace(block, text=caption.strip())
            out.append(replace(before, text=found + rows))
        else:
            out.append(block)
    return out


def _box(text: str) -> Box | None:
    """The box around all boxes in the text; None when there is no whole one."""
    numbers = [float(n) for n in _NUMBERS.findall(text)]
    boxes = [numbers[i : i + 4] for i in range(0, len(numbers) - 3, 4)]
    if not boxes:
        return None
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    box = Box(min(x0), min(y0), max(x1), max(y1))
    return box if box.area > 0 and all(abs(n) < 1e6 for n in numbers) else None
