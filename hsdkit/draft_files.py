"""Drafts in a JSON file, so that a study can replay exactly what a drafter said.

The file holds `{"format": "hsdkit-drafts", "version": 1, "drafts": [...]}`; each draft names its source file and page
number and lists its regions as `Region` has them, boxes in page pixels with the page's size beside them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from hsdkit.errors import DrafterError
from hsdkit.files import write_whole
from hsdkit.regions import Box, Draft, Format, Label, Region
from hsdkit.results_json import draft_to_json, dumps

FORMAT, VERSION = "hsdkit-drafts", 1
SUFFIX = ".drafts.json"


@dataclass(frozen=True, slots=True)
class SavedDraft:
    """A draft with the page it belongs to: the source's file name, the page number (from 1), the page's pixels."""

    source: str
    page: int
    width: int
    height: int
    draft: Draft


def save_drafts(path: str | os.PathLike[str], drafts: Iterable[SavedDraft]) -> None:
    """Write drafts, replacing the file at once when all of it is written. Raises `OutputError` if it cannot be."""
    write_whole(Path(path), _lines(drafts))


def _lines(drafts: Iterable[SavedDraft]) -> Iterator[str]:
    """One draft a line, taken one at a time."""
    yield dumps({"format": FORMAT, "version": VERSION})[:-1] + ',"drafts":[\n'
    for number, saved in enumerate(drafts):
        page = {"source": saved.source, "page": saved.page, "width": saved.width, "height": saved.height}
        yield (",\n" if number else "") + dumps(page | draft_to_json(saved.draft))
    yield "\n]}\n"


def load_drafts(path: str | os.PathLike[str]) -> dict[tuple[str, int], SavedDraft]:
    """Drafts by source file name and page number, from a file or from every `*.drafts.json` of a folder.

    Raises `DrafterError` naming the file and the field that is wrong.
    """
    path = Path(path)
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else [path]
    if not files:
        raise DrafterError(f"{path}: no *{SUFFIX} in this folder; hsdkit run ... save_drafts=true writes them")
    drafts: dict[tuple[str, int], SavedDraft] = {}
    for file in files:
        for key, saved in _load(file).items():
            if key in drafts:
                raise DrafterError(f"{file}: {key[0]}, page {key[1]} is also in another file of this folder")
            drafts[key] = saved
    return drafts


def _load(path: Path) -> dict[tuple[str, int], SavedDraft]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise DrafterError(f"{path}: drafts cannot be read: {e.strerror}") from e
    except (ValueError, RecursionError) as e:  # not UTF-8, not JSON, numbers too long, nested too deeply
        raise DrafterError(f"{path}: is not JSON: {e}") from e
    root = _Field(str(path), "", content)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise DrafterError(
            f'{path}: is not a file of drafts (no "format": "{FORMAT}"); hsdkit run ... save_drafts=true writes one'
        )
    if root["version"].value != VERSION:
        raise DrafterError(
            f"{path}: version {root['version'].value} of the format; this hsdkit reads version {VERSION}"
        )
    drafts: dict[tuple[str, int], SavedDraft] = {}
    for item in root["drafts"].items():
        saved = _from_json(item)
        key = saved.source, saved.page
        if key in drafts:
            raise item.wrong(f"is a second draft of {saved.source}, page {saved.page}")
        drafts[key] = saved
    return drafts


def _from_json(item: _Field) -> SavedDraft:
    draft = Draft(
        tuple(_region(r) for r in item["regions"].items()),
        item["drafter"].text(),
        item["seconds"].number(),
        tuple(n.text() for n in item["notes"].items()),
    )
    page, width, height = item["page"].whole(1), item["width"].whole(1), item["height"].whole(1)
    return SavedDraft(item["source"].text(), page, width, height, draft)


def _region(item: _Field) -> Region:
    corners = [v.number() for v in item["box"].items()]
    if len(corners) != 4 or corners[0] > corners[2] or corners[1] > corners[3]:
        raise item["box"].wrong("must be [x0, y0, x1, y1] with x0 <= x1 and y0 <= y1")
    level, score = item["level"], item["score"]
    return Region(
        Box(*corners),
        Label(item["label"].one_of([label.value for label in Label])),
        item["text"].text(),
        cast(Format, item["format"].one_of(get_args(Format))),
        None if level.value is None else level.whole(1),
        None if score.value is None else score.number(),
    )


@dataclass(frozen=True, slots=True)
class _Field:
    """A value in the file that knows where it stands, so that errors can say so."""

    file: str
    where: str
    value: Any

    def wrong(self, what: str) -> DrafterError:
        return DrafterError(f"{self.file}: {self.where or 'the file'} {what}")

    def __getitem__(self, name: str) -> _Field:
        where = f"{self.where}.{name}" if self.where else name
        if not isinstance(self.value, dict):
            raise self.wrong("must be an object")
        if name not in self.value:
            raise DrafterError(f"{self.file}: {where} is missing")
        return _Field(self.file, where, self.value[name])

    def items(self) -> Iterator[_Field]:
        if not isinstance(self.value, list):
            raise self.wrong("must be a list")
        return (_Field(self.file, f"{self.where}[{k}]", v) for k, v in enumerate(self.value))

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong(f"must be text, not {self.value!r:.40}")
        return self.value

    def number(self) -> float:
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.wrong(f"must be a number, not {self.value!r:.40}")
        try:
            return float(self.value)
        except OverflowError:
            raise self.wrong("is too large a number") from None

    def whole(self, least: int) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < least:
            raise self.wrong(f"must be a whole number from {least}, not {self.value!r:.40}")
        return self.value

    def one_of(self, known: Iterable[str]) -> str:
        known = list(known)
        if self.value not in known:
            raise self.wrong(f"must be one of {', '.join(known)}, not {self.value!r:.40}")
        return str(self.value)
