"""A worker for a whole run: started when first needed, replaced when it has grown or died, given up when it cannot be
kept alive. One page that kills it costs that page its draft."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hsdkit.errors import DrafterError, PluginError
from hsdkit.workers.options import WorkerOptions
from hsdkit.workers.process import WorkerDied, WorkerError, WorkerProcess, WorkerTimeout

log = logging.getLogger(__name__)

#: Deaths at start, and pages in a row that end it, after which no other is started.
MOST_STARTS, MOST_DEATHS = 2, 5


class Supervisor:
    """Same interface as `InProcess` and `Served`: `load`, `read`, `close`, `version`, `where`.

    `start` starts a process; `explain` turns the library's error into what the user should do. Raises `PluginError`
    for what every page will meet alike, `DrafterError` for what is about one page.
    """

    where = "its own environment"

    def __init__(
        self,
        name: str,
        start: Callable[[], WorkerProcess],
        options: WorkerOptions,
        explain: Callable[[str], str | None],
        version: str = "",
    ) -> None:
        self.name, self.version = name, version
        self.notes: list[str] = []
        self._start, self._options, self._explain = start, options, explain
        self._worker: WorkerProcess | None = None
        self._deaths = 0
        self._hopeless = ""

    def load(self) -> None:
        """Have a worker that is ready. Raises `PluginError`, at once for good once it has been given up."""
        if self._hopeless:
            raise PluginError(self._hopeless)
        if self._worker and self._worker.alive:
            return
        self.close()
        for attempt in range(1, MOST_STARTS + 1):
            try:
                self._worker = self._ready()
                return
            except WorkerError as e:  # the library said why; it would say so again
                raise self._given_up(self._explain(str(e)) or f"cannot be loaded: {e}") from None
            except WorkerTimeout as e:
                seconds = self._options.start_timeout
                raise self._given_up(
                    f"was not ready after {seconds:g} s (drafter.start_timeout={seconds:g}){e}"
                ) from None
            except WorkerDied as e:
                log.debug("worker of %s died at start, attempt %d: %s", self.name, attempt, e)
                died = e
        raise self._given_up(f"its worker {died}, {MOST_STARTS} times while it started") from None

    def read(self, path: Path) -> Any:
        """The library's JSON for a one-page file. Raises `DrafterError` for this page, `PluginError` for every page."""
        self.load()
        worker = self._worker
        assert worker is not None
        try:
            native = worker.read(path, self._options.timeout)
        except WorkerError as e:
            self._deaths = 0
            raise DrafterError(self._explain(str(e)) or str(e)) from None
        except WorkerTimeout as e:
            seconds = self._options.timeout
            raise self._lost(f"took more than {seconds:g} s (drafter.timeout={seconds:g}){e}") from None
        except WorkerDied as e:
            raise self._lost(f"its worker {e}") from None
        finally:
            self._recycle(worker)
        self._deaths = 0
        return native

    def close(self) -> None:
        if self._worker:
            self._worker.end()
            self._worker = None

    def take_notes(self) -> tuple[str, ...]:
        """What a user should know of the last page, each thing once."""
        notes, self.notes = tuple(self.notes), []
        return notes

    def _ready(self) -> WorkerProcess:
        try:
            worker = self._start()
        except OSError as e:
            raise self._given_up(f"its worker cannot be started: {e.strerror or e}") from e
        try:
            worker.wait_ready(self._options.start_timeout)
        except BaseException:
            worker.end()
            raise
        self.version = worker.version or self.version
        return worker

    def _recycle(self, worker: WorkerProcess) -> None:
        """Replace, before the next page, a worker that has done its number of pages or grown past the bound."""
        limit = self._options.max_megabytes
        grown = worker.rss > limit * 1_000_000
        if grown and worker.pages == 1:
            self.notes.append(
                f"{self.name} takes {worker.rss / 1e6:.0f} MB for one page, more than drafter.max_megabytes={limit}: "
                "its worker is replaced after every page"
            )
        if grown or worker.pages >= self._options.max_pages:
            log.debug("worker of %s replaced after %d pages, %d MB", self.name, worker.pages, worker.rss // 1_000_000)
            self.close()

    def _lost(self, reason: str) -> DrafterError:
        """The page's error; the worker is gone. Pages that all end it would cost a start each: not many such."""
        self.close()
        self._deaths += 1
        if self._deaths >= MOST_DEATHS:
            self._given_up(f"was ended by {MOST_DEATHS} pages in a row; the last: {reason}")
        return DrafterError(reason)

    def _given_up(self, reason: str) -> PluginError:
        self.close()
        self._hopeless = reason
        return PluginError(self._hopeless)
