"""Makes and removes the environments of drafters. Whatever ends an installation, nothing half-made is left."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from hsdkit.components import Environment
from hsdkit.errors import PluginError
from hsdkit.files import locked
from hsdkit.workers.environments import MARKER, folder, is_whole, others, python, root
from hsdkit.workers.process import end_group

#: Called with each line of what is being done.
Say = Callable[[str], None]

_VERSION = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


def install(environment: Environment, say: Say, *, base: str = "", again: bool = False) -> Path:
    """Make the environment and return its folder; one for these pins that is there is kept unless `again`.

    `base` is the Python to build on (this one by default). Whatever was there before, for these pins or others, is
    removed once the new one is complete. Raises `PluginError` with what pip said.
    """
    place = folder(environment)
    aside = _aside(environment)
    with _locked(environment):
        try:
            if is_whole(aside) and not is_whole(place):  # an installation was killed
                _move(aside, place)
            if is_whole(place) and not again:
                return place
            if is_whole(place):
                _move(place, aside)
            shutil.rmtree(place, ignore_errors=True)
            _make(environment, place, base or sys.executable, say)
        except BaseException as e:  # Ctrl-C too
            if is_whole(aside):
                _move(aside, place)
            elif not is_whole(place):
                shutil.rmtree(place, ignore_errors=True)
            if isinstance(e, OSError):
                raise PluginError(f"drafter {environment.name!r}: {place}: cannot be written: {e.strerror or e}") from e
            raise
        for old in (aside, *others(environment)):
            shutil.rmtree(old, ignore_errors=True)
    return place


def _aside(environment: Environment) -> Path:
    """Where the old environment waits while a new one is made in its place: it works at one path only."""
    place = folder(environment)
    return place.with_name(f".{place.name}.before")


def _move(path: Path, to: Path) -> None:
    """Rename a folder, in the place of what is there."""
    shutil.rmtree(to, ignore_errors=True)
    path.rename(to)


def remove(environment: Environment) -> bool:
    """Remove the environment and those for other pins; whether there was anything."""
    with _locked(environment):
        found = [p for p in (folder(environment), _aside(environment), *others(environment)) if p.exists()]
        for path in found:
            try:
                shutil.rmtree(path)
            except OSError as e:
                raise PluginError(f"{path}: cannot be removed: {e.strerror}") from e
    return bool(found)


def _make(environment: Environment, place: Path, base: str, say: Say) -> None:
    say(f"making an environment in {place}")
    _run([base, "-m", "venv", str(place)], environment, "no virtual environment can be made", say)
    pip = [str(python(place)), "-m", "pip", "--no-input", "--disable-pip-version-check"]
    _run(
        [*pip, "install", "--progress-bar", "off", "-r", str(environment.requirements)],
        environment,
        "its packages cannot be installed",
        say,
    )
    version = _run(
        [str(python(place)), "-c", _VERSION, environment.distribution], environment, "it lacks its own library", say
    )
    if not version:
        raise PluginError(f"drafter {environment.name!r}: {base} is no Python: asked for a version, it said nothing")
    marker = {"name": environment.name, "version": version[-1], "pins": environment.pins}
    (place / MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")


def _run(command: list[str], environment: Environment, failure: str, say: Say) -> list[str]:
    """Run to the end, handing on each line; the lines. Raises `PluginError`."""
    lines: list[str] = []
    # Variables of the Python around hsdkit would lead the other one to its packages.
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")}
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=variables,
            start_new_session=True,  # Ctrl-C is ours to act on
        )
    except OSError as e:
        raise PluginError(f"drafter {environment.name!r}: {failure}: {command[0]}: {e.strerror}") from e
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line := line.strip():
                lines.append(line)
                say(line)
        code = process.wait()
    finally:
        end_group(process)
        if process.stdout:
            process.stdout.close()
    if code:
        raise PluginError(f"drafter {environment.name!r}: {failure}: {_why(lines) or f'exit code {code}'}")
    return lines


def _why(lines: list[str]) -> str:
    """pip's own errors, else the last it said; Debian's Python says how to get venv."""
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith(("ERROR:", "Error:"))]
    return " / ".join(dict.fromkeys(errors[:3])) or " ".join(lines[-2:])


@contextlib.contextmanager
def _locked(environment: Environment) -> Iterator[None]:
    """One installation of an environment at a time."""
    try:
        root().mkdir(parents=True, exist_ok=True)
        file = locked(root() / f".{environment.name}.lock")
    except BlockingIOError:
        raise PluginError(f"drafter {environment.name!r} is being installed or removed by another hsdkit") from None
    except OSError as e:
        raise PluginError(f"{root()}: cannot be written: {e.strerror}; HSDKIT_HOME=FOLDER names another place") from e
    with file:
        yield
