"""Tables between their spellings: HTML or plain rows in, a grid of cells in the middle, HTML or Markdown out (OTSL:
`otsl.py`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from html.parser import HTMLParser
from typing import Literal


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; a cell that spans rows or columns stands once, at its top left. `head`: it heads a column or row."""

    text: str = ""
    rows: int = 1
    columns: int = 1
    head: bool = False

    def with_text(self, text: str) -> Cell:
        return replace(self, text=text)


Grid = list[list[Cell]]


@dataclass(frozen=True, slots=True)
class HtmlStyle:
    """How a model writes HTML tables.

    line, indent: what stands between tags (`"\\n"` for a tag a line) and the indentation of a level.
    table: the attributes of `<table>`, with the space before them.
    head: `td` (all cells alike), `th` (head cells are `<th>`), `thead` (and their rows stand in `<thead>`).
    body: whether the rows stand in `<tbody>`.
    columns_first: whether `colspan` is written before `rowspan`.
    escape: whether `&`, `<` and `>` in cells are written as entities.
    """

    line: str = ""
    indent: str = ""
    table: str = ""
    head: Literal["td", "th", "thead"] = "td"
    body: bool = False
    columns_first: bool = False
    escape: bool = False


#: A span beyond this is a broken attribute, not a table.
_MAX_SPAN = 100
_VALUE = re.compile(r"[-+(]?[$€£¥]?\d[\d.,:/%()\-+]*[%)]?|[-–—]|n/?a", re.IGNORECASE)
_PIPE, _OUTER = re.compile(r"(?<!\\)\|"), re.compile(r"\A\||(?<!\\)\|\Z")
_COMMENT = re.compile(r"<!--(?:(?!<!--).)*?-->", re.DOTALL)
#: A "<" that opens no tag found in tables is text: a parser would swallow what follows it.
_STRAY = re.compile(
    r"<(?!/?(?:html|body|table|caption|colgroup|col|thead|tbody|tfoot|tr|td|th|div|p|span|br|b|i|u|em|strong|sup|sub|"
    r"font|a|ul|ol|li|img)\b[^<]*>)",
    re.IGNORECASE,
)


class _Reader(HTMLParser):
    """Collects rows and cells; text outside of cells becomes a row of its own, so that nothing is lost."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.grid: Grid = []
        self.text: list[str] = []
        self.cell: Cell | None = None
        self.in_head = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th"):
            self.close_cell()
            spans = dict(attrs)
            self.cell = Cell(
                rows=_span(spans.get("rowspan")), columns=_span(spans.get("colspan")), head=tag == "th" or self.in_head
            )
        elif tag in ("thead", "tbody"):
            self.in_head = tag == "thead"
        elif tag == "tr":
            self.close_cell()
            self.grid.append([])
        elif tag in ("br", "p", "li", "div"):
            self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "table", "caption"):
            self.close_cell()
        elif tag == "thead":
            self.in_head = False

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def close_cell(self) -> None:
        text = " ".join("".join(self.text).split())
        self.text = []
        if self.cell is not None:
            if not self.grid:
                self.grid.append([])
            self.grid[-1].append(self.cell.with_text(text))
        elif text:
            self.grid.append([Cell(text)])
        self.cell = None


def _span(value: str | None) -> int:
    return min(int(value), _MAX_SPAN) if value and value.isdecimal() and int(value) > 0 else 1


def html_grid(html: str) -> Grid:
    """The cells of an HTML table, however sloppy: missing end tags, `<th>`, `<thead>`, styles, text between cells."""
    reader = _Reader()
    reader.feed(_STRAY.sub("&lt;", _COMMENT.sub("", html)))
    reader.close()
    reader.close_cell()
    return [row for row in reader.grid if row]


def plain_grid(text: str) -> Grid:
    """A guess at the columns of plain rows, one row a line.

    Columns end at tabs, pipes or two and more spaces; rows without any of these are split at single spaces when all
    have equally many words, else the numbers at the end of the rows are taken for columns.
    """
    lines = [line.strip() for line in text.replace("\r\n", "\n").split("\n")]
    lines = [line for line in lines if line and not re.fullmatch(r"[|\s:+=-]*-[|\s:+=-]*", line)]
    rows = [_separated(line) for line in lines]
    if rows and all(len(row) == 1 for row in rows):
        words = [row[0].split() for row in rows]
        counts = {len(w) for w in words}
        even = len(rows) > 1 and len(counts) == 1 and counts != {1}
        rows = words if even else _trailing_values(words)
    return [[Cell(c) for c in row] for row in rows]


def _separated(line: str) -> list[str]:
    if "|" in line:
        return [c.strip().replace(r"\|", "|") for c in _PIPE.split(_OUTER.sub("", line))]
    return [c.strip() for c in re.split(r"\t+| {2,}", line)]


def _trailing_values(rows: Sequence[list[str]]) -> list[list[str]]:
    """`Total cost 12 15` -> `Total cost`, `12`, `15`: as many value columns as most of the rows have."""
    runs = []
    for words in rows:
        run = 0
        while run < len(words) - 1 and _VALUE.fullmatch(words[-1 - run]):
            run += 1
        runs.append(run)
    with_values = sorted(r for r in runs if r)
    if len(with_values) * 2 < len(rows):
        return [[" ".join(words)] for words in rows]
    k = with_values[len(with_values) // 2]
    # A header row has no numbers: its last k words head the value columns when it has more words than that.
    split = [
        len(w) - k if len(w) > k and (run >= k or run == 0) else len(w) - run for w, run in zip(rows, runs, strict=True)
    ]
    return [[" ".join(w[:s]), *w[s:]] for w, s in zip(rows, split, strict=True)]


PLAIN = HtmlStyle()


def html_table(rows: Grid, style: HtmlStyle = PLAIN) -> str:
    """`<table><tr><td>..</td></tr></table>`, by default with nothing between the tags; spans only where a cell has
    them."""
    heads = next((i for i, row in enumerate(rows) if not all(cell.head for cell in row)), len(rows))
    if style.head == "thead":
        # Drafters seldom tell heads; models that write <thead> put the first row there.
        heads = heads or min(1, len(rows))
        parts = [("thead", rows[:heads]), ("tbody" if style.body else "", rows[heads:])]
    else:
        parts = [("tbody" if style.body else "", rows)]
    lines: list[tuple[int, str]] = [(0, f"<table{style.table}>")]
    for tag, part in parts:
        if not part:
            continue
        level = 1 + bool(tag)
        lines += [(1, f"<{tag}>")] * bool(tag)
        for row in part:
            cells = [(level + 1, _td(cell, style, tag == "thead")) for cell in row]
            lines += [(level, "<tr>"), *cells, (level, "</tr>")]
        lines += [(1, f"</{tag}>")] * bool(tag)
    lines.append((0, "</table>"))
    return style.line.join(style.indent * level + text for level, text in lines)


def _td(cell: Cell, style: HtmlStyle, in_head: bool) -> str:
    spans = [f' rowspan="{cell.rows}"' * (cell.rows > 1), f' colspan="{cell.columns}"' * (cell.columns > 1)]
    tag = "th" if style.head != "td" and (cell.head or in_head) else "td"
    text = escape(cell.text, quote=False) if style.escape else cell.text
    return f"<{tag}{''.join(reversed(spans) if style.columns_first else spans)}>{text}</{tag}>"


def markdown_table(rows: Grid) -> str:
    """A pipe table; the first row is its head, spans become empty cells, pipes in cells are escaped."""
    if not rows:
        return ""
    full = _without_spans(rows)
    width = max(map(len, full))
    lines = [f"| {' | '.join(_escaped(row) + [''] * (width - len(row)))} |" for row in full]
    lines.insert(1, f"| {' | '.join(['---'] * width)} |")
    return "\n".join(lines)


def _escaped(row: list[str]) -> list[str]:
    return [c.replace("|", r"\|") for c in row]


def _without_spans(rows: Grid) -> list[list[str]]:
    return [[place[0].text if place and place[1:] == (0, 0) else "" for place in row] for row in places(rows)]


def places(rows: Grid) -> list[list[tuple[Cell, int, int] | None]]:
    """What lies at each row and column: a cell, and how far below and right of its top left; None between a row's end
    and a cell that reaches down beyond it."""
    full: list[list[tuple[Cell, int, int] | None]] = []
    above: dict[int, tuple[Cell, int, int]] = {}  # column -> what reaches into the next row
    for row in rows:
        out: list[tuple[Cell, int, int] | None] = []
        for cell in row:
            while len(out) in above:
                out.append(above.pop(len(out)))
            for right in range(cell.columns):
                above.pop(len(out), None)
                out.append((cell, 0, right))
        while above:
            out.append(above.pop(len(out), None))
        above = {c: (p[0], p[1] + 1, p[2]) for c, p in enumerate(out) if p and p[1] + 1 < p[0].rows}
        full.append(out)
    return full
