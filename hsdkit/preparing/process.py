"""A process apart that prepares pages, replaced when it dies, hangs or grows: a page that does that to it costs itself,
or only its draft when it was rendered already.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hsdkit.documents import Page
from hsdkit.drafting import sound
from hsdkit.errors import ConfigError, DocumentError, PluginError
from hsdkit.preparing.local import Recipe
from hsdkit.preparing.page import AskCost, PageTask, Prepared
from hsdkit.preparing.wire import WireError, receive, send
from hsdkit.regions import Draft
from hsdkit.results_json import draft_from_json
from hsdkit.workers.process import LAST_LINES, end_group, how_it_ended, keep_lines

log = logging.getLogger(__name__)

#: Seconds a drafter may take to load, and how many processes in a row may die while they start.
START_SECONDS, MOST_STARTS = 600.0, 2

#: Share of its memory bound from which on a process is replaced before the next page: libraries leak, and the page that
#: meets the bound should be the one that needs that much.
_WORN = 0.8

#: Not `-m`: the folder it was started in must not be searched for modules, but all that this process searches must.
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from hsdkit.preparing.worker import main; main()"


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one process: MB of memory, and seconds a page may take."""

    megabytes: int
    seconds: float


class ProcessLost(Exception):
    """The process died, was ended because its time was up, or talks nonsense; says which."""


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
                f"({type(e).__name__}: {e}); choose preparing=0"
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
            raise ProcessLost(f"answered nonsense ({type(e).__name__}: {e})") from e
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


class PreparingProcess:
    """A running `worker.py`, in a session of its own: Ctrl-C does not reach it, ending it ends its children, and what
    it leaves in its folder for temporary files goes with it."""

    def __init__(self, recipe: bytes, megabytes: int) -> None:
        folder = tempfile.mkdtemp(prefix="hsdkit-")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=os.environ | {"TMPDIR": folder},
                start_new_session=True,
            )
        except OSError as e:
            shutil.rmtree(folder, ignore_errors=True)
            raise PluginError(f"no process to prepare pages can be started: {e.strerror or e}") from e
        self.end = weakref.finalize(self, _clear, self._process, folder)  # also when the interpreter exits
        assert self._process.stdin
        assert self._process.stdout
        assert self._process.stderr
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._log: deque[str] = deque(maxlen=LAST_LINES)
        said = io.TextIOWrapper(self._process.stderr, encoding="utf-8", errors="replace")
        self._logging = threading.Thread(target=_keep, args=(said, self._log), daemon=True)
        self._logging.start()
        self.rss = 0
        self.is_ready = False
        self._time_is_up = ""
        with contextlib.suppress(ProcessLost):  # which the first answer will say again
            self.send({"megabytes": megabytes}, recipe)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End it. Not while another thread waits for its answer."""
        self.end()
        for pipe in (self._requests, self._answers):
            with contextlib.suppress(OSError, ValueError):
                pipe.close()

    def wait_ready(self) -> None:
        """Raises `ProcessLost`, and what its drafter raised."""
        with self.limited(START_SECONDS, "to start"):
            self.receive()
        self.is_ready = True

    def send(self, message: dict[str, Any], blob: bytes = b"") -> None:
        """Raises `ProcessLost`."""
        try:
            send(self._requests, message, blob)
        except (OSError, ValueError):
            raise self._lost() from None

    def receive(self, most: int = 0) -> tuple[dict[str, Any], bytes]:
        """Raises `ProcessLost`, and `PluginError` or `ConfigError` when it says that no page can be prepared."""
        try:
            message, blob = receive(self._answers, most)
        except WireError as e:
            raise self._lost("" if str(e) == "ended" else str(e)) from None
        if "fatal" in message:
            kind = ConfigError if message["fatal"] == "ConfigError" else PluginError
            raise kind(str(message.get("error")))
        return message, blob

    @contextlib.contextmanager
    def limited(self, seconds: float, option: str) -> Iterator[None]:
        """End the process when what is done here takes longer. What it said before is forgotten."""
        self._log.clear()

        def end() -> None:
            self._time_is_up = f"took more than {seconds:g} s ({option})"
            self.end()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _lost(self, nonsense: str = "") -> ProcessLost:
        if nonsense and not self._time_is_up:
            return ProcessLost(nonsense)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.poll()
        self._logging.join(1)  # its last words may still be on the way
        last = f"; it last said: {' / '.join(list(self._log)[-3:])}" if self._log else ""
        return ProcessLost(f"{self._time_is_up or how_it_ended(code)}{last}")


def _clear(process: subprocess.Popen[bytes], folder: str) -> None:
    end_group(process)
    shutil.rmtree(folder, ignore_errors=True)


def _keep(said: io.TextIOWrapper, lines: deque[str]) -> None:
    with said:
        keep_lines(said, lines)


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
