"""What a model wrote as one plain Markdown dialect: no wrapping fence, tables closed, no cut tags, no endless tails;
records and tags as the text they hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.formats.blocks import Block, bare_formula
from hsdkit_plugins.targets.otsl import OTSL, otsl_grid
from hsdkit_plugins.targets.tables import html_grid, html_table, markdown_table

from hsdkit.regions import OMITTED, Label
from hsdkit.results import FinishReason

_FENCED = re.compile(r"\A```(?:markdown|md|html|latex)?[ \t]*\n(.*?)(?:\n```[ \t]*)?\Z", re.DOTALL)
_CUT_TAG = re.compile(r"<[/a-zA-Z][^<>\n]{0,60}\Z|<\Z")
_TAG = re.compile(r"<(/?)(table|thead|tbody|tr|td|th)\b[^<>]*>", re.IGNORECASE)
_TABLE = re.compile(r"<table\b[^<>]*>.*?</table>", re.DOTALL | re.IGNORECASE)
_CODE = re.compile(r"(^```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)
#: None begins within another, and no spaces beside the dots: where an end is missing, each beginning or repeat would be
#: tried with all that follows. The line break `\\[2pt]` of LaTeX begins none.
_DISPLAY = re.compile(r"(?<!\\)\\\[((?:(?!(?<!\\)\\\[).)*?)\\\]", re.DOTALL)
_INLINE = re.compile(r"(?<!\\)\\\(((?:(?!\\\().)*?)\\\)")
_AROUND = re.compile(r"(</?(?:table|thead|tbody|tr|td|th)\b[^<>]*>)", re.IGNORECASE)
_SPANS = re.compile(r"\b(?:rowspan|colspan)\s*=\s*[\"']?\d+[\"']?", re.IGNORECASE)
_PAGE_BREAK = re.compile(r"<(?:-+ ?Page ?Split ?-+|page_break)>", re.IGNORECASE)
_BULLET = re.compile(r"^([ \t]*)[*•◦▪●] +(?=\S)", re.MULTILINE)
_NUMBER = re.compile(r"^([ \t]*\d{1,3})\) +(?=\S)", re.MULTILINE)
_ITEM = re.compile(r"(?:[-*+•◦▪●]|\(?\w{1,3}[.)])\s")
#: A tail is a loop when a unit of at most `_UNIT` characters repeats `_TIMES` times over at least `_LENGTH` characters.
_UNIT, _TIMES, _LENGTH = 400, 4, 60


def clean(text: str, dialect: Dialect, finish_reason: FinishReason = "eos") -> str:
    """Markdown from raw output. The end of an output that was stopped (`length`, `loop`) is mended: a cut tag goes,
    a repeating tail stays once."""
    if finish_reason == "loop":
        text = without_loop(text)
    if dialect.layout is not None and (blocks := dialect.layout.read(text)) is not None:
        return _joined(_without_looped(blocks) if finish_reason == "loop" else blocks, dialect)
    text = text.strip()
    if (fenced := _FENCED.match(text)) and "\n```" not in fenced[1]:
        text = fenced[1].strip()
    if finish_reason != "eos":
        text = _CUT_TAG.sub("", text)
    return _tidy(text, dialect)


def _tidy(text: str, dialect: Dialect) -> str:
    parts = _CODE.split(text)
    parts[::2] = [_outside_code(part, dialect) for part in parts[::2]]
    return "\n".join(line.rstrip(" \t") for line in "".join(parts).split("\n")).strip()


def _joined(blocks: Sequence[Block], dialect: Dialect) -> str:
    """The blocks as Markdown: those that document parsers leave out are, items of a list follow each other."""
    out = ""
    before: Label | None = None
    for block in blocks:
        if block.label in OMITTED or not (text := _markdown(block, dialect)):
            continue
        if out:
            out += "\n" if block.label is before is Label.LIST else "\n\n"
        out, before = out + text, block.label
    return out


def _markdown(block: Block, dialect: Dialect) -> str:
    text = block.text.strip()
    if not text:
        return ""
    match block.label:
        case Label.FORMULA:
            return f"$$\n{bare_formula(text)}\n$$"
        case Label.CODE:
            return text if text.startswith("```") else f"```\n{text}\n```"
        case Label.TITLE | Label.HEADING if not text.startswith("#"):
            level = block.level or (1 if block.label is Label.TITLE else 2)
            return f"{'#' * level} {_tidy(text, dialect)}"
        case Label.LIST if not _ITEM.match(text):
            return f"- {_tidy(text, dialect)}"
    return _tidy(text, dialect)


def _without_looped(blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks of a model that was stopped because it looped: of a run that says the same, wherever on the page, the
    first."""
    return [b for i, b in enumerate(blocks) if i == 0 or not b.text or b.text != blocks[i - 1].text]


def without_loop(text: str) -> str:
    """`text` with a unit that repeats at its end kept once (and what of it was begun again dropped)."""
    best = text
    tail = text[-8 * _UNIT :]
    for unit in range(1, min(_UNIT, len(tail) // _TIMES) + 1):
        # How far back the text equals itself shifted by `unit`: the last repetition may be incomplete.
        same = 0
        while same + unit < len(tail) and tail[-1 - same] == tail[-1 - same - unit]:
            same += 1
        if same + unit >= max(_LENGTH, _TIMES * unit):
            while same + unit < len(text) and text[-1 - same] == text[-1 - same - unit]:
                same += 1
            best = text[: len(text) - same]
            break
    return best


def _outside_code(text: str, dialect: Dialect) -> str:
    text = OTSL.sub(lambda m: html_table(otsl_grid(m[0])), _PAGE_BREAK.sub("\n\n", text))
    text = _TABLE.sub(_compact, _closed_tables(text))
    text = _NUMBER.sub(r"\1. ", _BULLET.sub(r"\1- ", text))
    # One dialect: display formulas between $$, inline ones between $.
    text = _DISPLAY.sub(lambda m: f"$$\n{m[1].strip()}\n$$", text)
    text = _INLINE.sub(lambda m: f"${m[1].strip()}$", text)
    if dialect.tables == "markdown":
        text = _TABLE.sub(lambda m: markdown_table(html_grid(m[0])), text)
    return re.sub(r"\n{3,}", "\n\n", text)


def _compact(table: re.Match[str]) -> str:
    """A table without space between its tags, and without attributes but spans."""
    text = "".join(map(str.strip, _AROUND.split(table[0])))
    return _TAG.sub(lambda m: f"<{m[1]}{m[2].lower()}{''.join(f' {a.lower()}' for a in _SPANS.findall(m[0]))}>", text)


def _closed_tables(text: str) -> str:
    """Every table tag left open gets its end: at the next `<table>`, or at the end of the text."""
    out: list[str] = []
    open_tags: list[str] = []
    last = 0
    for tag in _TAG.finditer(text):
        name, closes = tag[2].lower(), bool(tag[1])
        out.append(text[last : tag.start()])
        last = tag.end()
        if closes and name not in open_tags:
            continue  # an end without a beginning
        if closes:
            while open_tags[-1] != name:
                out.append(f"</{open_tags.pop()}>")
            open_tags.pop()
        else:
            # A cell ends where the next cell or row begins, a row where the next row begins.
            if name in ("tr", "td", "th"):
                ends = ("td", "th", "tr") if name == "tr" else ("td", "th")
                while open_tags and open_tags[-1] in ends:
                    out.append(f"</{open_tags.pop()}>")
            open_tags.append(name)
        out.append(tag[0])
    out.append(text[last:])
    out += [f"</{name}>" for name in reversed(open_tags)]
    return "".join(out)
