"""Tables between their spellings: HTML or plain rows in, a grid of cells in the middle, HTML or Markdown out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; a cell that spans rows or columns stands once, at its top left."""

    text: str = ""
    rows: int = 1
    columns: int = 1

    def with_text(self, text: str) -> Cell:
        return replace(self, text=text)


Grid = list[list[Cell]]

#: A span beyond this is a broken attribute, not a table.
_MAX_SPAN = 100
_VALUE = re.compile(r"[-+(]?[$€£¥]?\d[\d.,:/%()\-+]*[%)]?|[-–—]|n/?a", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
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

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("td", "th"):
            self.close_cell()
            spans = dict(attrs)
            self.cell = Cell(rows=_span(spans.get("rowspan")), columns=_span(spans.get("colspan")))
        elif tag == "tr":
            self.close_cell()
            self.grid.append([])
        elif tag in ("br", "p", "li", "div"):
            self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "tr", "table", "caption"):
            self.close_cell()

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
        return [c.strip() for c in line.strip("|").split("|")]
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


def html_table(rows: Grid) -> str:
    """`<table><tr><td>..</td></tr></table>` with nothing between the tags; spans only where a cell has them."""
    body = "".join(f"<tr>{''.join(map(_td, row))}</tr>" for row in rows)
    return f"<table>{body}</table>"


def _td(cell: Cell) -> str:
    spans = f' rowspan="{cell.rows}"' * (cell.rows > 1) + f' colspan="{cell.columns}"' * (cell.columns > 1)
    return f"<td{spans}>{cell.text}</td>"


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
    full: list[list[str]] = []
    covered: dict[int, int] = {}  # column -> rows still covered from above
    for row in rows:
        out: list[str] = []
        for cell in row:
            while covered.get(len(out), 0) > 0:
                out.append("")
            start = len(out)
            out += [cell.text] + [""] * (cell.columns - 1)
            if cell.rows > 1:
                covered |= dict.fromkeys(range(start, len(out)), cell.rows)
        while covered.get(len(out), 0) > 0:
            out.append("")
        covered = {c: left - 1 for c, left in covered.items() if left > 1}
        full.append(out)
    return full
