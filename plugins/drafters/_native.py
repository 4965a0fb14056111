"""What drafting libraries say of a page, read without trust: boxes into page pixels, text as regions hold it.

An entry that makes no sense is left out and counted; the draft's notes say how many were.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hsdkit.components import Environment
from hsdkit.documents import Page
from hsdkit.regions import Box, Draft, Format, Label, Region
from hsdkit.spelling import join_texts
from hsdkit.workers import environments

_TABLE = re.compile(r"<table\b", re.IGNORECASE)
_END_OF_TABLE = re.compile(r"</table\s*>", re.IGNORECASE)
_DELIMITERS = (("$$", "$$"), (r"\[", r"\]"), (r"\(", r"\)"), ("$", "$"))
_BULLET = re.compile(r"[-*+•‣◦▪●○■□►➢·–—]\s+")
_NUMBER = re.compile(r"(?:\(?\d{1,3}|[A-Za-z]|[ivxIVX]{2,5})[.)]\s+")

#: A heading of more characters is a paragraph that the library took for one.
_LONGEST_HEADING = 250


@dataclass
class Findings:
    """Regions of a page as they are found. `width` and `height` are what the library takes the page to measure, in the
    unit of its boxes, whose origin is the top left."""

    page: Page
    width: float
    height: float
    regions: list[Region] = field(default_factory=list)
    malformed: int = 0

    def box(self, corners: Any) -> Box | None:
        """`[x0, y0, x1, y1]` in page pixels, as far as it lies on the page; `None` for what is no box."""
        numbers = [number(n) for n in corners] if isinstance(corners, list | tuple) else []
        if len(numbers) != 4 or None in numbers:
            return None
        x, y = self.page.width / self.width, self.page.height / self.height
        x0, y0, x1, y1 = (float(n) for n in numbers if n is not None)
        box = Box(x0 * x, y0 * y, x1 * x, y1 * y).clamped(self.page.width, self.page.height)
        return box if box.area else None

    def add(
        self,
        corners: Any,
        label: Label,
        text: Any = "",
        format: Format = "text",
        *,
        level: Any = None,
        score: Any = None,
    ) -> None:
        box = self.box(corners)
        if box is None or not isinstance(text, str):
            self.malformed += 1
            return
        if label in (Label.TITLE, Label.HEADING) and len(text) > _LONGEST_HEADING:
            label, level = Label.TEXT, None
        known_level = level if isinstance(level, int) and not isinstance(level, bool) and 1 <= level <= 6 else None
        known_score = number(score)
        if known_score is not None and not 0 <= known_score <= 1:
            known_score = None
        self.regions.append(Region(box, label, text, format, known_level, known_score))

    def objects(self, items: Any) -> Iterator[dict[str, Any]]:
        """The JSON objects of a list; what else is in it, or is there in its place, is malformed."""
        if not isinstance(items, list):
            self.malformed += items is not None
            return
        for item in items:
            if isinstance(item, dict):
                yield item
            else:
                self.malformed += 1

    def draft(self, name: str) -> Draft:
        notes = (f"{name}: {self.malformed} malformed entries left out",) if self.malformed else ()
        return Draft(tuple(self.regions), name, notes=notes)


def command(environment: Environment, name: str) -> str:
    """How to call a command of the drafter's library: by its path where it is in the drafter's own environment."""
    if environments.state(environment) != "ready":
        return name
    return str(environments.python(environments.folder(environment)).with_name(name))


def folder_option(path: str) -> str:
    """A folder as the library is told it, which may run elsewhere; "" stays ""."""
    return str(Path(path).expanduser().absolute()) if path else ""


def no_folder(error: str) -> str | None:
    """What to say where a worker script's error is that `drafter.models` names no folder."""
    found = re.search(r"no models folder (.+?)(?= <- |$)", error)
    return f"drafter.models={found[1]}: there is no such folder" if found else None


def number(value: Any) -> float | None:
    """A finite number as such; `None` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def paragraph(text: str) -> str:
    """Lines as one line of running text."""
    return join_texts(*(" ".join(line.split()) for line in text.splitlines()))


def table_html(text: str) -> str:
    """The `<table>` itself out of the page or body around it; "" if there is none."""
    begin = _TABLE.search(text)
    ends = [end.end() for end in _END_OF_TABLE.finditer(text)]
    return text[begin.start() : ends[-1]] if begin and ends and begin.start() < ends[-1] else ""


def latex(text: str) -> str:
    """A formula without delimiters and white space around it."""
    text = text.strip()
    for before, after in _DELIMITERS:
        if len(text) > len(before + after) and text.startswith(before) and text.endswith(after):
            return text[len(before) : -len(after)].strip()
    return text


def list_text(items: Iterable[tuple[int, str]]) -> str:
    """Items as (depth from 0, text) in the form of a LIST region: one a line, each with its mark."""
    lines = []
    for depth, text in items:
        text = paragraph(text)
        if bullet := _BULLET.match(text):
            text = f"- {text[bullet.end() :]}"
        elif text and not _NUMBER.match(text):
            text = f"- {text}"
        if text:
            lines.append("  " * depth + text)
    return "\n".join(lines)
