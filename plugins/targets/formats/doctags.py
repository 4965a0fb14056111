"""DocTags, the page language of Docling's models: one element a tag, its box as four `<loc_N>` in 0..500.

`<doctag><text><loc_41><loc_20><loc_460><loc_40>Words</text>` and so on, an element a line; tables are OTSL, lists and
pictures hold items and captions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hsdkit_plugins.targets import otsl
from hsdkit_plugins.targets.formats.blocks import Block, rounded, without_repeats
from hsdkit_plugins.targets.tables import html_table

from hsdkit.regions import Box, Label

_NAMES: Mapping[Label, str] = {
    Label.TITLE: "title",
    Label.HEADING: "section_header_level_1",
    Label.TEXT: "text",
    Label.TABLE: "otsl",
    Label.FORMULA: "formula",
    Label.FIGURE: "picture",
    Label.CAPTION: "caption",
    Label.CODE: "code",
    Label.FOOTNOTE: "footnote",
    Label.REFERENCE: "text",
    Label.HEADER: "page_header",
    Label.FOOTER: "page_footer",
    Label.PAGE_NUMBER: "page_footer",
    Label.OTHER: "text",
}
_LABELS: Mapping[str, Label] = {
    "text": Label.TEXT,
    "paragraph": Label.TEXT,
    "title": Label.TITLE,
    "list_item": Label.LIST,
    "otsl": Label.TABLE,
    "table": Label.TABLE,
    "document_index": Label.TABLE,
    "formula": Label.FORMULA,
    "picture": Label.FIGURE,
    "chart": Label.FIGURE,
    "caption": Label.CAPTION,
    "code": Label.CODE,
    "footnote": Label.FOOTNOTE,
    "reference": Label.REFERENCE,
    "page_header": Label.HEADER,
    "page_footer": Label.FOOTER,
    "checkbox_selected": Label.TEXT,
    "checkbox_unselected": Label.TEXT,
    **{f"section_header_level_{level}": Label.HEADING for level in range(1, 7)},
}
_LISTS = ("unordered_list", "ordered_list")
_ELEMENT = "|".join([*_LABELS, *_LISTS, "doctag", "page_break", "group", "inline", "key_value_region", "form"])
_TAG = re.compile(rf"<(?:(?P<end>/)?(?P<name>{_ELEMENT})|loc_(?P<loc>\d{{1,4}}))>")
#: The tags, which are single tokens of models that write DocTags.
TOKENS = (
    *(f"<{slash}{name}>" for name in _ELEMENT.split("|") for slash in ("", "/")),
    *(f"<loc_{n}>" for n in range(501)),
    *otsl.TOKENS,
)
#: Kinds of pictures and of code, and the end of a cut output.
_OTHER = re.compile(r"<_[A-Za-z+#]+_>|<(?:[a-z]+_)*(?:chart|map|logo|diagram|other|signature|stamp|qr_code|bar_code)>")
_CUT = re.compile(r"<[/a-z_0-9]*\Z")
_MARK = re.compile(r"(?:[-*•◦▪‣●○■–]|\(?\d{1,3}[.)])\s+")
_ITEM = re.compile(r"^(?: *)(?:[-*•] |\d{1,3}\. )?(.*)$")


@dataclass(frozen=True)
class DocTags:
    """The `Layout` of DocTags.

    marks: whether list items keep their marks (`• `, `1. `) within the tags, as they are printed.
    """

    marks: bool = False

    separator = "\n"
    grid = 500

    def write(self, blocks: Sequence[Block]) -> tuple[str, ...]:
        texts: list[str] = []
        todo = [b for b in blocks if b.box is not None and (b.text.strip() or b.label is Label.FIGURE)]
        while todo:
            block = todo.pop(0)
            caption = todo.pop(0) if block.label is Label.FIGURE and todo and todo[0].label is Label.CAPTION else None
            if block.label is Label.LIST:
                texts.append(self._list(block))
                continue
            level = max(1, (block.level or 2) - 1)  # level 1 of Markdown is the title's
            name = f"section_header_level_{level}" if block.label is Label.HEADING else ""
            name = name or _NAMES[block.label]
            inner = _element("caption", caption.box, caption.text) if caption else ""
            text = "" if block.label is Label.FIGURE else block.text
            texts.append(_element(name, block.box, text + inner))
        if texts:
            texts[0] = "<doctag>" + texts[0]
            texts[-1] += "\n</doctag>"
        return tuple(texts)

    def _list(self, block: Block) -> str:
        """A list with its items; each has its share of the list's box, by its length."""
        lines = [line for line in block.text.split("\n") if line.strip()]
        ordered = bool(lines) and re.match(r"\s*\d", lines[0]) is not None
        box = block.box or Box(0, 0, 0, 0)
        total, top, items = sum(map(len, lines)), 0, []
        for line in lines:
            bottom = top + len(line)
            y0, y1 = (box.y0 + box.height * at / total for at in (top, bottom))
            text = line.strip() if self.marks else _ITEM.sub(r"\1", line)
            items.append(_element("list_item", Box(box.x0, y0, box.x1, y1), text))
            top = bottom
        name = _LISTS[ordered]
        return f"<{name}>" + "\n".join(items) + f"\n</{name}>"

    def read(self, text: str) -> tuple[Block, ...] | None:
        if not _TAG.search(text):
            return None
        return without_repeats(_Reader().read(_CUT.sub("", text)))


def _element(name: str, box: Box | None, text: str) -> str:
    b = rounded(box)
    locs = "".join(f"<loc_{min(max(v, 0), 500):.0f}>" for v in (b.x0, b.y0, b.x1, b.y1))
    return f"<{name}>{locs}{text}</{name}>"


@dataclass
class _Open:
    """An element whose end has not come yet."""

    name: str
    order: int
    locs: list[int] = field(default_factory=list)
    text: str = ""


class _Reader:
    """Elements as they are met; an element that is not closed ends where the next one begins."""

    def __init__(self) -> None:
        self.found: list[tuple[int, Block]] = []
        self.open: list[_Open] = []
        self.lists: list[tuple[str, int]] = []  # the lists around, with the number of their last item
        self.count = 0

    def read(self, text: str) -> list[Block]:
        at = 0
        for tag in _TAG.finditer(text):
            self._take(text[at : tag.start()])
            at = tag.end()
            if tag["loc"]:
                if self.open and len(self.open[-1].locs) < 4:
                    self.open[-1].locs.append(int(tag["loc"]))
            elif tag["end"]:
                self._end(tag["name"])
            else:
                self._begin(tag["name"])
        self._take(text[at:])
        self._close_all()
        return [block for _, block in sorted(self.found, key=lambda pair: pair[0])]

    def _begin(self, name: str) -> None:
        if name in _LISTS:
            self._close_all()
            self.lists.append((name, 0))
        elif name in _LABELS:
            holder = self.open[-1].name if self.open else ""
            if not (name == "caption" and holder in ("picture", "chart", "otsl", "table", "code")):
                self._close_all()
            self.count += 1
            self.open.append(_Open(name, self.count))

    def _end(self, name: str) -> None:
        if name in _LISTS:
            self._close_all()
            if self.lists:
                self.lists.pop()
        elif any(element.name == name for element in self.open):
            while self.open[-1].name != name:
                self._close()
            self._close()

    def _take(self, text: str) -> None:
        if self.open:
            self.open[-1].text += text
        elif text.strip():
            self.count += 1
            self.found.append((self.count, Block(Label.TEXT, text.strip())))

    def _close_all(self) -> None:
        while self.open:
            self._close()

    def _close(self) -> None:
        element = self.open.pop()
        label = _LABELS[element.name]
        text = _OTHER.sub("", element.text).strip()
        level = min(int(element.name[-1]) + 1, 6) if label is Label.HEADING else None
        if label is Label.TABLE:
            text = html_table(otsl.otsl_grid(text)) if text else ""
        elif label is Label.LIST:
            text = self._item(text)
        elif label is Label.FIGURE:
            text = ""
        if text or label is Label.FIGURE:
            self.found.append((element.order, Block(label, text, _box(element.locs), level, element.name)))

    def _item(self, text: str) -> str:
        """The item in Markdown: numbered in ordered lists, unless it is already."""
        name, number = self.lists[-1] if self.lists else (_LISTS[0], 0)
        if self.lists:
            self.lists[-1] = name, number + 1
        mark = _MARK.match(text)
        words = text[mark.end() :] if mark else text
        if mark and mark[0].strip("( ")[0].isdigit():
            return f"{mark[0].strip('(). ')}. {words}"
        return f"{number + 1}. {words}" if name == "ordered_list" else f"- {words}"


def _box(locs: Sequence[int]) -> Box | None:
    if len(locs) != 4:
        return None
    box = Box(*map(float, locs))
    return box if box.area > 0 else None
