"""How many pages an upload has, found out in a process of its own: a file that crashes, hangs or swells the reader of
its format does it there."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from hsdkit.config import RunConfig
from hsdkit.errors import DocumentError, PluginError
from hsdkit.preparing.local import Recipe
from hsdkit.preparing.process import Bounds, ProcessPreparer
from hsdkit.service.refusal import Refusal

#: Processes that count at a time, and seconds they may take over a file.
_MOST, _SECONDS = 2, 20.0


class Counting:
    """Processes that open documents and nothing else: kept for the next file."""

    def __init__(self, config: RunConfig) -> None:
        self._recipe = Recipe.to_count(config.password, config.max_pixels)
        self._bounds = Bounds(config.page_memory, min(_SECONDS, config.prepare_seconds))
        self._turn = asyncio.Semaphore(_MOST)
        self._free: list[ProcessPreparer] = []
        self._all: list[ProcessPreparer] = []
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start them now: under load that may take longer than the first client cares to wait."""
        self._free += [self._started() for _ in range(_MOST)]

    async def count(self, path: Path, password: str | None = None) -> int:
        """Raises `Refusal` (422) with one line for a file that cannot be opened."""
        async with self._turn:
            try:
                return await asyncio.to_thread(self._count, path, password)
            except DocumentError as e:
                raise Refusal(422, str(e), "document") from None
            except PluginError as e:  # no process can be started
                raise Refusal(503, str(e), "counting", 30) from None

    def _count(self, path: Path, password: str | None) -> int:
        with self._lock:
            counter = self._free.pop() if self._free else None
        if counter is None:
            counter = self._started()
        try:
            return counter.count(path, password)
        finally:
            with self._lock:
                self._free.append(counter)

    def _started(self) -> ProcessPreparer:
        counter = ProcessPreparer(self._recipe, self._bounds)
        with self._lock:
            self._all.append(counter)
        return counter

    def close(self) -> None:
        """End the processes; a file being counted is told as one that could not be opened."""
        for counter in self._all:
            counter.close()
