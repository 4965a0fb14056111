"""Results on disk: NAME.md and NAME.json for each document, safe against interruption, in memory of one page.

While a document is being parsed each finished page is a line of NAME.pages.jsonl; at the end that file becomes NAME.md
and NAME.json, which appear whole or not at all. What a killed run leaves is the pages it had finished.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from hsdkit.draft_files import SavedDraft, save_drafts
from hsdkit.errors import OutputError
from hsdkit.files import make_folder, write_whole
from hsdkit.results import PageResult
from hsdkit.results_json import document_lines, dumps, page_from_json, page_to_json
from hsdkit.totals import Totals

#: Longest name of results in bytes: file systems take 255, suffixes included.
MAX_NAME = 200


class DocumentWriter:
    """Writes one document, page by page:

        with DocumentWriter(folder, "report", "report.pdf", settings) as writer:
            for page in pipeline.pages("report.pdf"):
                writer.add(page)
            writer.versions = pipeline.versions()

    Leaving the block, in whatever way, writes the final files from the pages added so far. Raises `OutputError`.
    """

    def __init__(
        self, folder: Path, name: str, source: str, settings: dict[str, Any], *, save_drafts: bool = False
    ) -> None:
        self.folder, self.name, self.source, self.settings = folder, name, source, settings
        self.versions: dict[str, str] = {}
        self.error: str | None = None
        self.totals = Totals()
        self._save_drafts = save_drafts
        self._pages = folder / f"{name}.pages.jsonl"
        self._stream = _open(self._pages)

    def add(self, page: PageResult) -> None:
        try:
            self._stream.write(dumps(page_to_json(page)) + "\n")
            self._stream.flush()
        except OSError as e:
            raise self._unwritable(e) from e
        self.totals += Totals.of(page)

    def finish(self) -> tuple[Path, ...]:
        """Write NAME.md, NAME.json and, if asked for, NAME.drafts.json. Returns their paths.

        A document of which no page was parsed gets no NAME.md; one of an earlier run is removed, as it would not belong
        to the NAME.json beside it.
        """
        try:
            self._stream.close()
        except OSError as e:  # what is still buffered may not fit on the disk either
            raise self._unwritable(e) from e
        written = [write_whole(self.folder / f"{self.name}.json", self._document())]
        text = self.folder / f"{self.name}.md"
        if self.totals.pages:
            written.insert(0, write_whole(text, _markdown(self._lines())))
        else:
            text.unlink(missing_ok=True)
        if self._save_drafts:
            written.append(self.folder / f"{self.name}.drafts.json")
            save_drafts(written[-1], self._drafts())
        self._pages.unlink()
        return tuple(written)

    def _unwritable(self, error: OSError) -> OutputError:
        return OutputError(f"{self._pages}: cannot be written: {error.strerror}; it holds the pages written before")

    def _document(self) -> Iterator[str]:
        return document_lines(self.source, self.settings, self.versions, self.error, self.totals, self._lines())

    def _drafts(self) -> Iterator[SavedDraft]:
        """The drafts of the pages that could be read."""
        for page in map(page_from_json, map(json.loads, self._lines())):
            if page.width:
                yield SavedDraft(Path(self.source).name, page.number, page.width, page.height, page.draft)

    def _lines(self) -> Iterator[str]:
        with self._pages.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n")

    def __enter__(self) -> DocumentWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, OutputError):
            self._stream.close()
        else:
            self.finish()


def result_names(paths: Sequence[Path]) -> list[str]:
    """A name for the results of each input: its stem; its whole name where stems collide; numbered where that does.
    Names are cut where they would leave no room for suffixes."""
    stems = [_folded(_cut(p.stem)) for p in paths]
    taken: set[str] = set()
    names = []
    for path, stem in zip(paths, stems, strict=True):
        base = _cut(path.stem if stems.count(stem) == 1 else path.name)
        name, n = base, 1
        while _folded(name) in taken or (n > 1 and _folded(name) in stems):
            n += 1
            name = f"{base}-{n}"
        taken.add(_folded(name))
        names.append(name)
    return names


def _cut(name: str) -> str:
    return os.fsencode(name)[:MAX_NAME].decode("utf-8", "ignore") if len(os.fsencode(name)) > MAX_NAME else name


def _folded(name: str) -> str:
    return name.casefold()


def _markdown(lines: Iterable[str]) -> Iterator[str]:
    first = True
    for line in lines:
        if text := json.loads(line)["markdown"].strip():
            yield text if first else f"\n\n{text}"
            first = False
    yield "\n"


def _open(path: Path) -> Any:
    make_folder(path.parent)
    try:
        return path.open("w", encoding="utf-8", newline="\n")
    except OSError as e:
        raise OutputError(f"{path}: cannot be written: {e.strerror}; choose another folder with output=FOLDER") from e
