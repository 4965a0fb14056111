"""Results on disk: NAME.md and NAME.json for each document, each whole or not there, in memory of one page."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hsdkit.draft_files import SUFFIX, SavedDraft, save_drafts
from hsdkit.files import make_folder, remove, write_whole
from hsdkit.results_json import document_lines, page_from_json
from hsdkit.totals import Totals

#: Longest name of results in bytes: file systems take 255, suffixes included.
MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class DocumentHead:
    """What NAME.json says of a document beside its pages."""

    source: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    error: str | None = None


def write_document(
    folder: Path, name: str, head: DocumentHead, pages: Callable[[], Iterable[str]], *, drafts: bool = False
) -> tuple[Path, ...]:
    """Write NAME.md, with `drafts` NAME.drafts.json, and last NAME.json; returns their paths. Raises `OutputError`.

    `pages` gives the pages in order, each as the JSON that `page_to_json` makes of it, as often as it is called. A
    document without pages gets no NAME.md; one of an earlier run is removed, as it would not belong to the NAME.json
    beside it.
    """
    make_folder(folder)
    totals = sum((Totals.of(page_from_json(json.loads(page))) for page in pages()), Totals())
    written = []
    text = folder / f"{name}.md"
    if totals.pages:
        written.append(write_whole(text, markdown_of(pages())))
    else:
        remove(text)
    if drafts:
        written.append(folder / f"{name}{SUFFIX}")
        save_drafts(written[-1], _drafts(head.source, pages()))
    lines = document_lines(head.source, dict(head.settings), dict(head.versions), head.error, totals, pages())
    written.append(write_whole(folder / f"{name}.json", lines))
    return tuple(written)


def written_pages(path: Path) -> Iterator[tuple[int, str]]:
    """The pages of a NAME.json, (number, JSON) one at a time. Raises `OSError` or `ValueError` when it is none."""
    with path.open(encoding="utf-8", newline="\n") as file:
        if not file.readline().endswith(',"pages":[\n'):
            raise ValueError("not written by hsdkit run")
        for line in file:
            page = line.removesuffix("\n").removesuffix(",")
            if page == "]}":
                return
            if page:
                yield int(json.loads(page)["number"]), page
    raise ValueError("it ends in the middle")


def _drafts(source: str, pages: Iterable[str]) -> Iterator[SavedDraft]:
    """The drafts of the pages that could be read, the way they lie."""
    for page in map(page_from_json, map(json.loads, pages)):
        if page.width and not page.turned:  # turned pages are read without one
            yield SavedDraft(Path(source).name, page.number, page.width, page.height, page.draft)


def result_names(paths: Sequence[Path]) -> list[str]:
    """A name for the results of each input: its stem; its whole name where stems collide; numbered where that does.
    Names are cut where they would leave no room for suffixes."""
    stems = [folded_name(cut_name(p.stem)) for p in paths]
    taken: set[str] = set()
    names = []
    for path, stem in zip(paths, stems, strict=True):
        base = cut_name(path.stem if stems.count(stem) == 1 else path.name)
        name, _ = numbered_name(base, 1, taken.__contains__, stems.__contains__)
        taken.add(folded_name(name))
        names.append(name)
    return names


def numbered_name(
    base: str, number: int, is_taken: Callable[[str], bool], is_stem: Callable[[str], bool]
) -> tuple[str, int]:
    """`base`, or where that is taken the first BASE-N, N above `number`, that is neither taken nor the stem of another
    input, and its N. Both are asked for folded names."""
    name = base
    while is_taken(folded_name(name)) or (name != base and is_stem(folded_name(name))):
        number += 1
        name = f"{base}-{number}"
    return name, number


def cut_name(name: str) -> str:
    """The name, cut where it would leave no room for suffixes."""
    return os.fsencode(name)[:MAX_NAME].decode("utf-8", "ignore") if len(os.fsencode(name)) > MAX_NAME else name


def folded_name(name: str) -> str:
    """The same for names that some file systems take for one."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def markdown_of(pages: Iterable[str]) -> Iterator[str]:
    """The Markdown of pages that are given as JSON, in pieces."""
    first = True
    for page in pages:
        if text := json.loads(page)["markdown"].strip():
            yield text if first else f"\n\n{text}"
            first = False
    yield "\n"
