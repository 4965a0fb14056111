"""The jobs of a service in their folder: found by id, bounded in number, size and age."""

from __future__ import annotations

import contextlib
import re
import secrets
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from hsdkit.errors import OutputError
from hsdkit.files import locked, make_folder
from hsdkit.service.job import Job, State
from hsdkit.service.limits import Limits
from hsdkit.service.refusal import Refusal
from hsdkit.service.schemas import JobFacts
from hsdkit.service.upload import safe_name
from hsdkit.totals import Totals

#: The name of a job's folder (`new_folder`), and of what is in it.
_ID = re.compile(r"[\w-]{16}", re.ASCII)
_FILE = re.compile(
    r"upload|\.?(job\.json|result\.(md|json)|report\.(html|part)|page-\d+\.(json|view\.json|jpg))(\.part)?"
)


class Jobs:
    """Thread-safe. Jobs of an earlier service on the same folder are there again if they had ended; what is left of
    others is removed, and nothing else that may be in the folder.

    Raises `OutputError` for a folder that cannot be written, or that another service uses.
    """

    def __init__(self, folder: Path, limits: Limits) -> None:
        self.folder, self.limits = folder, limits
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._arriving, self._lock_arriving = 0, threading.Lock()
        make_folder(folder)
        self._mine = _lock(folder)
        kept = []
        for path in folder.iterdir():
            if not _ID.fullmatch(path.name) or path.is_symlink() or not path.is_dir():
                continue
            if job := _read(path / "job.json"):
                kept.append(job)
            elif _is_jobs(path):  # it had not ended when its service was killed
                shutil.rmtree(path, ignore_errors=True)
        self._jobs |= {job.id: job for job in sorted(kept, key=lambda job: job.created)}

    def close(self) -> None:
        """Let another service have the folder."""
        self._mine.close()

    def __len__(self) -> int:
        return len(self._jobs)

    def get(self, job: str) -> Job:
        """Raises `Refusal` (404) for a job that is not there, or no longer."""
        with self._lock:
            found = self._jobs.get(job)
        if found is None:
            raise Refusal(404, "no such job: it never was, has expired, or was deleted", "not_found")
        return found

    def all(self) -> list[Job]:
        """Newest first."""
        with self._lock:
            return list(self._jobs.values())[::-1]

    @property
    def active(self) -> int:
        return sum(not job.state.over for job in self.all())

    def new_folder(self) -> tuple[str, Path]:
        """An id and its empty folder, for an upload that may become a job."""
        job = secrets.token_urlsafe(12)
        folder = self.folder / job
        (folder / "upload").mkdir(parents=True)
        return job, folder

    def check_room(self) -> None:
        """Raises `Refusal` (429) when no further document can be taken now."""
        if (taken := self.active + self._arriving) >= self.limits.queue:
            raise Refusal(429, f"{taken} documents are waiting or being parsed; try again later", "queue", 5)
        if sum(job.bytes for job in self.all() if not job.state.over) >= self.limits.keep_bytes:
            raise Refusal(429, "no room for further documents; try again later", "disk", 30)

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """A place in the queue, for a document that has been received and is about to be added. Raises as `check_room`
        does."""
        with self._lock_arriving:
            self.check_room()
            self._arriving += 1
        try:
            yield
        finally:
            with self._lock_arriving:
                self._arriving -= 1

    def add(self, job: Job) -> None:
        """Within `place`."""
        with self._lock:
            self._jobs[job.id] = job

    @contextlib.contextmanager
    def held(self, job: Job) -> Iterator[None]:
        """Somebody waits for the job's result: meanwhile it is not tidied away."""
        with job.lock:
            job.held += 1
        try:
            yield
        finally:
            with job.lock:
                job.held -= 1

    def remove(self, job: Job) -> None:
        with self._lock:
            self._jobs.pop(job.id, None)
        job.remove()

    def tidy(self) -> None:
        """Remove finished jobs that are too old, too many or too large, the oldest first."""
        limits, now = self.limits, time.time()
        ended = sorted((j for j in self.all() if j.state.over), key=lambda j: j.ended or 0.0)
        size = sum(job.bytes for job in self.all())
        for i, job in enumerate(ended):
            too_old = now - (job.ended or 0.0) > limits.keep_seconds
            if not job.held and (too_old or len(ended) - i > limits.keep_jobs or size > limits.keep_bytes):
                size -= job.bytes
                self.remove(job)


class _Kept(JobFacts):
    """`job.json` (`Job.save`)."""

    numbers: list[int]
    finished: list[int]
    bytes: int


def _read(path: Path) -> Job | None:
    """The job of a folder; None for one that had not ended, or whose facts cannot be read."""
    try:
        kept = _Kept.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    state = State(kept.status)
    if not state.over or safe_name(kept.source) != kept.source:
        return None
    totals = Totals(
        len(kept.finished), kept.pages_failed, kept.tokens, steps=kept.steps,
        emitted=round(kept.tokens_per_step * kept.steps),
    )  # fmt: skip
    return Job(
        path.parent.name, kept.source, path.parent, tuple(kept.numbers), kept.created, kept.started, kept.ended, state,
        kept.error, totals, kept.finished, bytes=kept.bytes,
    )  # fmt: skip


def _is_jobs(folder: Path) -> bool:
    """Whether all that is in the folder is a job's."""
    return all(_FILE.fullmatch(path.name) for path in folder.iterdir())


def _lock(folder: Path) -> IO[str]:
    """The folder's lock, as `locked`. Raises `OutputError`."""
    try:
        return locked(folder / ".lock")
    except BlockingIOError:
        raise OutputError(f"{folder}: another hsdkit serve uses it; choose another folder with --folder") from None
    except OSError as e:
        raise OutputError(f"{folder}: cannot be written: {e.strerror}; choose another folder with --folder") from None
