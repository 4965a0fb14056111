"""The Markdown of a prediction cut into blocks: tables, formulas, code, paragraphs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hsdkit_plugins.benchmarks._omnidocbench.tables import has_markdown_tables, markdown_tables_as_html
from hsdkit_plugins.benchmarks._omnidocbench.text import shortened_runs, unfenced

Kind = Literal["latex_table", "html_table", "formula", "text"]

_IMAGE = re.compile(r"!\[.*?\]\(.*?\)")
_FORMULA = re.compile(r"\$\$(.*?)\$\$|\\\[(.*?)\\\]|\$(.*?)\$|\\\((.*?)\\\)", re.DOTALL)
_DOLLARS = re.compile(r"\$\$(.*?)\$\$|\$(.*?)\$|\\\((.*?)\\\)", re.DOTALL)
_LATEX_TABLE = re.compile(r"\\begin{table}(.*?)\\end{table}", re.DOTALL)
_HTML_TABLE = re.compile(r"(<table.*?</table>)", re.DOTALL)
_CODE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
_COMMANDS = (
    re.compile(r"\\title\{(.*?)\}"),
    re.compile(r"\\title\s*\{\s*(.*?)\s*\}", re.DOTALL),
    re.compile(r"\\text\s*\{\s*(.*?)\s*\}", re.DOTALL),
    re.compile(r"\\section\*?\{(.*?)\}"),
    re.compile(r"\\section\*?\{\s*(.*?)\s*\}", re.DOTALL),
)


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a prediction; `at` is where the evaluator takes it to begin. `inline`: a formula inside a text,
    which the text still holds. `origin` is what it is called in a match: `inline`, `formula`, or another word."""

    kind: Kind
    at: int
    text: str
    origin: str = ""

    @property
    def inline(self) -> bool:
        return self.origin == "inline"


def blocks(markdown: str) -> list[Block]:
    """All blocks in order of their positions."""
    text = shortened_runs(unfenced(_IMAGE.sub("", markdown)))
    for tag in ("<html>", "</html>", "<body>", "</body>"):
        text = text.replace(tag, "")
    found: list[Block] = []
    for start, end in _latex_tables(text):
        found.append(Block("latex_table", start, text[start:end], "latex_table"))
        text = _blanked(text, start, end)
    for start, end in _balanced(text, r"<table(?:[^>]*)>", "</table>", len("</table>")):
        found.append(Block("html_table", start, text[start:end], "html_table"))
        text = _blanked(text, start, end)
    text = _without_formulas(text, found)
    if has_markdown_tables(text):
        text = markdown_tables_as_html(text)
        for match in list(_HTML_TABLE.finditer(text)):
            found.append(Block("html_table", match.start(), match[0].strip(), "markdown_table"))
            text = _blanked(text, *match.span())
    for match in list(_CODE.finditer(text)):
        found.append(Block("text", match.start(), match[2].strip(), "code"))
        text = _blanked(text, *match.span())
    for command in _COMMANDS:
        text = command.sub(r"\1", text)
    found += _paragraphs(text)
    return sorted(found, key=lambda block: block.at)


def _blanked(text: str, start: int, end: int) -> str:
    return text[:start] + " " * (end - start) + text[end:]


def _latex_tables(text: str) -> list[tuple[int, int]]:
    tables = [match.span() for match in _LATEX_TABLE.finditer(text)]
    for span in tables:
        text = _blanked(text, *span)
    # The evaluator counts an end mark as one character longer than it is, and so takes the next one with it.
    return sorted(tables + list(_balanced(text, r"\\begin{tabular}", r"\\end{tabular}", len(r"\\end{tabular}"))))


def _balanced(text: str, begin: str, end: str, skip: int, offset: int = 0) -> Iterator[tuple[int, int]]:
    """Outermost spans between the marks; where one is never closed, those after its begin."""
    opened: list[int] = []
    at = 0
    while at < len(text):
        first, last = (re.compile(mark).search(text, at) for mark in (begin, end))
        if not first and not last:
            break
        if first and (not last or first.start() < last.start()):
            opened.append(first.start())
            at = first.start() + skip
        elif last:
            if opened:
                start = opened.pop()
                if not opened:
                    stop = min(last.start() + skip, len(text))
                    yield offset + start, offset + stop
            at = last.start() + skip
    if opened:
        behind = opened[0] + len(begin)
        yield from _balanced(text[behind:], begin, end, skip, offset + behind)


def _without_formulas(text: str, found: list[Block]) -> str:
    """Adds all formulas to `found`; displayed ones leave the text."""
    for match in list(_FORMULA.finditer(text)):
        line = " ".join(match[0].strip().split("\n"))
        dollars = _DOLLARS.search(line)
        if dollars is None:
            found.append(Block("formula", match.start(), line, "formula"))
        elif dollars[1]:
            found.append(Block("formula", match.start(), _DOLLARS.sub(r"\\[\1\\]", line), "formula"))
        else:
            found.append(Block("formula", match.start(), _DOLLARS.sub(r"\\[\2\3\\]", line), "inline"))
            continue
        text = _blanked(text, *match.span())
    return text


def _paragraphs(text: str) -> Iterator[Block]:
    """Pieces between blank lines, or between line ends where there is no blank line."""
    pieces = text.split("\n\n")
    if len(pieces) == 1:
        pieces = text.split("\n")
    at = 0  # counted without what stands between the pieces, as the evaluator does
    for piece in pieces:
        block = "\n".join(line.strip() for line in piece.strip().split("\n") if line.strip())
        if block.startswith("<table") and block.endswith("</table>"):
            yield Block("html_table", at, block, "html_table")
        elif block.startswith("$") and block.endswith("$"):
            if block.replace("$", "").strip():
                yield Block("formula", at, block, "formula")
        elif block:
            yield Block("text", at, block, "paragraph")
        at += len(piece)
