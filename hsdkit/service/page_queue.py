"""The pages that wait, of all jobs: taken one job after the other, so that no long document holds up the short ones."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from hsdkit.parallel import PageTask


@dataclass(slots=True)
class _Waiting:
    path: Path
    numbers: deque[int]
    password: str | None


class PageQueue:
    """A task's `key` is its job's id. Thread-safe."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Waiting] = {}  # in the order of their turns
        self._changed = threading.Condition()
        self._closed = False

    def add(self, job: str, path: Path, numbers: tuple[int, ...], password: str | None = None) -> None:
        with self._changed:
            self._jobs[job] = _Waiting(path, deque(numbers), password)
            self._changed.notify()

    def discard(self, job: str) -> None:
        """Give up what still waits of the job."""
        with self._changed:
            self._jobs.pop(job, None)

    def close(self) -> None:
        """Hand out nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def pages(self) -> int:
        with self._changed:
            return sum(len(w.numbers) for w in self._jobs.values())

    @property
    def closed(self) -> bool:
        return self._closed

    def take(self, seconds: float) -> PageTask | None:
        """The next page. Waits so long for one; None if there is none then, or nothing is handed out any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed, seconds)
            if self._closed or not self._jobs:
                return None
            job, waiting = next(iter(self._jobs.items()))
            del self._jobs[job]
            number = waiting.numbers.popleft()
            if waiting.numbers:
                self._jobs[job] = waiting  # at the end of the line
            return PageTask(waiting.path, number, job, password=waiting.password)
