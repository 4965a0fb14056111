"""One worker process: started, asked, ended. Who replaces it when it has died or grown is `supervisor.py`'s."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import signal
import subprocess
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from hsdkit.workers import serve

log = logging.getLogger(__name__)

#: Lines of a worker's log that are kept for errors, and how much of each.
LAST_LINES, _LINE = 12, 300

#: Most characters of an answer: no page's JSON is longer, and it must not take this process's memory.
MOST_CHARACTERS = 200_000_000

#: Seconds between looks at whether the process is still there: a child of it may hold its output open.
_LOOK = 0.2


class WorkerDied(Exception):
    """The process is gone, or has been ended for what it answered; with what it last said."""


class WorkerTimeout(Exception):
    """It did not answer in time and has been ended."""


class WorkerError(Exception):
    """It answered that it could not; the library's error, as `serve.describe` writes it."""


class WorkerProcess:
    """A running `serve.py` in a session of its own: Ctrl-C does not reach it, ending it ends its children.

    Starting returns at once; `wait_ready` before anything is asked. Whatever interrupts an answer ends the process, so
    that a late answer is never taken for that of another page.
    """

    def __init__(self, python: str | os.PathLike[str], script: Path, options: Mapping[str, Any]) -> None:
        # -I: neither the folder of serve.py, which holds modules of common names, nor PYTHONPATH is searched.
        how = [os.fspath(python), "-I", "-u", "-X", "utf8"]
        command = [*how, serve.__file__, str(script), json.dumps(dict(options))]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        self.pages = 0
        self.rss = 0
        self.version = ""
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._log: deque[str] = deque(maxlen=LAST_LINES)
        self.end = weakref.finalize(self, end_group, self._process)  # also when the interpreter exits
        process = self._process
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._requests = process.stdin
        self._logging = threading.Thread(target=keep_lines, args=(process.stderr, self._log), daemon=True)
        self._logging.start()
        threading.Thread(target=_pass_on, args=(process.stdout, self._answers), daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def wait_ready(self, seconds: float) -> None:
        """Raises `WorkerError`, `WorkerDied` or `WorkerTimeout`."""
        answer = self._answer(seconds)
        self.version = str(answer.get("version", ""))

    def read(self, path: Path, seconds: float) -> Any:
        """The library's JSON for that one-page file. Raises `WorkerError`, `WorkerDied` or `WorkerTimeout`."""
        self.pages += 1
        try:
            self._requests.write(json.dumps({"path": str(path)}) + "\n")
            self._requests.flush()
        except OSError:
            raise self._died() from None
        return self._answer(seconds).get("native")

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            line = self._next_line(seconds)
            if len(line) >= MOST_CHARACTERS:
                raise WorkerDied(f"answered with over {MOST_CHARACTERS / 1e6:g} MB")
            if not line.endswith("\n"):  # nothing more comes, or it was cut short
                raise self._died()
            try:
                answer = json.loads(line)
                self.rss = int(answer.get("rss", 0))
            except (ValueError, TypeError, AttributeError, RecursionError) as e:
                raise WorkerDied(f"answered something that is no answer ({type(e).__name__}){self._said()}") from None
        except queue.Empty:
            self.end()
            raise WorkerTimeout(self._said()) from None
        except BaseException:  # Ctrl-C while it works, or an answer that is none
            self.end()
            raise
        if "error" in answer:
            raise WorkerError(str(answer["error"]))
        return dict(answer)

    def _next_line(self, seconds: float) -> str:
        """The next line of the protocol, "" when there is none any more. Raises `queue.Empty` when time is up."""
        deadline = time.monotonic() + seconds
        while True:
            alive = self.alive
            left = deadline - time.monotonic()
            try:
                # What a process said just before it ended is still on its way.
                return self._answers.get(timeout=max(0.0, min(_LOOK if alive else 0.5, left)))
            except queue.Empty:
                if not alive:
                    return ""
                if left <= 0:
                    raise

    def _died(self) -> WorkerDied:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.poll()
        self.end()
        self._logging.join(1)  # its last words may still be on the way
        return WorkerDied(f"{how_it_ended(code)}{self._said()}")

    def _said(self) -> str:
        return last_words(self._log)


def last_words(log: Sequence[str]) -> str:
    """Of the lines that a process has said, in words that go on from how it ended."""
    return f"; it last said: {' / '.join(list(log)[-3:])}" if log else ""


def how_it_ended(code: int | None) -> str:
    """Of a process with that return code, None while it has none, in words that go on from "the process"."""
    if code is None:
        return "closed its output"
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        name = signal.Signals(-code).name
        return f"was killed ({name}{', perhaps for want of memory' if name == 'SIGKILL' else ''})"
    return f"was killed (signal {-code})"


def end_group(process: subprocess.Popen[Any], patience: float = 5.0) -> None:
    """End a process that was started in a session of its own, and all its children, and wait for it."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        process.kill()
    deadline = time.monotonic() + patience
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    if process.stdin:
        with contextlib.suppress(OSError):
            process.stdin.close()


def keep_lines(stream: IO[str], lines: deque[str]) -> None:
    """Read a process's log to its end into `lines`, whose length bounds it."""
    with contextlib.suppress(ValueError, OSError):
        while piece := stream.readline(_LINE):  # a line may have no end
            if piece := piece.strip():
                lines.append(piece)
                log.debug("worker: %s", piece)


def _pass_on(stream: IO[str], answers: queue.SimpleQueue[str]) -> None:
    with contextlib.suppress(ValueError, OSError):
        while line := stream.readline(MOST_CHARACTERS):
            answers.put(line)
    answers.put("")
