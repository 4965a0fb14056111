"""One process that prepares pages: started, asked, ended. Who replaces it is in `process.py`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

from hsdkit.errors import ConfigError, PluginError
from hsdkit.preparing.wire import WireError, receive, send
from hsdkit.workers.process import LAST_LINES, end_group, how_it_ended, keep_lines, last_words

#: Seconds a drafter may take to load.
START_SECONDS = 600.0

#: Not `-m`: the folder it was started in must not be searched for modules, but all that this process searches must.
_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from hsdkit.preparing.worker import main; main()"


class ProcessLost(Exception):
    """The process died, was ended because its time was up, or talks nonsense; says which."""


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
        return ProcessLost(f"{self._time_is_up or how_it_ended(code)}{last_words(self._log)}")


def _clear(process: subprocess.Popen[bytes], folder: str) -> None:
    end_group(process)
    shutil.rmtree(folder, ignore_errors=True)


def _keep(said: io.TextIOWrapper, lines: deque[str]) -> None:
    with said:
        keep_lines(said, lines)
