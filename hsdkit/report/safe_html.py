"""Untrusted Markdown as HTML that can hold no script, no link and no address to load.

CommonMark is rendered with raw HTML, links and images switched off; tables, which document parsers write in HTML, are
rebuilt from a handful of tags without their attributes.
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markupsafe import Markup

_MARKDOWN = (
    MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "image", "autolink", "reference"])
)
_TABLE = re.compile(r"<table\b.*?(?:</table\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_KEPT = frozenset({"table", "thead", "tbody", "tr", "td", "th"})
_PARENTS = {"thead": "table", "tbody": "table", "tr": "table", "td": "tr", "th": "tr"}
_MOST_SPAN = 100


def render(markdown: str) -> Markup:
    """The Markdown as a safe HTML fragment; what is not understood appears as the text it is."""
    out = []
    at = 0
    for found in _TABLE.finditer(markdown):
        out += [_MARKDOWN.render(markdown[at : found.start()]), _table(found.group())]
        at = found.end()
    out.append(_MARKDOWN.render(markdown[at:]))
    return Markup("".join(out))


def _table(source: str) -> str:
    parser = _TableParser()
    try:
        parser.feed(source)
        parser.close()
    except AssertionError:  # Python's parser at `<![x[`
        return f"<p>{escape(source)}</p>"
    return parser.finish()


class _TableParser(HTMLParser):
    """Rebuilds one table: known tags in their places, spans as numbers, everything else as text or nothing."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.out.append("<br>")
            return
        if tag not in _KEPT:
            return
        if tag == "table":
            if self.open:
                return  # a table within a table: its rows join the outer one
        else:
            self._close_to(_PARENTS[tag])
            if _PARENTS[tag] not in self.open:
                return
        spans = "".join(
            f' {name}="{min(int(value), _MOST_SPAN)}"'
            for name, value in attrs
            if name in ("colspan", "rowspan") and value and re.fullmatch(r"[0-9]{1,4}", value)
        )
        self.out.append(f"<{tag}{spans if tag in ('td', 'th') else ''}>")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open[-1] != tag:
                self._close()
            self._close()

    def handle_data(self, data: str) -> None:
        self.out.append(escape(data))

    def finish(self) -> str:
        while self.open:
            self._close()
        return "".join(self.out)

    def _close(self) -> None:
        self.out.append(f"</{self.open.pop()}>")

    def _close_to(self, parent: str) -> None:
        """Closes what cannot contain the next tag (an unclosed cell before a cell, an unclosed row before a row)."""
        keep = {"table", "thead", "tbody"} if parent == "table" else {"table", "thead", "tbody", "tr"}
        while self.open and self.open[-1] not in keep:
            self._close()
