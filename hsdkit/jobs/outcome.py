"""How a job stands: counts while it runs, events for who shows them, and every failure by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path

from hsdkit.files import remove, write_whole
from hsdkit.jobs.database import Database
from hsdkit.results import PageResult
from hsdkit.results_json import dumps
from hsdkit.totals import Totals

#: The list of failures in the output folder.
FAILURES = "failures.jsonl"

_BATCH = 200


@dataclass(slots=True)
class Progress:
    """Of `documents`, `planned` have been opened and `closed` are finished. The planned ones have `pages` to parse, of
    which `kept` were finished before they were opened here, `totals` are those this process parsed, and `elsewhere`
    those that other processes finished meanwhile, as far as documents are closed.
    `troubles` are failures that are no page's and no document's: a file of results that could not be written, another
    run at work on the same document.
    """

    documents: int = 0
    planned: int = 0
    closed: int = 0
    pages: int = 0
    kept: int = 0
    elsewhere: int = 0
    troubles: list[str] = field(default_factory=list)
    totals: Totals = field(default_factory=Totals)

    def add(self, result: PageResult) -> None:
        self.totals += Totals.of(result)

    @property
    def done(self) -> int:
        """Pages finished, as far as this process knows."""
        return self.kept + self.totals.pages + self.elsewhere

    @property
    def expected(self) -> int:
        """How many pages all documents have, judged by those that were opened."""
        unseen = self.documents - self.planned
        opened = self.planned or 1
        return max(self.pages + round(unseen * self.pages / opened), self.done)


class Watcher:
    """Told what happens to documents, in whichever thread it happens. Does nothing; for subclasses."""

    def planned(self, path: Path, pages: int, kept: int) -> None:
        """A document was opened: it has that many pages to parse, some of them kept."""

    def failed(self, reason: str) -> None:
        """A document could not be opened, or its report could not be written."""

    def written(self, paths: Sequence[Path]) -> None:
        """Files of a document were written."""

    def closed(self, path: Path) -> None:
        """A document is finished, in whatever way."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A page that failed, or with `page` None a whole document."""

    path: Path
    page: int | None
    error: str


def page_failure(name: str, result: PageResult) -> str | None:
    """Why a page of the file `name` counts as failed; None when it does not. A page with the drafter's text is there,
    but no model has read it: were that no failure, a job whose model fails on every page would look like one that went
    well."""
    if result.error is None and result.origin == "draft":
        return f"{name}, page {result.number}: not read: the drafter's text stands in the place of the model's"
    return result.error


#: Documents and pages that failed, `{of}` saying which documents count; number 0 is a whole document.
_FAILED = """
    SELECT d.id AS id, d.path AS path, 0 AS number, d.error AS error FROM documents d
    WHERE d.error IS NOT NULL AND d.id IN ({of})
    UNION ALL SELECT d.id, d.path, p.number, p.error FROM documents d JOIN pages p ON p.document = d.id
    WHERE p.state = 'failed' AND d.id IN ({of})
"""
_SELECTED, _ALL = "SELECT document FROM selected", "SELECT id FROM documents"


def failures(database: Database, *, selected: bool = True) -> Iterator[Failure]:
    """The failures of the selected documents, or of all in the folder; few at a time are in memory."""
    failed = _FAILED.format(of=_SELECTED if selected else _ALL)
    last = (0, -1)
    while rows := database.all(
        f"SELECT id, path, number, error FROM ({failed}) WHERE (id, number) > (?, ?) ORDER BY id, number LIMIT ?",
        *last, _BATCH,
    ):  # fmt: skip
        for document, path, number, error in rows:
            yield Failure(Path(os.fsdecode(path)), number or None, error)
            last = (document, number)


def count_failures(database: Database) -> int:
    """How many documents and pages of the selected documents failed."""
    return int(database.value(f"SELECT count(*) FROM ({_FAILED.format(of=_SELECTED)})"))


def write_failures(database: Database, folder: Path) -> Path | None:
    """Write failures.jsonl, every document and page of the folder that failed, a line each; remove it when none has.
    Returns its path when there is one. Raises `OutputError`."""
    path = folder / FAILURES
    with database.transaction(durable=False):  # one process at a time
        found = failures(database, selected=False)
        first = next(found, None)
        if first is None:
            remove(path)
            return None
        return write_whole(path, (dumps(asdict(f) | {"path": str(f.path)}) + "\n" for f in chain([first], found)))
