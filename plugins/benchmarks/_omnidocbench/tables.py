"""Tables of predictions and of the ground truth, in the one form of HTML that TEDS compares."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

_TABLE = re.compile(r"<table\b[^>]*>(.*)</table>", re.DOTALL | re.IGNORECASE)
_ATTRIBUTES = tuple(re.compile(f'( {name}=".*?")') for name in ("style", "height", "width", "align", "class"))
_PLAIN_TAGS = tuple(f"<{slash}{tag}>" for tag in ("sup", "sub", "span", "div", "p") for slash in ("", "/"))
_COLUMNS = re.compile("<colgroup>.*?</colgroup>")

#: A row of a Markdown table, or whatever else stands from a bar to a bar at the end of a line.
_ROW = re.compile(r"\|\s*.*?\s*\|\n", re.DOTALL)
_ROW_TABLE = re.compile(r"<table>[\s\S]*?</table>")
_AROUND_ROWS = re.compile(r"</?t(able|head|body)>")
_COMMENT = re.compile(r"<!--[\s\S]*?-->")


def table_norm(text: str) -> str:
    """`<html><body><table>` with rows and cells only; "" for a text without a table."""
    if "<table" not in text.replace(" ", "").replace("'", '"'):
        return ""
    table = html.unescape(_cells_only(text)).replace("\n", "")
    table = "".join(_TABLE.findall(unicodedata.normalize("NFKC", table).strip()))
    for attribute in _ATTRIBUTES:
        table = attribute.sub("", table)
    table = re.sub(r"\s+", " ", re.sub("</?tbody>", "", table))
    table = f'<html><body><table border="1" >{table}</table></body></html>'
    for tag in _PLAIN_TAGS:
        table = table.replace(tag, "")
    return _COLUMNS.sub("", table)


def _soup(text: str) -> Any:
    from bs4 import BeautifulSoup

    return BeautifulSoup(text, "html.parser")


def _cells_only(text: str) -> str:
    soup = _soup(text)
    for head in soup.find_all("th"):
        head.name = "td"
    for math in soup.find_all("math"):
        math.replace_with(f"${math.get('alttext', '')}$")
    for tag in soup.find_all(["thead", "span"]):
        tag.unwrap()
    return str(soup)


def cell_texts(table: str) -> list[str]:
    """The texts of the cells that hold nothing but text."""
    return [re.sub(r"\$\\cdot\$", "", cell.string).strip() for cell in _soup(table).find_all("td") if cell.string]


def has_markdown_tables(text: str) -> bool:
    return len(_ROW.findall(text + "\n")) >= 2


def markdown_tables_as_html(text: str) -> str:
    """`text` with its Markdown tables as HTML tables.

    As the evaluator does it: a cell that holds a colon or three dashes is taken for a rule and dropped, and so is the
    line of text right above a table.
    """
    text = _ROW.sub(lambda row: _row_as_table(row[0]), text.replace("\r", "") + "\n")
    merged = _merged_rows(text).replace("<table>", '<table border="1" >')
    return merged.replace("<td>", '<td colspan="1" rowspan="1">')


def _row_as_table(row: str) -> str:
    """Each row is a table of its own at first: its first line the head, lines from the third on the body."""

    def cells(line: str, tag: str, indent: str) -> str:
        return "".join(f"{indent}<{tag}>{c.strip()}</{tag}>\n" for c in line.strip().split("|")[1:-1])

    lines = row.strip().split("\n")
    body = "".join(f"    <tr>\n{cells(line, 'td', '      ')}    </tr>\n" for line in lines[2:])
    head = f"    <tr>\n{cells(lines[0], 'th', '      ')}    </tr>\n"
    return f"<table>\n  <thead>\n{head}  </thead>\n  <tbody>\n{body}  </tbody>\n</table>\n"


def _is_rule(line: str) -> bool:
    return "---" in line or ":" in line


def _merged_rows(text: str) -> str:
    """Tables that follow one another line by line made one."""
    found: list[str] = []
    rows, last, inside = "", "", False
    for line in text.split("\n"):
        if "<table>" in line:
            inside = True
            rows += last
        elif inside:
            if not _is_rule(last) and "</thead>" not in last:
                rows += "\n" + last
            if "</table>" in last:
                inside = False
                found.append(_one_table(rows))
                rows = ""
        else:
            found.append(last)
        last = line
    if last:
        found.append(_one_table(f"{rows}\n{last}") if inside or "</table>" in last else last)
    return "\n".join(found)


def _one_table(rows: str) -> str:
    lines: list[str] = []
    for table in _ROW_TABLE.findall(_COMMENT.sub("", rows)):
        kept = [line for line in table.split("\n") if not _AROUND_ROWS.search(line)]
        if len(kept) > 2:  # more than the tags of an empty row
            lines += [line.replace("<th>", "<td>").replace("</th>", "</td>") for line in kept]
    return "\n\n<table>\n" + "\n".join(lines) + "\n</table>\n\n"
