"""A page as one line of JSON records: `[{"bbox": [x0, y0, x1, y1], "category": "Text", "text": "..."}, ...]`.

This is what dots.ocr writes: keys in this order, `", "` and `": "` between them, letters as they are, no text in
pictures. Outputs are read leniently: cut ones, quotes and backslashes that lack their escape, other key orders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hsdkit_plugins.targets.formats.blocks import Block, rounded, stated_label, without_repeats

from hsdkit.regions import Box, Label

_FENCE = re.compile(r"\A\s*```(?:json)?\s*")
_START = re.compile(r"\A\s*\[\s*(?:\{|\]|\Z)|\A\s*\{\s*\"(?:bbox|category)")
_RECORD = re.compile(r"(?:\A|[\[,}\s])(?=\{\s*\"(?:bbox(?:_2d)?|category|text)\"\s*:)")
_BOX = re.compile(r"\"bbox(?:_2d)?\"\s*:\s*\[([^\]\"]*)")
_KIND = re.compile(r"\"category\"\s*:\s*\"([^\"]*)")
_TEXT = re.compile(r"\"text\"\s*:\s*\"")
#: A quote without escape that a record goes on or ends behind. Runs of spaces are never matched by two parts in turn:
#: that would take the square of their length.
_TEXT_END = re.compile(r"(?<!\\)(?:\\\\)*(\")(?=\s*,\s*\"(?:bbox|category)|\s*\}|[\s}\],]*\Z)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
#: LaTeX whose backslash was not escaped, as JSON decodes it: `\\theta` becomes a tab and `heta`.
_CONTROL = re.compile(r"[\t\r\b\f](?=[a-z])|\n(?=(?:abla|eq|e|u|ot|otin|mid|i|eg|onumber)(?![a-z]))")
_COMMANDS = {"\t": r"\t", "\r": r"\r", "\b": r"\b", "\f": r"\f", "\n": r"\n"}
_MATH = re.compile(r"(\$\$.*?\$\$|\$[^$]*\$|\\\((?:(?!\\\().)*?\\\)|(?<!\\)\\\[(?:(?!(?<!\\)\\\[).)*?\\\])", re.DOTALL)


@dataclass(frozen=True)
class Records:
    """The `Layout` of JSON records.

    names: the category a label is written as; labels that are missing are left out. Where several labels share a
    category, the first is what reading gives.
    pictures: the labels that have no text.
    """

    names: Mapping[Label, str]
    pictures: frozenset[Label] = frozenset({Label.FIGURE})

    #: All that stands between two texts: the boxes differ, so candidates for the next record fork right behind it.
    separator = '"}, {"bbox": ['
    grid = None

    def write(self, blocks: Sequence[Block]) -> tuple[str, ...]:
        records = [self._record(b) for b in blocks if self._written(b)]
        if records:
            records[0] = '[{"bbox": [' + records[0]
            records[-1] += '"}]'
        return tuple(records)

    def _written(self, block: Block) -> bool:
        if block.label not in self.names or block.box is None:
            return False
        return block.label in self.pictures or bool(block.text.strip())

    def _record(self, block: Block) -> str:
        """The record between two separators."""
        box = rounded(block.box)
        head = f'{box.x0:.0f}, {box.y0:.0f}, {box.x1:.0f}, {box.y1:.0f}], "category": "{self.names[block.label]}'
        if block.label in self.pictures:
            return head
        return f'{head}", "text": "{json.dumps(block.text, ensure_ascii=False)[1:-1]}'

    def read(self, text: str) -> tuple[Block, ...] | None:
        if fenced := _FENCE.match(text):
            text = text[fenced.end() :].rstrip().removesuffix("```")
        if not _START.match(text):
            return None
        labels = {name: label for label, name in reversed(list(self.names.items()))}
        return without_repeats([self._block(record, labels) for record in _records(text)])

    @staticmethod
    def _block(record: Mapping[str, Any], labels: Mapping[str, Label]) -> Block:
        kind = str(record.get("category") or "")
        label = labels.get(kind) or stated_label(kind)
        text = record.get("text")
        text = _repaired(text if isinstance(text, str) else "", formula=label is Label.FORMULA)
        return Block(label, text, _box(record.get("bbox", record.get("bbox_2d"))), kind=kind)


def _records(text: str) -> Iterator[Mapping[str, Any]]:
    try:
        data = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        starts = [m.end() for m in _RECORD.finditer(text)]
        for start, end in zip(starts, [*starts[1:], len(text)], strict=False):
            record = _record(text[start:end])
            if record.get("text") or record.get("category"):
                yield record
        return
    for record in data if isinstance(data, list) else [data]:
        if isinstance(record, dict):
            yield record


def _record(text: str) -> Mapping[str, Any]:
    """One record, whole or not."""
    try:
        data = json.loads(text.rstrip().rstrip(",]").rstrip(), strict=False)
        if isinstance(data, dict):
            return data
    except (ValueError, RecursionError):
        pass
    record: dict[str, Any] = {}
    if box := _BOX.search(text):
        record["bbox"] = box[1].split(",")
    if kind := _KIND.search(text):
        record["category"] = kind[1]
    if start := _TEXT.search(text):
        rest = text[start.end() :]
        end = _TEXT_END.search(rest)
        record["text"] = _unescaped(rest[: end.start(1)] if end else rest)
    return record


def _unescaped(text: str) -> str:
    """The text of a JSON string; what is no escape of JSON stays as it is, a cut one goes."""

    def char(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else _PLAIN.get(code, match[0])

    return _ESCAPE.sub(char, re.sub(r"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?\Z", r"\1", text))


def _repaired(text: str, formula: bool) -> str:
    """Commands of LaTeX whose backslash was read as part of an escape get it back."""

    def mend(tex: str) -> str:
        return _CONTROL.sub(lambda m: _COMMANDS[m[0]], tex)

    # Escaped halves of a character become one; a lone half cannot be written down.
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if formula:
        return mend(text)
    return "".join(mend(part) if i % 2 else part for i, part in enumerate(_MATH.split(text)))


def _box(value: Any) -> Box | None:
    try:
        x0, y0, x1, y1 = (float(v) for v in value)
    except (TypeError, ValueError):
        return None
    box = Box(x0, y0, x1, y1)
    return box if all(abs(v) < 1e6 for v in (x0, y0, x1, y1)) and box.area > 0 else None
