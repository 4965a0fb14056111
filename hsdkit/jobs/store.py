"""Pages in the job's file: planned, claimed, finished, given out again to be written down.

A page is `todo`, `claimed` by a worker, `done` or `failed`; its `deaths` are the workers that died with it in hand. A
document is `new`, `open` while pages of it are missing, `assembling` while a worker writes its results, then `done`, or
`failed` when it cannot be opened. Each method is one transaction, so that a process may end between any two of them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Row

from hsdkit.errors import OutputError
from hsdkit.jobs.database import DAMAGED, Database
from hsdkit.jobs.workers import Workers
from hsdkit.results import PageResult
from hsdkit.results_json import dumps, page_to_json

_BATCH = 16
#: So many workers died with a page in hand, and it is read alone, after all others; so many in all, and it is read no
#: more. Workers also die of what no page has done, so the innocent get several chances.
_SUSPECT, _DEADLY = 2, 5
_FINISHED = "state IN ('done', 'failed')"


class Busy(Exception):
    """Another run with other settings is at work on this very document."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A page that this process is to parse: `id` in the job's file."""

    id: int
    document: int
    number: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Contents:
    """An input file as it was found: size, time of the last change and of hashing in ns; SHA-256; pages."""

    size: int
    mtime: int
    hashed: int
    sha256: str
    count: int


class Store:
    def __init__(self, database: Database, workers: Workers) -> None:
        self._db, self._workers = database, workers

    def document(self, document: int) -> Row:
        row = self._db.one("SELECT * FROM documents WHERE id = ?", document)
        assert row is not None
        return row

    def counts(self, document: int) -> Mapping[str, int]:
        """How many pages of the document are in which state."""
        rows = self._db.all("SELECT state, count(*) FROM pages WHERE document = ? GROUP BY state", document)
        return dict(tuple(row) for row in rows)

    # -- planning

    def plan(
        self,
        document: int,
        contents: Contents,
        fingerprint: str,
        numbers: Sequence[int],
        *,
        complete: bool,
        written: Callable[[], Iterable[tuple[int, str]]] | None,
    ) -> int:
        """Have a row for each page to parse; returns how many pages are kept, as their fingerprint is the same.

        `complete` says that all files of the results are there; if they are not, or pages are missing, a document that
        was done is opened again, with the pages that `written` reads from its NAME.json (None: it cannot be used).
        Raises `Busy`.
        """
        db = self._db
        with db.transaction(durable=False):
            row = self.document(document)
            self._refuse_if_busy(document, row, fingerprint)
            if row["state"] == "assembling" and not self._workers.is_dead(row["assembler"]):
                return self._finished(document)
            if changed := row["fingerprint"] != fingerprint:
                db.change("DELETE FROM pages WHERE document = ?", document)
            db.change(
                "UPDATE documents SET size = ?, mtime = ?, hashed = ?, sha256 = ?, count = ?, fingerprint = ?, "
                "error = NULL WHERE id = ?",
                contents.size, contents.mtime, contents.hashed, contents.sha256, contents.count, fingerprint, document,
            )  # fmt: skip
            states = dict(map(tuple, db.all("SELECT number, state FROM pages WHERE document = ?", document)))
            same = states.keys() == set(numbers) and all(s in ("done", "failed") for s in states.values())
            if row["state"] == "done" and same and complete:
                return len(states)
            if row["state"] == "done" and not changed:
                self._open_again(document, written)
            for number in states.keys() - set(numbers):
                db.change("DELETE FROM pages WHERE document = ? AND number = ?", document, number)
            for number in numbers:
                if number not in states:
                    db.insert(
                        "INSERT INTO pages (document, number, fingerprint) VALUES (?, ?, ?)",
                        document, number, fingerprint,
                    )  # fmt: skip
            db.change("UPDATE documents SET state = 'open', assembler = NULL WHERE id = ?", document)
            return self._finished(document)

    def _refuse_if_busy(self, document: int, row: Row, fingerprint: str) -> None:
        if row["fingerprint"] in ("", fingerprint):
            return
        owners = self._db.all("SELECT DISTINCT owner FROM pages WHERE document = ? AND state = 'claimed'", document)
        workers = [owner[0] for owner in owners] + ([row["assembler"]] if row["state"] == "assembling" else [])
        if any(w != self._workers.me and not self._workers.is_dead(w) for w in workers):
            raise Busy

    def _open_again(self, document: int, written: Callable[[], Iterable[tuple[int, str]]] | None) -> None:
        """Pages of a document that was done have their content in NAME.json only: take it from there."""
        try:
            for number, page in written() if written else ():
                self._db.change(
                    f"UPDATE pages SET payload = ? WHERE document = ? AND number = ? AND {_FINISHED}",
                    _packed(page), document, number,
                )  # fmt: skip
        except (OSError, ValueError):
            pass
        self._db.change(
            f"UPDATE pages SET state = 'todo', error = NULL WHERE document = ? AND {_FINISHED} AND payload IS NULL",
            document,
        )

    def _finished(self, document: int) -> int:
        return int(self._db.value(f"SELECT count(*) FROM pages WHERE document = ? AND {_FINISHED}", document))

    def forget(self) -> None:
        """Parse every selected document anew."""
        with self._db.transaction(durable=False):
            self._db.change("UPDATE documents SET fingerprint = '' WHERE id IN (SELECT document FROM selected)")

    def retry_failed(self) -> None:
        """Parse the failed pages of the selected documents once more."""
        with self._db.transaction(durable=False):
            self._db.change(
                "UPDATE pages SET state = 'todo', error = NULL, payload = NULL, deaths = 0 WHERE state = 'failed' "
                "AND document IN (SELECT document FROM selected)"
            )

    # -- claims

    def claim(self, document: int, *, suspect: bool = False) -> Claim | None:
        """The next page of the document that nobody has, or whose owner is dead; None when there is none. With
        `suspect` one that several workers have died with, to be read while nothing else is under way; else none.
        """
        db = self._db
        if not self.has_free(document):
            return None
        with db.transaction(durable=False):
            for owner in self._dead_owners(document):
                db.change(
                    "UPDATE pages SET state = 'todo', owner = NULL, deaths = deaths + 1 "
                    "WHERE document = ? AND state = 'claimed' AND owner = ?",
                    document, owner,
                )  # fmt: skip
            row = db.one(
                "SELECT id, number, fingerprint FROM pages WHERE document = ? AND state = 'todo' "
                "AND deaths >= ? AND deaths < ? ORDER BY deaths, number LIMIT 1",
                document, *((_SUSPECT, _DEADLY) if suspect else (0, _SUSPECT)),
            )  # fmt: skip
            if row is None:
                return None
            db.change("UPDATE pages SET state = 'claimed', owner = ? WHERE id = ?", self._workers.me, row["id"])
            return Claim(row["id"], document, row["number"], row["fingerprint"])

    def has_free(self, document: int) -> bool:
        """Whether there is a page that nobody has, or whose owner is dead."""
        todo = self._db.value("SELECT 1 FROM pages WHERE document = ? AND state = 'todo' LIMIT 1", document)
        return todo is not None or bool(self._dead_owners(document))

    def _dead_owners(self, document: int) -> list[int]:
        owners = self._db.all(
            "SELECT DISTINCT owner FROM pages WHERE document = ? AND state = 'claimed' AND owner <> ?",
            document, self._workers.me,
        )  # fmt: skip
        return [owner for (owner,) in owners if self._workers.is_dead(owner)]

    def give_up(self, document: int, name: str) -> list[PageResult]:
        """Have the pages of the document (the file `name`) that are read no more as failed; returns their results."""
        deadly = "document = ? AND state = 'todo' AND deaths >= ?"
        if self._db.value(f"SELECT 1 FROM pages WHERE {deadly} LIMIT 1", document, _DEADLY) is None:
            return []
        with self._db.transaction():
            given_up = []
            for row in self._db.all(f"SELECT id, number, deaths FROM pages WHERE {deadly}", document, _DEADLY):
                error = f"{name}, page {row['number']}: ended the process that read it, {row['deaths']} times"
                given_up.append(PageResult(row["number"], error=error))
                self._db.change(
                    "UPDATE pages SET state = 'failed', error = ?, payload = ? WHERE id = ?",
                    storable(error), _packed(dumps(page_to_json(given_up[-1]))), row["id"],
                )  # fmt: skip
            return given_up

    def release(self, claim: Claim) -> None:
        with self._db.transaction(durable=False):
            self._db.change(
                "UPDATE pages SET state = 'todo', owner = NULL WHERE id = ? AND state = 'claimed' AND owner = ?",
                claim.id, self._workers.me,
            )  # fmt: skip

    def finish(
        self, claim: Claim, result: PageResult, failed: str | None, versions: Mapping[str, str] | None
    ) -> tuple[bool, bool]:
        """Keep a result, which counts as `failed` for that reason: on disk when this returns. Returns whether it was
        kept (not if somebody else was faster, or the page is not wanted any more), and whether it was the last and this
        process is now to assemble the document."""
        with self._db.transaction():
            kept = self._db.change(
                "UPDATE pages SET state = ?, owner = NULL, error = ?, payload = ?, deaths = 0 "
                f"WHERE id = ? AND document = ? AND number = ? AND fingerprint = ? AND NOT {_FINISHED}",
                "failed" if failed else "done", storable(failed), _packed(dumps(page_to_json(result))),
                claim.id, claim.document, claim.number, claim.fingerprint,
            )  # fmt: skip
            if kept and versions is not None:
                self._db.change(
                    "UPDATE documents SET versions = ? WHERE id = ?", json.dumps(dict(versions)), claim.document
                )
            return bool(kept), bool(kept) and self._begin_assembly(claim.document)

    # -- assembling

    def begin_assembly(self, document: int, *, unfinished: bool = False, error: str | None = None) -> bool:
        """Whether this process is to write the document's results, as every page is finished and nobody else does.

        `unfinished`: with what there is, if no living process works on the rest. `error`: the document cannot be
        opened; it has no pages then.
        """
        with self._db.transaction(durable=False):
            if error is not None:
                row = self.document(document)
                if row["state"] == "assembling" and not self._workers.is_dead(row["assembler"]):
                    return False
                self._db.change("DELETE FROM pages WHERE document = ?", document)
                self._db.change(
                    "UPDATE documents SET state = 'open', error = ?, fingerprint = '' WHERE id = ?",
                    storable(error), document,
                )  # fmt: skip
            return self._begin_assembly(document, unfinished)

    def _begin_assembly(self, document: int, unfinished: bool = False) -> bool:
        row, counts = self.document(document), self.counts(document)
        free = row["state"] == "open" or (row["state"] == "assembling" and self._workers.is_dead(row["assembler"]))
        missing, claimed = counts.get("todo", 0), counts.get("claimed", 0)
        if unfinished:
            ready = bool(missing) and not claimed and missing < sum(counts.values())
        else:
            ready = not missing and not claimed
        if not free or not ready:
            return False
        self._db.change(
            "UPDATE documents SET state = 'assembling', assembler = ? WHERE id = ?", self._workers.me, document
        )
        return True

    def end_assembly(self, document: int, result: tuple[int, int, str] | None) -> None:
        """The results are written: `result` is size, time of change and SHA-256 of NAME.json. None: they are not, or
        not all of them; the document is open again."""
        with self._db.transaction(durable=False):  # lost, it is assembled once more
            mine = "WHERE id = ? AND state = 'assembling' AND assembler = ?"
            if result is None:
                self._db.change(
                    f"UPDATE documents SET state = 'open', assembler = NULL {mine}", document, self._workers.me
                )
                return
            ended = self._db.change(
                "UPDATE documents SET state = CASE WHEN error IS NULL THEN 'done' ELSE 'failed' END, assembler = NULL, "
                f"result_size = ?, result_mtime = ?, result_sha256 = ? {mine}",
                *result, document, self._workers.me,
            )  # fmt: skip
            if ended:
                self._db.change("UPDATE pages SET payload = NULL WHERE document = ?", document)

    def stop_assembling(self) -> None:
        """Documents that this process was assembling are open again."""
        with self._db.transaction(durable=False):
            self._db.change(
                "UPDATE documents SET state = 'open', assembler = NULL WHERE state = 'assembling' AND assembler = ?",
                self._workers.me,
            )

    def payloads(self, document: int) -> Iterator[str]:
        """The finished pages in order, as JSON; a few at a time are read."""
        last = 0
        while rows := self._db.all(
            f"SELECT number, payload FROM pages WHERE document = ? AND number > ? AND {_FINISHED} "
            "AND payload IS NOT NULL ORDER BY number LIMIT ?",
            document, last, _BATCH,
        ):  # fmt: skip
            for row in rows:
                try:
                    yield zlib.decompress(row["payload"]).decode()
                except (zlib.error, TypeError, ValueError):
                    raise OutputError(f"{self._db.path}: {DAMAGED}") from None
            last = rows[-1]["number"]


def storable(text: str | None) -> str | None:
    """Text without what UTF-8 cannot hold: bytes of file names that are none."""
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()


def _packed(page: str) -> bytes:
    return zlib.compress(page.encode(), 6)
