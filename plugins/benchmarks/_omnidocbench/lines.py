"""Blocks of both sides as lines that can be matched: one-column arrays split, texts written the same way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hsdkit_plugins.benchmarks._omnidocbench.ground_truth import FORMULA, IGNORED, Element
from hsdkit_plugins.benchmarks._omnidocbench.prediction import Block
from hsdkit_plugins.benchmarks._omnidocbench.text import formula_norm, text_norm

_ARRAY = re.compile(r"\\begin\{array\}\{(?P<columns>[^}]*)\}(?P<body>.*?)\\end\{array\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Expected:
    """A line of the ground truth: as written, as compared, its category, its place in reading order ("" for none)."""

    text: str
    norm: str
    category: str
    position: float | str

    @property
    def ignored(self) -> bool:
        return self.category in IGNORED


@dataclass(frozen=True, slots=True)
class Predicted:
    """A line of the prediction: as written, as compared, what it was in the Markdown, where it stood there."""

    text: str
    norm: str
    origin: str
    position: float


def expected_lines(elements: Sequence[Element]) -> list[Expected]:
    items = [part for element in elements for part in _split_element(element)]
    lines = [(e.text, formula_norm(e.text) if e.category == FORMULA else text_norm(e.text), e.category) for e in items]
    # Lines that are empty are left out, yet the evaluator goes on counting positions with them.
    kept = [line for line in lines if line[0] and line[1]]
    return [Expected(*line, item.order or "") for line, item in zip(kept, items, strict=False)]


def predicted_lines(blocks: Iterable[Block]) -> list[Predicted]:
    """Inline formulas come last; otherwise in order."""
    ordered = sorted(blocks, key=lambda block: (block.inline, block.at))
    items = [part for block in ordered for part in _split_block(block)]
    lines = [(b.text, formula_norm(b.text) if b.kind == "formula" else text_norm(b.text)) for b in items]
    kept = [line for line in lines if line[0] and line[1]]
    return [Predicted(*line, item.origin, item.at) for line, item in zip(kept, items, strict=False)]


def _array_lines(latex: str) -> list[tuple[int, str]] | None:
    """The lines of the first array with where each starts; None without one, or where it has several columns."""
    match = _ARRAY.search(latex)
    if not match:
        return None
    columns = re.sub(r"!{[^}]*}", "", re.sub(r"@{[^}]*}", "", re.sub(r"\s+|\|", "", match["columns"])))
    if columns not in ("l", "c", "r"):
        return None
    body, found, at = match["body"], [], 0
    for line in (piece.strip() for piece in body.split("\\\\")):
        if line:
            start = body.find(line, at)
            at = start + len(line)
            found.append((match.start("body") + start, line))
    return found


def _split_element(element: Element) -> Iterator[Element]:
    lines = _array_lines(element.text) if element.category == FORMULA else None
    if lines is None:
        yield element
        return
    for number, (_, line) in enumerate(lines, 1):
        yield replace(element, text=f"\\[{line}\\]", order=round(float(element.order or 0) + number / 10, 1))


def _split_block(block: Block) -> Iterator[Block]:
    lines = _array_lines(block.text) if block.kind == "formula" else None
    if lines is None:
        yield block
        return
    for start, line in lines:
        yield replace(block, text=f"\\[{line}\\]", at=block.at + start)
