"""Several preparers, each for one page at a time: who takes the next page."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

from hsdkit.preparing.local import Preparer
from hsdkit.preparing.page import AskCost, PageTask, Prepared
from hsdkit.versions import usable_cores


class Preparers:
    """A page goes to the preparer that had the file before it, where that one is free: it has the file open."""

    def __init__(self) -> None:
        self._all: list[Preparer] = []
        self._free: list[tuple[Preparer, Path | None]] = []
        self._changed = threading.Condition()
        self._closed = False

    def add(self, preparer: Preparer) -> None:
        self._all.append(preparer)
        self._free.append((preparer, None))

    def prepare(self, task: PageTask, cost: AskCost | None) -> Prepared:
        """Waits for one that is free. Raises as they do."""
        with self._one(task.path) as preparer:
            return preparer.prepare(task, cost)

    def close(self) -> None:
        """Whoever waits for a page is given an error instead, at once."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for preparer in self._all:
            preparer.close()

    @contextlib.contextmanager
    def _one(self, path: Path) -> Iterator[Preparer]:
        with self._changed:
            self._changed.wait_for(lambda: self._free or self._closed)
            if self._closed:
                raise RuntimeError("no page is prepared any more")
            # Of those that had other files, the one that has been free for longest.
            index = next((i for i, (_, last) in enumerate(self._free) if last == path), 0)
            preparer, _ = self._free.pop(index)
        try:
            yield preparer
        finally:
            with self._changed:
                self._free.append((preparer, path))
                self._changed.notify()


def fitting_processes(cores: int | None = None) -> int:
    """How many processes should prepare pages with so many cores (None: those of this machine): one for every four, as
    drafters use several, and no more than four, as decoding is what takes the time."""
    return max(1, min(4, (usable_cores() if cores is None else cores) // 4))
