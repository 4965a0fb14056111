"""One document on its way: what is known of it, its folder, and the news for those who watch it."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from hsdkit.errors import OutputError
from hsdkit.files import write_whole
from hsdkit.results_json import dumps
from hsdkit.totals import Totals


class State(StrEnum):
    """queued, running; then one of done (every page has a result, some may have failed), failed (no page could be
    parsed), cancelled (by the client), stopped (the service was shut down; the pages finished before are kept)."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    STOPPED = "stopped"

    @property
    def over(self) -> bool:
        return self not in (State.QUEUED, State.RUNNING)


@dataclass(eq=False)
class Job:
    """Changed by the thread that parses, read by those that answer. `lock` guards what is known and is never held for
    long; `writing`, taken before it, guards the folder and the end.

    `numbers` are the pages asked for, `finished` those with a result, in the order they were done; `text` is that of
    the pages being decoded, `bytes` what all of it takes on the disk, `held` how many wait for its result, which is not
    tidied away until they have it. Times are seconds since 1970.
    """

    id: str
    source: str
    folder: Path
    numbers: tuple[int, ...]
    created: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None
    state: State = State.QUEUED
    error: str | None = None
    totals: Totals = field(default_factory=Totals)
    finished: list[int] = field(default_factory=list)
    text: dict[int, str] = field(default_factory=dict)
    bytes: int = 0
    held: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    writing: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _watchers: set[Callable[[], None]] = field(default_factory=set, repr=False)

    @property
    def upload(self) -> Path:
        """The document; removed once the job is over."""
        return self.folder / "upload" / self.source

    def file(self, number: int, suffix: str) -> Path:
        """Of one page: `.json` its result, `.view.json` what watchers are told, `.jpg` its image."""
        return self.folder / f"page-{number}{suffix}"

    @property
    def markdown(self) -> Path:
        return self.folder / "result.md"

    @property
    def json(self) -> Path:
        return self.folder / "result.json"

    def facts(self) -> dict[str, Any]:
        """What a client is told of the job."""
        with self.lock:
            return {
                "id": self.id,
                "source": self.source,
                "status": self.state.value,
                "error": self.error,
                "pages": len(self.numbers),
                "pages_finished": len(self.finished),
                "pages_failed": self.totals.failed,
                "tokens": self.totals.page_tokens,
                "steps": self.totals.steps,
                "tokens_per_step": round(self.totals.tokens_per_step, 3),
                "created": self.created,
                "started": self.started,
                "ended": self.ended,
            }

    def save(self) -> None:
        """Keep the facts, for a service that is started on the same folder later."""
        kept = self.facts() | {"numbers": list(self.numbers), "finished": self.finished, "bytes": self.bytes}
        write_whole(self.folder / "job.json", [dumps(kept)])

    @contextlib.contextmanager
    def watched(self, tell: Callable[[], None]) -> Iterator[None]:
        """`tell` is called, from any thread, whenever something has changed."""
        with self.lock:
            self._watchers.add(tell)
        try:
            yield
        finally:
            with self.lock:
                self._watchers.discard(tell)

    def news(self) -> None:
        with self.lock:
            watchers = list(self._watchers)
        for tell in watchers:
            tell()

    def end(self, state: State, error: str | None = None) -> None:
        """Within `writing`."""
        with self.lock:
            self.state, self.error, self.ended = state, error, time.time()
            self.text.clear()
        with contextlib.suppress(OSError, OutputError):  # a full disk; the job is over all the same
            shutil.rmtree(self.upload.parent, ignore_errors=True)
            self.weigh()
            self.save()

    def weigh(self) -> None:
        """Find out how much is on the disk. Raises `OSError`."""
        self.bytes = sum(f.stat().st_size for f in self.folder.rglob("*") if f.is_file())

    def remove(self) -> None:
        with self.writing:
            shutil.rmtree(self.folder, ignore_errors=True)
