"""What a run is asked to parse: files, folders, globs, and lists of files as plain text or JSON lines."""

from __future__ import annotations

import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hsdkit.documents import find_inputs
from hsdkit.errors import ConfigError, DocumentError

_KEYS = ("path", "pages", "password")


@dataclass(frozen=True, slots=True)
class Input:
    """One document. `pages` and `password` are this document's own; None stands for those of the run."""

    path: Path
    pages: str | None = None
    password: str | None = field(default=None, repr=False)


def read_inputs(given: str) -> Iterator[Input]:
    """The documents that a file, a folder, a glob or `@LIST` names, one at a time.

    LIST is a text file with a path a line, or with a JSON object a line: {"path": "a.pdf", "pages": "1-3", "password":
    "..."}, of which `path` must be there. Relative paths count from the current folder, as those of the command line
    do. Whether the files of a list exist is found out when their turn comes. Raises `DocumentError` for an input that
    names nothing, `ConfigError` for a line that cannot be understood.
    """
    if given.startswith("@") and not os.path.exists(given):
        yield from _listed(Path(given[1:]))
    else:
        yield from map(Input, find_inputs([given]))


def _listed(path: Path) -> Iterator[Input]:
    if path.is_dir():
        raise DocumentError(f"@{path}: is a folder; @ takes a file with a path a line")
    try:
        with path.open("rb") as file:
            if file.read(len(BOM_UTF8)) != BOM_UTF8:  # some editors begin a file with it
                file.seek(0)
            for number, line in enumerate(file, 1):
                if text := line.strip():
                    yield _entry(text, f"{path}, line {number}")
    except FileNotFoundError:
        raise DocumentError(f"@{path}: no such list of files") from None
    except OSError as e:
        raise DocumentError(f"@{path}: cannot be read: {e.strerror}") from e


def _entry(line: bytes, where: str) -> Input:
    if not line.startswith(b"{"):
        if b"\0" in line:
            raise ConfigError(f"{where}: not a path; a list holds a path or a JSON object a line")
        return Input(Path(os.fsdecode(line)))
    try:
        entry: Any = json.loads(line)
    except (ValueError, RecursionError) as e:
        raise ConfigError(f"{where}: not JSON: {e}") from None
    if unknown := sorted(entry.keys() - set(_KEYS)):
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(_KEYS)}")
    pages = entry.get("pages")
    pages = str(pages) if isinstance(pages, int) and not isinstance(pages, bool) else pages
    values = {"path": entry.get("path"), "pages": pages, "password": entry.get("password")}
    for key, value in values.items():
        if not (_is_plain(value) or (value is None and key != "path")):
            raise ConfigError(f"{where}: {key!r} must be text, such as " + '{"path": "a.pdf", "pages": "1-3"}')
    return Input(Path(str(values["path"])), values["pages"], values["password"])


def _is_plain(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value)
