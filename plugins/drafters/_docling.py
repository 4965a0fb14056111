"""A `DoclingDocument` (its JSON) as regions: docling's labels, tables, lists and reading order, read without trust.

Boxes are PDF points (for images: pixels) from the bottom left, or the top left where they say so. The body is a tree of
references; its order is the reading order.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from hsdkit_plugins.drafters._lines import bounding
from hsdkit_plugins.drafters._native import Findings, latex, list_text, number, paragraph

from hsdkit.documents import Page
from hsdkit.regions import Box, Draft, Format, Label, Region
from hsdkit.spelling import join_texts

#: Docling's labels of text items; those that are missing here hold running text.
LABELS = {
    "title": Label.TITLE,
    "section_header": Label.HEADING,
    "field_heading": Label.HEADING,
    "list_item": Label.LIST,
    "checkbox_selected": Label.LIST,
    "checkbox_unselected": Label.LIST,
    "formula": Label.FORMULA,
    "code": Label.CODE,
    "caption": Label.CAPTION,
    "footnote": Label.FOOTNOTE,
    "reference": Label.REFERENCE,
    "page_header": Label.HEADER,
    "page_footer": Label.FOOTER,
    "empty_value": Label.OTHER,
    "grading_scale": Label.OTHER,
}

_LISTS = ("list", "ordered_list")
_CHECKED = {"checkbox_selected": "- ☑ ", "checkbox_unselected": "- ☐ "}

#: Deeper nesting than this is no document; it also ends references that go round.
_DEEPEST = 40

#: Most places (rows times columns) of a table that is believed.
_MOST_PLACES = 20_000

Json = dict[str, Any]


def convert(native: Any, page: Page) -> Draft:
    """The draft of docling's standard pipeline. Raises `ValueError` for JSON that is no DoclingDocument."""
    reader = DoclingReader(native, page)
    if not isinstance(body := native.get("body"), dict):
        raise ValueError("it has no body")
    reader.children(body)
    return reader.found.draft("docling")


class DoclingReader:
    """Walks the tree, each item once: captions are both children and named by their table."""

    def __init__(self, native: Any, page: Page) -> None:
        if not isinstance(native, dict) or native.get("schema_name") != "DoclingDocument":
            raise ValueError("it is no DoclingDocument")
        self.native = native
        self.number, width, self.height = _page_size(native)
        self.found = Findings(page, width, self.height)
        self._seen: set[str] = set()
        owners = [item for kind in ("tables", "pictures") for item in native.get(kind) or () if isinstance(item, dict)]
        named = [n for owner in owners for kind in ("captions", "footnotes") for n in owner.get(kind) or ()]
        #: Captions and footnotes of tables and pictures, which come with those wherever else they stand.
        self._owned = {str(n.get("$ref")) for n in named if isinstance(n, dict)}

    def children(self, item: Json, depth: int = 0) -> None:
        for child in self._named(item.get("children")):
            if child.get("self_ref") not in self._owned:
                self._item(child, depth + 1)

    def parts(self, item: Json) -> list[tuple[Box, str]]:
        """The pieces of an item on this page: text that docling has joined across columns is parted again."""
        text = self._said(item)
        places = [p for p in self.found.objects(item.get("prov")) if p.get("page_no", self.number) == self.number]
        boxes = [(box, _slice(text, p.get("charspan"))) for p in places if (box := self._box(p.get("bbox")))]
        self.found.malformed += len(places) - len(boxes)
        if len(boxes) > 1 and all(piece.strip() for _, piece in boxes):
            return boxes
        return [(bounding(box for box, _ in boxes), text)] if boxes else []

    def _item(self, item: Json, depth: int) -> None:
        label = item.get("label")
        if label == "list_item":
            self._list([item], depth)
            return
        if not self._first_time(item, depth):
            return
        match _kind(item):
            case "groups" if label in _LISTS:
                self._list(list(self._named(item.get("children"))), depth)
            case "groups" if label == "inline":
                pieces = list(self._named(item.get("children")))
                boxes = [box for piece in pieces for box, _ in self.parts(piece)]
                self._add(boxes, Label.TEXT, _in_line(pieces))
            case "tables":
                self._captioned(item, depth, Label.TABLE, table(item.get("data")), "html")
            case "pictures":
                self._captioned(item, depth, Label.FIGURE, "", "text")
            case "texts":
                self._text(item)
                self.children(item, depth)
            case _:
                self.children(item, depth)

    def _text(self, item: Json) -> None:
        name = str(item.get("label"))
        label = LABELS.get(name, Label.TEXT)
        for box, text in self.parts(item):
            if label == Label.FORMULA and item.get("text"):  # LaTeX; without it there is what was read from the file
                self._add([box], label, latex(text), "latex")
            elif label == Label.CODE:
                self._add([box], label, text.strip("\n"))
            else:
                self._add([box], label, _CHECKED.get(name, "") + paragraph(text), level=_level(item, label))

    def _list(self, items: list[Json], depth: int) -> None:
        """List items, with the lists inside them, as one region; then what else stands among them."""
        rows: list[tuple[int, str]] = []
        boxes: list[Box] = []
        others: list[Json] = []
        self._rows(items, 0, depth, rows, boxes, others)
        self._add(boxes, Label.LIST, list_text(rows))
        for other in others:
            self._item(other, depth + 1)

    def _rows(
        self,
        items: list[Json],
        level: int,
        depth: int,
        rows: list[tuple[int, str]],
        boxes: list[Box],
        others: list[Json],
    ) -> None:
        for item in items:
            inside = list(self._named(item.get("children")))
            if item.get("label") == "list_item":
                if self._first_time(item, depth):
                    mark = str(item.get("marker") or "-") if item.get("enumerated") else "-"
                    rows.append((level, f"{mark} {paragraph(self._said(item))}"))
                    boxes += [box for box, _ in self.parts(item)]
                    # A list under an item is one level deeper; so is one beside the items of its own list.
                    self._rows(inside, level, depth + 1, rows, boxes, others)
            elif item.get("label") in _LISTS:
                if self._first_time(item, depth):
                    self._rows(inside, level + 1, depth + 1, rows, boxes, others)
            else:
                others.append(item)

    def _captioned(self, item: Json, depth: int, label: Label, text: str, format: Format) -> None:
        """The item between the captions above it and those below it, then its footnotes. What else is inside, such as
        words in a picture, is part of it."""
        own = [box for box, _ in self.parts(item)]
        captions = list(self._named(item.get("captions")))
        top = min((box.y0 for box in own), default=0.0)
        above = [c for c in captions if any(box.y0 < top for box, _ in self.parts(c))]
        for caption in above:
            self._item(caption, depth + 1)
        self._add(own, label, text, format)
        for rest in (*captions, *self._named(item.get("footnotes"))):
            self._item(rest, depth + 1)

    def _said(self, item: Json) -> str:
        """An item's text, LaTeX or code; that of the pieces in its line where it holds those instead."""
        text = item.get("text") or item.get("orig")
        if isinstance(text, str) and text:
            return text
        lines = [child for child in self._named(item.get("children")) if child.get("label") == "inline"]
        self._seen.update(str(line.get("self_ref")) for line in lines)
        return " ".join(_in_line(list(self._named(line.get("children")))) for line in lines)

    def _add(
        self, boxes: list[Box], label: Label, text: str, format: Format = "text", level: int | None = None
    ) -> None:
        if boxes:
            self.found.regions.append(Region(bounding(boxes), label, text, format, level))

    def _box(self, bbox: Any) -> Box | None:
        sides = [number(bbox.get(side)) for side in ("l", "t", "r", "b")] if isinstance(bbox, dict) else [None]
        if None in sides:
            return None
        left, top, right, bottom = (float(side) for side in sides if side is not None)
        if bbox.get("coord_origin", "BOTTOMLEFT") != "TOPLEFT":
            top, bottom = self.height - top, self.height - bottom
        return self.found.box([min(left, right), min(top, bottom), max(left, right), max(top, bottom)])

    def _named(self, references: Any) -> Iterator[Json]:
        """The items that references such as `#/texts/3` name."""
        for reference in self.found.objects(references):
            parts = str(reference.get("$ref")).split("/")
            items = self.native.get(parts[1]) if len(parts) == 3 and parts[0] == "#" else None
            index = int(parts[2]) if isinstance(items, list) and parts[2].isdecimal() else -1
            item = items[index] if isinstance(items, list) and 0 <= index < len(items) else None
            if isinstance(item, dict):
                yield item
            else:
                self.found.malformed += 1

    def _first_time(self, item: Json, depth: int) -> bool:
        reference = str(item.get("self_ref"))
        if reference in self._seen:
            return False
        self._seen.add(reference)
        self.found.malformed += depth > _DEEPEST
        return depth <= _DEEPEST


def table(data: Any) -> str:
    """A `TableData` as HTML: each cell where it begins, with its spans; what no cell covers is an empty cell."""
    cells = data.get("table_cells") if isinstance(data, dict) else None
    if not isinstance(cells, list):
        return ""
    begins: dict[tuple[int, int], tuple[str, int, int]] = {}
    covered: set[tuple[int, int]] = set()
    for cell in (c for c in cells if isinstance(c, dict)):
        row, column = (cell.get(f"start_{way}_offset_idx") for way in ("row", "col"))
        if not (isinstance(row, int) and isinstance(column, int) and row >= 0 and column >= 0):
            continue
        down, across = (max(1, int(number(cell.get(f"{way}_span")) or 1)) for way in ("row", "col"))
        if (row, column) in covered or (row + down) * (column + across) > _MOST_PLACES:
            continue
        places = [(r, c) for r in range(row, row + down) for c in range(column, column + across)]
        if covered.isdisjoint(places):  # else it is a second cell in that place
            covered.update(places)
            begins[row, column] = paragraph(str(cell.get("text") or "")), down, across
    if not covered:
        return ""
    rows, columns = (1 + max(place[way] for place in covered) for way in (0, 1))
    empty = ("", 1, 1)
    lines = [
        "".join(_td(*begins.get((r, c), empty)) for c in range(columns) if (r, c) in begins or (r, c) not in covered)
        for r in range(rows)
    ]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _td(text: str, down: int, across: int) -> str:
    spans = (f' rowspan="{down}"' if down > 1 else "") + (f' colspan="{across}"' if across > 1 else "")
    return f"<td{spans}>{escape(text, quote=False)}</td>"


def _in_line(pieces: list[Json]) -> str:
    """Pieces of one line of text, in different styles."""
    said = [(p.get("label"), str(p.get("text") or p.get("orig") or "")) for p in pieces]
    return join_texts(*(f"${latex(text)}$" if label == "formula" else text for label, text in said if text))


def _kind(item: Json) -> str:
    """Which of the document's lists it is in: `texts`, `groups`, `tables`, ..."""
    return str(item.get("self_ref")).removeprefix("#/").partition("/")[0]


def _level(item: Json, label: Label) -> int | None:
    """Docling counts section headings from 1 below the title."""
    if label == Label.TITLE:
        return 1
    level = number(item.get("level"))
    return min(6, int(level) + 1) if label == Label.HEADING and level is not None else None


def _slice(text: str, span: Any) -> str:
    if isinstance(span, list) and len(span) == 2 and all(isinstance(n, int) for n in span):
        return text[max(0, span[0]) : max(0, span[1])].strip()
    return ""


def _page_size(native: Json) -> tuple[int, float, float]:
    """The number of the document's only page, and what it measures in the unit of the boxes."""
    pages = native.get("pages")
    if not isinstance(pages, dict) or not pages:
        raise ValueError("it has no page")
    page = next(iter(pages.values()))
    size = page["size"]
    width, height = number(size["width"]), number(size["height"])
    if not width or not height or width < 0 or height < 0:
        raise ValueError(f"its page measures {size['width']} x {size['height']}")
    return int(number(page.get("page_no")) or 1), width, height
