"""A document's results from its finished pages: NAME.md, NAME.json, and what else was asked for."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Row
from typing import Any

from hsdkit.document_result import DocumentResult
from hsdkit.documents import Document
from hsdkit.draft_files import SUFFIX
from hsdkit.errors import DocumentError
from hsdkit.files import file_digest
from hsdkit.report import GuardedReport
from hsdkit.results import PageResult
from hsdkit.results_json import page_from_json
from hsdkit.writing import DocumentHead, write_document, written_pages

#: Opens a document as a run does, `pages` of it, with that password (None: the run's). Raises `DocumentError`.
Reopen = Callable[[Path, str | None, str | None], Document]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Which files a document becomes, and what they say beside its pages. `reopen` is given when a report is wanted:
    pages are rendered once more for it, as some of them may have been finished by other processes, or days ago."""

    folder: Path
    settings: Mapping[str, Any]
    drafts: bool = False
    reopen: Reopen | None = None

    def path(self, name: str) -> Path:
        """The NAME.json of a document."""
        return self.folder / f"{name}.json"

    def are_complete(self, name: str, pages: int) -> bool:
        """Whether every file that is wanted is there."""
        suffixes = [".json", *([".md"] if pages else []), *([SUFFIX] if self.drafts else [])]
        suffixes += [".html"] if self.reopen else []
        return all((self.folder / f"{name}{suffix}").is_file() for suffix in suffixes)

    def are_unchanged(self, row: Row) -> bool:
        """Whether NAME.json is what was written, so that pages can be taken from it."""
        path = self.path(row["name"])
        try:
            status = os.stat(path)
        except OSError:
            return False
        if (status.st_size, status.st_mtime_ns) == (row["result_size"], row["result_mtime"]):
            return True
        return status.st_size == row["result_size"] and file_digest(path) == row["result_sha256"]

    def written(self, name: str) -> Iterator[tuple[int, str]]:
        """The pages in NAME.json, as `written_pages`."""
        return written_pages(self.path(name))

    def load(self, name: str) -> Iterator[PageResult]:
        yield from DocumentResult.load(self.path(name)).pages

    def write(
        self,
        name: str,
        source: Path,
        versions: Mapping[str, str],
        error: str | None,
        pages: Callable[[], Iterable[str]],
        password: str | None,
        fail: Callable[[str], None],
    ) -> tuple[Path, ...]:
        """Write everything, the NAME.json last; returns the paths. Raises `OutputError`; a report that cannot be
        written costs nothing else, `fail` is told of it."""
        report: tuple[Path, ...] = ()
        if self.reopen is not None:
            path = self.folder / f"{name}.html"
            writer = GuardedReport(path, str(source), self.settings, versions, fail)
            self._report(writer, source, pages, password)
            writer.close(error)
            report = (path,)
        head = DocumentHead(str(source), self.settings, versions, error)
        return *write_document(self.folder, name, head, pages, drafts=self.drafts), *report

    def _report(
        self, writer: GuardedReport, source: Path, pages: Callable[[], Iterable[str]], password: str | None
    ) -> None:
        document: Document | None = None
        assert self.reopen is not None
        try:
            for page in map(page_from_json, map(json.loads, pages())):
                image = None
                if page.width:  # it could be rendered before
                    with contextlib.suppress(DocumentError):
                        document = document or self.reopen(source, "1-", password)
                        rendered = document.page(page.number)
                        image = (rendered.turned(page.turned) if page.turned else rendered).image
                writer.add(page, image)
        finally:
            if document is not None:
                document.close()


def fingerprint_of_file(path: Path) -> tuple[int, int, str]:
    """Size, time of the last change in ns, SHA-256."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, file_digest(path)
