"""Pages of the ground truth as OmniDocBench's JSON has them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

#: Categories whose `text` is text, in the order in which the evaluator gathers them.
TEXTS = (
    "text_block",
    "title",
    "code_txt",
    "code_txt_caption",
    "reference",
    "equation_caption",
    "figure_caption",
    "figure_footnote",
    "table_caption",
    "table_footnote",
    "code_algorithm",
    "code_algorithm_caption",
    "header",
    "footer",
    "page_footnote",
    "page_number",
)
FORMULA = "equation_isolated"
#: Text that no score counts: a prediction may hold it or not.
IGNORED = frozenset(TEXTS) - {"text_block", "title", "code_txt", "code_txt_caption", "reference"}


@dataclass(frozen=True, slots=True)
class Element:
    """One block of the ground truth; `order` is its place in reading order, None or 0 where it has none."""

    category: str
    text: str
    order: float | None
    html: str = ""


@dataclass(frozen=True, slots=True)
class Truth:
    """What a page holds: texts and displayed formulas in reading order, and its tables."""

    elements: tuple[Element, ...]
    tables: tuple[Element, ...]


def truth(page: dict[str, Any]) -> Truth:
    """The blocks of one page, those that a column or page break cut in two put together again."""
    by_category: dict[str, list[Element]] = {}
    for element in _whole(page["layout_dets"], page.get("extra", {}).get("relation", ())):
        by_category.setdefault(element.category, []).append(element)
    mixed = [e for category in (*TEXTS, FORMULA) for e in by_category.get(category, ())]
    return Truth(_ordered(mixed), _ordered(by_category.get("table", ())))


def _ordered(elements: Iterable[Element]) -> tuple[Element, ...]:
    return tuple(sorted(elements, key=lambda e: e.order or 0))


def _whole(blocks: list[dict[str, Any]], relations: Iterable[dict[str, Any]]) -> list[Element]:
    cut = _cut_in_two(relations)
    by_id = {block["anno_id"]: block for block in blocks}
    parts = {one for ids in cut for one in ids}
    found = [_element(block) for block in blocks if block["anno_id"] not in parts]
    for ids in cut:
        pieces = sorted((by_id[one] for one in ids if one in by_id), key=lambda block: block.get("order") or 0)
        if pieces:
            text = "".join(piece.get("text") or "" for piece in pieces)
            found.append(Element(pieces[0]["category_type"], text, pieces[0].get("order")))
    return found


def _cut_in_two(relations: Iterable[dict[str, Any]]) -> list[list[Any]]:
    """Ids of the blocks to put together. Of three in a row the one in the middle is there twice, as the evaluator has
    it: it adds both ends of each relation."""
    found: list[list[Any]] = []
    for relation in relations:
        if relation.get("relation_type", relation.get("relation")) != "truncated":
            continue
        ends = [relation["source_anno_id"], relation["target_anno_id"]]
        joined = [ids for ids in found if ends[0] in ids or ends[1] in ids]
        for ids in joined:
            ids += ends
        if not joined:
            found.append(ends)
    return found


def _element(block: dict[str, Any]) -> Element:
    category = block["category_type"]
    text = block.get("latex") if category == FORMULA else block.get("text")
    return Element(category, str(text or ""), block.get("order"), str(block.get("html") or ""))
