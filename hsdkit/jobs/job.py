"""A job: documents, page by page, by any number of processes, each page once; what is finished outlives them."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType

from hsdkit.config import RunConfig
from hsdkit.errors import DocumentError, NameTaken, OutputError
from hsdkit.jobs.assembling import Outputs, Reopen, fingerprint_of_file
from hsdkit.jobs.database import Database
from hsdkit.jobs.fingerprint import page_fingerprint, settings_fingerprint
from hsdkit.jobs.inputs import Input
from hsdkit.jobs.outcome import Failure, Progress, Watcher, count_failures, failures, page_failure, write_failures
from hsdkit.jobs.owner import LEASE
from hsdkit.jobs.planning import PageCounter, contents, wanted
from hsdkit.jobs.selection import Selected, next_selected, select
from hsdkit.jobs.store import Busy, Claim, Store, storable
from hsdkit.jobs.workers import Workers
from hsdkit.parallel import PageTask
from hsdkit.results import PageResult
from hsdkit.results_json import page_from_json
from hsdkit.versions import versions

#: Seconds between two looks at what other processes are doing.
_POLL = 0.5


class Job:
    """The job in an output folder, as one process takes part in it:

        with Job.open(Path("out"), config, read_inputs("scans/")) as job:
            while True:
                for task, result in parse_pages(pipeline, job.tasks()):
                    job.finish(task, result)
                if not job.wait():
                    break

    Nothing here loads a model. May be used from several threads. Everything raises `OutputError` when the folder or the
    job's file cannot be used.

    `versions` is what makes the results (`Pipeline.versions()`); set it when it is known: that may take a loaded model.
    """

    @classmethod
    def open(
        cls,
        folder: Path,
        config: RunConfig,
        inputs: Iterable[Input],
        *,
        retry_failed: bool = False,
        fresh: bool = False,
        reopen: Reopen | None = None,
        watcher: Watcher | None = None,
        lease: float = LEASE,
    ) -> Job:
        """Take part in the job in that folder, or begin it. Pages that were finished there are kept if neither their
        file nor the settings have changed; failed ones, too, unless `retry_failed`; none with `fresh`.

        `reopen` is given to have NAME.html written as well. `lease`: after how many seconds without a sign of life a
        process on another host counts as dead. Raises whatever `inputs` raises, and `OutputError`.
        """
        database = Database(folder)
        try:
            job = cls(folder, config, database, Workers(database, lease), reopen, watcher or Watcher())
        except BaseException:
            database.close()
            raise
        try:
            job.progress.documents = select(database, inputs)
            job._counter = PageCounter(config, job.progress.documents)
            if fresh and (other := job._workers.living()):
                raise OutputError(f"{folder}: {other} is at work there; --fresh would undo what it does")
            if fresh:
                job._store.forget()
            elif retry_failed:
                job._store.retry_failed()
        except BaseException:
            job.close()
            raise
        return job

    def __init__(
        self,
        folder: Path,
        config: RunConfig,
        database: Database,
        workers: Workers,
        reopen: Reopen | None,
        watcher: Watcher,
    ) -> None:
        self.folder, self.config = folder, config
        self.versions: Mapping[str, str] | None = None
        self.progress = Progress()
        self._database, self._workers, self._watcher = database, workers, watcher
        self._store = Store(database, workers)
        self._outputs = Outputs(folder, config.settings(), config.save_drafts, reopen)
        self._settings = settings_fingerprint(config)
        self._counter = PageCounter(config, 0)
        self._claims: dict[int, tuple[Claim, Selected]] = {}
        self._lock = threading.RLock()

    # -- the work

    def tasks(self) -> Iterator[PageTask]:
        """The pages that this process is to parse, claimed one by one as they are taken; `key` is to come back with the
        result. It ends when every page is finished or in the hands of a process, this one included; it waits for
        nobody. Documents are opened when their turn has come; those that cannot be are told to the watcher. A page that
        may have killed the processes which had it is given out alone, when there is nothing else."""
        after, others = 0, False
        while (document := next_selected(self._database, after)) is not None:
            after = document.position
            if not document.planned and not self._plan(document):
                continue
            while (claim := self._store.claim(document.id)) is not None:
                others = True
                yield self._task(claim, document)
            self._give_up(document)
            self._settle(document)
        after = 0
        while not others and (document := next_selected(self._database, after, planned=True)) is not None:
            after = document.position
            if (claim := self._store.claim(document.id, suspect=True)) is not None:
                others = True
                yield self._task(claim, document)

    def _task(self, claim: Claim, document: Selected) -> PageTask:
        with self._lock:
            self._claims[claim.id] = (claim, document)
        return PageTask(document.path, claim.number, claim.id, password=document.password)

    def _give_up(self, document: Selected) -> None:
        for result in self._store.give_up(document.id, document.path.name):
            self._count(document, result)
            self._watcher.failed(str(result.error))

    def finish(self, task: PageTask, result: PageResult) -> bool:
        """Keep a result: it is on disk when this returns. The last page of a document has its files written. Returns
        False for a result that was not wanted any more: another process was faster, as this one had seemed dead."""
        claim, document = self._claim_of(task)
        kept, last = self._store.finish(claim, result, page_failure(document.path.name, result), self.versions)
        with self._lock:
            self._claims.pop(claim.id, None)
        if kept:
            self._count(document, result)
        if last:
            self._assemble(document)
            self._settle(document)
        return kept

    def _count(self, document: Selected, result: PageResult) -> None:
        """A page is finished by this process."""
        with self._lock:
            self.progress.add(result)
            self._database.change("UPDATE selected SET own = own + 1 WHERE document = ?", document.id)

    def release(self, task: PageTask) -> None:
        """Give a page back, for another process or a later run."""
        claim, _ = self._claim_of(task)
        self._store.release(claim)
        with self._lock:
            self._claims.pop(claim.id, None)

    def _release_all(self) -> None:
        with self._lock:
            claims = [claim for claim, _ in self._claims.values()]
            self._claims.clear()
        for claim in claims:
            self._store.release(claim)

    def wait(self, check: Callable[[], None] = lambda: None) -> bool:
        """Wait while other processes work on pages of this job. True: there are pages to be had again, as one of them
        has died; False: everything is finished. To be called when all tasks of this process are finished; those that
        are not are given back. `check` is called now and then and may raise."""
        self._release_all()
        while True:
            after, waiting = 0, False
            while (document := next_selected(self._database, after)) is not None:
                after = document.position
                check()
                if not document.planned or self._store.has_free(document.id):
                    return True
                waiting = not self._settle(document) or waiting
            if not waiting:
                return False
            time.sleep(_POLL)

    def _claim_of(self, task: PageTask) -> tuple[Claim, Selected]:
        with self._lock:
            try:
                return self._claims[int(task.key)]
            except (KeyError, ValueError):
                raise ValueError(
                    f"{task.path}, page {task.number}: not a task of this job, or finished already"
                ) from None

    # -- documents

    def _plan(self, document: Selected) -> bool:
        """Plan the document's pages; False when that ended the document."""
        row = self._store.document(document.id)
        try:
            found = contents(document.path, row, self._counter, document.password)
            numbers = wanted(document.path, found.count, document.pages, self.config.pages)
        except DocumentError as e:
            self._cannot_be_opened(document, str(e))
            return False
        complete = row["state"] == "done" and self._outputs.are_complete(document.name, len(numbers))
        usable = row["state"] == "done" and self._outputs.are_unchanged(row)
        try:
            kept = self._store.plan(
                document.id,
                found,
                page_fingerprint(self._settings, found.sha256),
                numbers,
                complete=complete and usable,
                written=(lambda: self._outputs.written(document.name)) if usable else None,
            )
        except Busy:
            self._told(f"{document.path}: another run with other settings is at work on it; run again later")
            self._close(document)
            return False
        self._database.change("UPDATE selected SET planned = 1, kept = ? WHERE document = ?", kept, document.id)
        with self._lock:
            self.progress.planned += 1
            self.progress.pages += len(numbers)
            self.progress.kept += kept
        self._watcher.planned(document.path, len(numbers), kept)
        return True

    def _cannot_be_opened(self, document: Selected, error: str) -> None:
        row = self._store.document(document.id)
        told = row["state"] == "failed" and row["error"] == storable(error)
        if told and self._outputs.are_complete(document.name, 0) and self._outputs.are_unchanged(row):
            pass  # as it was; a list may name thousands of files that are missing
        elif self._store.begin_assembly(document.id, error=error):
            self._assemble(document)
        self._watcher.failed(error)
        self._close(document)

    def _settle(self, document: Selected) -> bool:
        """Be done with the document if it is finished; see to its files if they are missing. Whether this run is done
        with it."""
        if not self._is_closed(document):
            if self._store.begin_assembly(document.id):
                self._assemble(document)
            if self._store.document(document.id)["state"] in ("done", "failed"):
                self._close(document)
        return self._is_closed(document)

    def _is_closed(self, document: Selected) -> bool:
        return bool(self._database.value("SELECT closed FROM selected WHERE document = ?", document.id))

    def _close(self, document: Selected) -> None:
        """Nothing more is to be done for the document in this run."""
        if self._database.change("UPDATE selected SET closed = 1 WHERE document = ? AND NOT closed", document.id):
            counts = self._store.counts(document.id)
            known = self._database.value("SELECT kept + own FROM selected WHERE document = ?", document.id)
            with self._lock:
                self.progress.closed += 1
                self.progress.elsewhere += max(0, counts.get("done", 0) + counts.get("failed", 0) - known)
            self._watcher.closed(document.path)

    def _assemble(self, document: Selected, reason: Callable[[int], str] | None = None) -> None:
        """Write the files of a document that this process is assembling; `reason` says why pages of it are missing.
        Where a folder has the name of one, this run is done with the document; its pages are kept for another."""
        row = self._store.document(document.id)
        made_with = self.versions or json.loads(row["versions"] or "null") or versions(None)
        pages = sum(self._store.counts(document.id).get(state, 0) for state in ("done", "failed"))
        result: tuple[int, int, str] | None = None
        try:
            written = self._outputs.write(
                document.name,
                document.path,
                dict(made_with) | {"input_sha256": row["sha256"]},
                reason(pages) if reason else row["error"],
                lambda: self._store.payloads(document.id),
                document.password,
                self._told,
            )
            if reason is None:
                result = fingerprint_of_file(self._outputs.path(document.name))
        except NameTaken as e:
            self._told(str(e))
            self._close(document)
            return
        finally:
            self._store.end_assembly(document.id, result)
        self._watcher.written(written)

    def _told(self, error: str) -> None:
        """A failure of this run alone: the job's file does not hold it."""
        with self._lock:
            self.progress.troubles.append(error)
        self._watcher.failed(error)

    # -- the end

    def interrupt(self, reason: Callable[[int], str]) -> None:
        """Write what there is of documents that are parsed in part, with an error: `reason` of the number of pages.
        They are completed by a later run. Documents that other processes work on are left to them. To be called when
        nothing else of this job is under way."""
        self._release_all()
        self._store.stop_assembling()
        after = 0
        while (document := next_selected(self._database, after, planned=True)) is not None:
            after = document.position
            if self._store.begin_assembly(document.id, unfinished=True):
                self._assemble(document, reason)
            self._settle(document)

    def failures(self) -> Iterator[Failure]:
        """Every document and page of this run that failed, now or in an earlier run."""
        return failures(self._database)

    def count_failures(self) -> int:
        return count_failures(self._database)

    def write_failures(self) -> Path | None:
        """Write failures.jsonl, all failures of the folder; removed when there are none. Returns its path."""
        return write_failures(self._database, self.folder)

    def results(self, path: Path) -> Iterator[PageResult]:
        """The finished pages of a document, in order, also while others are being parsed."""
        row = self._database.one("SELECT * FROM documents WHERE path = ?", os.fsencode(os.path.abspath(path)))
        if row is None:
            return
        if row["state"] == "done":
            yield from self._outputs.load(row["name"])
        else:
            yield from map(page_from_json, map(json.loads, self._store.payloads(row["id"])))

    def close(self) -> None:
        """Give back what is claimed, and let go of the job's file."""
        try:
            self._counter.close()
            with contextlib.suppress(OutputError):
                self._release_all()  # else it would seem to have died with these
            self._workers.leave()  # what it had claimed is free
        finally:
            self._database.close()

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
