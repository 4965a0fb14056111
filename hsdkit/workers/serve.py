"""The worker process: run as `python serve.py SCRIPT OPTIONS`, in the library's own environment, so it imports nothing
but the standard library. `inprocess.py` imports it, too, to run a script in process the same way.

Lines of JSON. It says `{"ready": true, "version": ..., "rss": ...}` once the script's `load(options)` has returned, or
`{"error": ...}`; then answers each `{"path": FILE}` with `{"native": ..., "rss": ...}` or `{"error": ...}`, in order.
`rss` is this process's memory in bytes. It ends when its standard input does, which is when its parent ends.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import signal
import sys
import threading
import time
from types import ModuleType
from typing import Any, TextIO


def import_script(path: str) -> ModuleType:
    """The worker script as a module of a name of its own."""
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def describe(error: BaseException | None) -> str:
    """`TypeName: message`, with the errors that caused it, on one line."""
    said: list[str] = []
    while error is not None and len(said) < 5:
        try:
            message = str(error)
        except Exception:
            message = "its message cannot be shown"
        text = f"{type(error).__name__}: {' '.join(message.split())}".rstrip(": ")
        said.append(text if len(text) <= 600 else text[:600] + "...")
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return " <- ".join(said)


def resident_bytes() -> int:
    """Memory in use now; where the system does not say, the most it has been."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        pass
    try:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    except ImportError:
        return 0


def main() -> int:
    script, options = sys.argv[1], json.loads(sys.argv[2])
    _lift_memory_limit()
    at_answers, at_requests = take_channels()
    answers, requests = os.fdopen(at_answers, "w", encoding="utf-8"), os.fdopen(at_requests, "r", encoding="utf-8")
    end_with_parent()
    waiting: queue.Queue[dict[str, str]] = queue.Queue()
    threading.Thread(target=_receive, args=(requests, waiting), daemon=True).start()

    def say(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        module = import_script(script)
        read = module.load(options)
        version = str(module.version()) if hasattr(module, "version") else ""
    except BaseException as e:  # libraries exit, and extension modules panic with errors that are no Exception
        say({"error": describe(e)})
        return 1
    say({"ready": True, "version": version, "rss": resident_bytes()})
    while True:
        request = waiting.get()
        try:
            answer = json.dumps({"native": read(request["path"]), "rss": resident_bytes()})
        except BaseException as e:
            answer = json.dumps({"error": describe(e), "rss": resident_bytes()})
        answers.write(answer + "\n")
        answers.flush()


def take_channels() -> tuple[int, int]:
    """Descriptors of the two ends of the protocol (answers, requests), out of the library's reach: what it prints, even
    from C, goes to standard error, and it reads nothing."""
    answers, requests = os.dup(1), os.dup(0)
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return answers, requests


def _lift_memory_limit() -> None:
    """The bound of a process that prepares pages is not that of the library: the supervisor looks at what it takes."""
    try:
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    except (ImportError, ValueError, OSError):
        pass


def _receive(requests: TextIO, waiting: queue.Queue[dict[str, str]]) -> None:
    """Requests into the queue; when the parent has closed the other end, this process and its children end at once."""
    for line in requests:
        waiting.put(json.loads(line))
    _end()


def end_with_parent() -> None:
    """End this process soon after its parent. The parent's end of the pipe may live on in another of its children; so
    its being there is looked at, too."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        _end()

    threading.Thread(target=watch, daemon=True).start()


def _end() -> None:
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():  # a group of our own: the library's helpers too
        os.killpg(0, signal.SIGKILL)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
