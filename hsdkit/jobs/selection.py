"""The documents of a run in the job's file, each with the name of its results.

A document keeps its name for good, whatever else a later run is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hsdkit.draft_files import SUFFIX
from hsdkit.errors import ConfigError
from hsdkit.jobs.database import Database
from hsdkit.jobs.inputs import Input
from hsdkit.writing import cut_name, folded_name, numbered_name

_BATCH = 500
_DRAFTS = SUFFIX.removesuffix(".json")


@dataclass(frozen=True, slots=True)
class Selected:
    """A document this run was asked for: `id` in the job's file, `path` as it was given, `name` of its results;
    `pages` and `password` are its own, None for those of the run. `planned`: its pages are in the job's file."""

    position: int
    id: int
    path: Path
    name: str
    pages: str | None
    password: str | None = field(repr=False)
    planned: bool = False


def select(database: Database, inputs: Iterable[Input]) -> int:
    """Make these the documents of this run, in this order, each once; returns how many. Raises `ConfigError` for one
    that is listed twice with other pages or another password, and whatever `inputs` raises."""
    with database.transaction(durable=False):
        for given in inputs:
            _select(database, given)
        _name_all(database)
    return int(database.value("SELECT count(*) FROM selected"))


def next_selected(database: Database, after: int, *, planned: bool = False) -> Selected | None:
    """The first document (of those `planned`) behind that position that this run is not done with."""
    row = database.one(
        "SELECT position, s.document AS id, given, name, pages, password, planned "
        "FROM selected s JOIN documents d ON d.id = s.document "
        "WHERE position > ? AND NOT closed AND planned >= ? ORDER BY position LIMIT 1",
        after, planned,
    )  # fmt: skip
    if row is None:
        return None
    path = Path(os.fsdecode(row["given"]))
    return Selected(row["position"], row["id"], path, row["name"], row["pages"], row["password"], bool(row["planned"]))


def _select(database: Database, given: Input) -> None:
    path = os.fsencode(os.path.abspath(given.path))
    known = database.value("SELECT id FROM documents WHERE path = ?", path)
    if known is None:
        stem = folded_name(cut_name(given.path.stem))
        known = database.insert("INSERT INTO documents (path, stem) VALUES (?, ?)", path, _text(stem))
    before = database.one("SELECT pages, password FROM selected WHERE document = ?", known)
    if before is None:
        database.insert(
            "INSERT INTO selected (document, given, pages, password) VALUES (?, ?, ?, ?)",
            known, os.fsencode(given.path), given.pages, given.password,
        )  # fmt: skip
    elif (before["pages"], before["password"]) != (given.pages, given.password):
        raise ConfigError(f"{given.path}: is named twice, with other pages or another password; name it once")


def _name_all(database: Database) -> None:
    numbers: dict[str, int] = {}
    while rows := database.all("SELECT id, path, stem FROM documents WHERE folded IS NULL ORDER BY id LIMIT ?", _BATCH):
        for row in rows:
            _name(database, row, numbers)


def _name(database: Database, row: Any, numbers: dict[str, int]) -> None:
    """Its stem; its whole name where another document has that stem, too; numbered where that is taken. `numbers` are
    the last ones given: folders/*/report.pdf may be a hundred thousand, each of which would count from 2 again."""

    def is_stem(text: str) -> bool:
        return database.value("SELECT 1 FROM documents WHERE stem = ? LIMIT 1", text) is not None

    def is_taken(text: str) -> bool:
        # NAME.drafts.json is a file of NAME, and would be one of a document NAME.drafts.
        same = (text, text + _DRAFTS, text.removesuffix(_DRAFTS))
        return database.value("SELECT 1 FROM documents WHERE folded IN (?, ?, ?) LIMIT 1", *same) is not None

    path = Path(os.fsdecode(row["path"]))
    alone = database.value("SELECT 1 FROM documents WHERE stem = ? AND id <> ? LIMIT 1", row["stem"], row["id"]) is None
    base = _text(cut_name(path.stem if alone else path.name))
    name, number = numbered_name(base, numbers.get(base, 1), is_taken, is_stem)
    if name != base:
        numbers[base] = number
    database.change("UPDATE documents SET name = ?, folded = ? WHERE id = ?", name, folded_name(name), row["id"])


def _text(name: str) -> str:
    """A file name as text a database can hold: bytes that are no UTF-8 are shown by their numbers."""
    return os.fsencode(name).decode("utf-8", "backslashreplace").replace("\\x", "%")
