"""A process apart that prepares pages, replaced when it dies, hangs or grows: a page that does that to it costs itself,
or only its draft when it was rendered already.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hsdkit.documents import Page
from hsdkit.drafting import sound
from hsdkit.errors import ConfigError, DocumentError, PluginError, described
from hsdkit.preparing.local import Recipe
from hsdkit.preparing.page import AskCost, PageTask, Prepared
from hsdkit.preparing.worker_process import PreparingProcess, ProcessLost
from hsdkit.regions import Draft
from hsdkit.results_json import draft_from_json

log = logging.getLogger(__name__)

#: How many processes in a row may die while they start.
MOST_STARTS = 2

#: Share of its memory bound from which on a process is replaced before the next page: libraries leak, and the page that
#: meets the bound should be the one that needs that much.
_WORN = 0.8


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one process: MB of memory, and seconds a page may take."""

    megabytes: int
    seconds: float


class ProcessPreparer:
    """`Preparer` in a process of its own, which starts at once and loads while others work. For one thread at a time;
    `close` may be called from any and ends the process whatever it does. Raises `ConfigError` for a recipe that cannot
    be sent."""

    def __init__(self, recipe: Recipe, bounds: Bounds) -> None:
        self._recipe, self._bounds = recipe, bounds
        try:
            self._pickled = pickle.dumps(recipe)
        except Exception as e:  # options of a plugin may be anything
            raise ConfigError(
                f"preparing: drafter {recipe.drafter!r} has options that other processes cannot be given "
                f"({described(e)}); choose preparing=0"
            ) from e
        self._busy, self._lock = threading.Lock(), threading.Lock()
        self._closed = False
        self._process: PreparingProcess | None = None
        self._started()

    def prepare(self, task: PageTask, cost: AskCost | None) -> Prepared:
        with self._busy:
            return self._prepare(task, cost)

    def _prepare(self, task: PageTask, cost: AskCost | None) -> Prepared:
        page: Page | None = None
        start = time.perf_counter()
        try:
            with self._asked(task, judge=cost is not None) as process:
                while True:
                    message, pixels = process.receive(self._recipe.opening.max_pixels * 3)
                    if "page" in message:
                        page = _page(message["page"], pixels, task.number)
                    elif "ask" in message and cost is not None:
                        process.send(asdict(cost()))
                    else:
                        process.rss = message["rss"]
                        return _prepared(message["done"], page, task.number, self._bounds.megabytes)
        except ProcessLost as e:
            seconds = time.perf_counter() - start
            if page is None:
                where = f"{task.path.name}, page {task.number}"
                return Prepared(task.number, error=f"{where}: the process that prepared it {e}", seconds=seconds)
            drafter = self._recipe.drafter or "none"
            notes = (f"no draft: drafter {drafter!r} failed: its process {e}",)
            return Prepared(task.number, page, Draft(drafter=drafter, seconds=seconds), notes, seconds=seconds)

    def count(self, path: Path, password: str | None = None) -> int:
        """How many pages a file has. Raises `DocumentError` when it cannot be opened, or does harm to the process."""
        with self._busy:
            try:
                with self._asked(PageTask(path, 0, password=password), judge=False) as process:
                    message, _ = process.receive()
                    process.rss = message["rss"]
                    count, error = message.get("count"), message.get("error")
            except ProcessLost as e:
                raise DocumentError(f"{path.name}: the process that opened it {e}") from None
        if not isinstance(count, int):
            raise DocumentError(_naming_bound(str(error), self._bounds.megabytes))
        return count

    @contextlib.contextmanager
    def _asked(self, task: PageTask, judge: bool) -> Iterator[PreparingProcess]:
        """A process that has been asked for the task and whose answers are awaited within the time of a page. Raises
        `ProcessLost` for whatever goes wrong with it; it is replaced then, and when it has grown."""
        process = self._ready()
        try:
            with process.limited(self._bounds.seconds, f"prepare_seconds={self._bounds.seconds:g}"):
                process.send(_request(task, judge))
                yield process
        except BaseException as e:
            self._end(process)  # whatever it would still say must not be taken for another page's
            if isinstance(e, (ProcessLost, PluginError, ConfigError)) or not isinstance(e, Exception):
                raise
            raise ProcessLost(f"answered nonsense ({described(e)})") from e
        if process.rss > _WORN * 1e6 * self._bounds.megabytes:
            log.debug("a process that prepares pages is replaced: it holds %d MB", process.rss // 1_000_000)
            self._end(process)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            process = self._process
        if process is not None:
            process.end()  # whoever waits for an answer is told so
            with self._busy:
                self._end(process)

    def _started(self) -> PreparingProcess:
        with self._lock:
            if self._closed:
                raise ProcessLost("was ended")
            if self._process is None:
                self._process = PreparingProcess(self._pickled, self._bounds.megabytes)
            return self._process

    def _ready(self) -> PreparingProcess:
        """A process that waits for a task. Raises `PluginError` where none can be had."""
        deaths, why = 0, ""
        while deaths < MOST_STARTS:
            process = self._started()
            if process.is_ready and process.alive:
                return process
            try:
                if not process.is_ready:
                    process.wait_ready()
                    return process
            except ProcessLost as e:
                deaths, why = deaths + 1, str(e)
            except BaseException:
                self._end(process)
                raise
            self._end(process)  # if it was ready, it has died between two pages: none of theirs
        raise PluginError(
            f"a process that prepares pages {why} while it started, {MOST_STARTS} times "
            f"(page_memory={self._bounds.megabytes}; preparing=0 does without such processes)"
        )

    def _end(self, process: PreparingProcess) -> None:
        with self._lock:
            if self._process is process:
                self._process = None
        process.close()


def _request(task: PageTask, judge: bool) -> dict[str, Any]:
    return {
        "folder": _here(),
        "path": os.fspath(task.path),
        "number": task.number,
        "rotate": task.rotate,
        "password": task.password,
        "judge": judge,
    }


def _here() -> str:
    """The folder that relative names count from; "" where it has been deleted, which absolute ones do not mind."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _page(described: dict[str, Any], pixels: bytes, number: int) -> Page:
    from PIL import Image

    image = Image.frombytes("RGB", (int(described["width"]), int(described["height"])), pixels)
    where = f"{described['source']}, page {number}"

    def gone() -> Any:
        raise DocumentError(f"{where}: was prepared in a process apart, and only drafters there can read its PDF")

    read = gone if described["pdf"] else None
    notes = tuple(map(str, described["notes"]))
    return Page(number, image, str(described["source"]), float(described["dpi"]), notes, read, read)


def _prepared(done: dict[str, Any], page: Page | None, number: int, megabytes: int) -> Prepared:
    draft, _ = sound(draft_from_json(done["draft"]))
    error = None if done["error"] is None else _naming_bound(str(done["error"]), megabytes)
    notes = tuple(_naming_bound(str(n), megabytes) for n in done["notes"])
    characters = None if done["characters"] is None else float(done["characters"])
    if page is None and error is None:
        raise ValueError("neither a page nor an error")
    return Prepared(number, page, draft, notes, characters, error, float(done["seconds"]))


def _naming_bound(said: str, megabytes: int) -> str:
    return f"{said} (page_memory={megabytes})" if "MemoryError" in said else said
