"""What a model wrote as one plain Markdown dialect: no wrapping fence, tables closed, no cut tags, no endless tails."""

from __future__ import annotations

import re

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.tables import html_grid, markdown_table

from hsdkit.results import FinishReason

_FENCED = re.compile(r"\A```(?:markdown|md|html|latex)?[ \t]*\n(.*?)(?:\n```[ \t]*)?\Z", re.DOTALL)
_CUT_TAG = re.compile(r"<[/a-zA-Z][^<>\n]{0,60}\Z|<\Z")
_TAG = re.compile(r"<(/?)(table|thead|tbody|tr|td|th)\b[^<>]*>", re.IGNORECASE)
_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL | re.IGNORECASE)
_CODE = re.compile(r"(^```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)
#: No spaces beside the dots: where an end is missing, each of several repeats would be tried with each other.
_DISPLAY = re.compile(r"\\\[(.*?)\\\]", re.DOTALL)
_INLINE = re.compile(r"\\\((.*?)\\\)")
#: A tail is a loop when a unit of at most `_UNIT` characters repeats `_TIMES` times over at least `_LENGTH` characters.
_UNIT, _TIMES, _LENGTH = 400, 4, 60


def clean(text: str, dialect: Dialect, finish_reason: FinishReason = "eos") -> str:
    """Markdown from raw output. The end of an output that was stopped (`length`, `loop`) is mended: a cut tag goes,
    a repeating tail stays once."""
    if finish_reason == "loop":
        text = without_loop(text)
    text = text.strip()
    if (fenced := _FENCED.match(text)) and "\n```" not in fenced[1]:
        text = fenced[1].strip()
    if finish_reason != "eos":
        text = _CUT_TAG.sub("", text)
    parts = _CODE.split(text)
    parts[::2] = [_outside_code(part, dialect) for part in parts[::2]]
    return "\n".join(line.rstrip(" \t") for line in "".join(parts).split("\n")).strip()


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
    text = _closed_tables(text)
    # One dialect: display formulas between $$, inline ones between $.
    text = _DISPLAY.sub(lambda m: f"$$\n{m[1].strip()}\n$$", text)
    text = _INLINE.sub(lambda m: f"${m[1].strip()}$", text)
    if dialect.tables == "markdown":
        text = _TABLE.sub(lambda m: markdown_table(html_grid(m[0])), text)
    return re.sub(r"\n{3,}", "\n\n", text)


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
