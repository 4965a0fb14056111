"""TEDS: how alike two HTML tables are as trees (Zhong et al., "Image-based table recognition", 2020).

Trees have the nodes `table`, `tr` and `td` (whatever else stands between them, too); a `td` holds its content as a list
of characters and tags. Renaming costs 1 where tag or spans differ, else the normalised edit distance of the contents.
"""

from __future__ import annotations

from typing import Any

from hsdkit.metrics.edit import edits


def teds(predicted: str, expected: str, structure_only: bool = False) -> float:
    """1 - tree edit distance / nodes of the larger table, for two `<html><body><table>` texts.

    0 where either is empty or holds no table as a child of the body; with `structure_only` the contents of cells are
    not looked at. Raises `ValueError` for spans that are no numbers.
    """
    from apted import APTED

    if not predicted or not expected:
        return 0.0
    tables = [_table(text) for text in (predicted, expected)]
    if tables[0] is None or tables[1] is None:
        return 0.0
    nodes = max(sum(1 for _ in table.iterdescendants("*")) for table in tables)
    trees = [_tree(table, structure_only) for table in tables]
    return 1.0 - float(APTED(*trees, _Costs()).compute_edit_distance()) / nodes if nodes else 0.0


class _Node:
    __slots__ = ("children", "content", "spans", "tag")

    def __init__(self, tag: str, spans: tuple[int, int] | None, content: list[str]) -> None:
        self.tag, self.spans, self.content = tag, spans, content
        self.children: list[_Node] = []


class _Costs:
    """What apted asks for."""

    valuecls = float

    @staticmethod
    def delete(node: _Node) -> float:
        return 1.0

    insert = delete

    @staticmethod
    def rename(a: _Node, b: _Node) -> float:
        if a.tag != b.tag or a.spans != b.spans:
            return 1.0
        if a.content or b.content:
            return edits(a.content, b.content) / max(len(a.content), len(b.content))
        return 0.0

    @staticmethod
    def children(node: _Node) -> list[_Node]:
        return node.children


def _table(text: str) -> Any:
    from lxml import etree, html

    try:
        found = html.fromstring(text, parser=html.HTMLParser(remove_comments=True)).xpath("body/table")
    except (etree.LxmlError, ValueError):  # ValueError: characters that no XML document may hold
        return None
    return found[0] if found else None


def _tree(element: Any, structure_only: bool) -> _Node:
    if element.tag != "td":
        node = _Node(str(element.tag), None, [])
        node.children = [_tree(child, structure_only) for child in element]
        return node
    spans = int(element.get("colspan", "1")), int(element.get("rowspan", "1"))
    return _Node("td", spans, [] if structure_only else _content(element)[1:-1])


def _content(element: Any) -> list[str]:
    """Characters and tags of a cell in order, its own tags first and last."""
    found = [f"<{element.tag}>", *(element.text or "")]
    for child in element:
        found += _content(child)
    if element.tag != "unk":
        found.append(f"</{element.tag}>")
    return found + list(element.tail or "") if element.tag != "td" else found
