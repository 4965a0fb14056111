"""The class of a run's Ray actors: one pipeline, to which rows come as pages and leave as results."""

from __future__ import annotations

import logging
import pickle
import socket
from dataclasses import replace
from typing import Any

import ray

from hsdkit.errors import HsdkitError, described
from hsdkit.parallel import PageTask
from hsdkit.ray.gate import Gate
from hsdkit.ray.reader import Reader
from hsdkit.ray.settings import Settings
from hsdkit.results import PageResult
from hsdkit.results_json import dumps, page_to_json

log = logging.getLogger(__name__)

#: How often a page is begun whose worker dies each time. At the first death the pages beside it may be to blame, so
#: from then on it has the worker to itself.
TIMES = 3

Row = dict[str, Any]


class Worker:
    """For `Dataset.map`: rows of a `Feed` in, rows of results out.

    A row that comes out has the `index` of the one that went in, the `page` (a result's JSON), the `versions` that made
    it (JSON), or `error` and `message` of what every page would fail with. Whatever goes wrong is in the row: Ray drops
    or repeats more than the row that raised. Several threads may call it; their pages share the engine.
    """

    def __init__(self, settings: Settings, feed: Any, preparing: int) -> None:
        self._feed = feed
        self._gate = Gate()
        self._reader: Reader | HsdkitError
        try:
            self._reader = Reader(settings.pipeline(), preparing)
            self._versions = dumps(self._reader.pipeline.versions())
        except HsdkitError as e:
            self._reader = e
        except Exception as e:  # Ray would make worker after worker that fails alike
            log.debug("the worker cannot start", exc_info=True)
            self._reader = HsdkitError(f"cannot start: {described(e)}")

    def __call__(self, row: Row) -> Row:
        index = int(row["index"])
        if not row["task"]:
            return _row(index)  # it has its result already
        task: PageTask = pickle.loads(row["task"])
        if isinstance(self._reader, HsdkitError):
            return _fatal(index, self._reader)
        try:
            return self._result(index, self._read(self._reader, index, task))
        except HsdkitError as e:
            return _fatal(index, e)

    def _read(self, reader: Reader, index: int, task: PageTask) -> PageResult:
        begun: int = ray.get(self._feed.begun.remote(index))
        if begun >= TIMES:
            return reader.failed(
                task,
                f"the worker died each of the {begun} times that it read this page: out of memory, or a crash in the "
                "code of the model or the drafter",
            )
        with self._gate.entered(alone=begun > 0):
            ray.get(self._feed.begin.remote(index))
            result = reader.read(task)
        if not begun:
            return result
        times = "once" if begun == 1 else f"{begun} times"
        return replace(result, notes=(*result.notes, f"read again: its worker had died {times}"))

    def _result(self, index: int, result: PageResult) -> Row:
        return _row(index, page=dumps(page_to_json(result)), versions=self._versions)


def _fatal(index: int, error: HsdkitError) -> Row:
    return _row(index, error=type(error).__name__, message=f"worker {socket.gethostname()}: {error}")


def _row(index: int, *, page: str = "", versions: str = "", error: str = "", message: str = "") -> Row:
    return {"index": index, "page": page, "versions": versions, "error": error, "message": message}
