"""results.jsonl: a first line that says what is measured, then one line a page as it is finished."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from hsdkit.errors import OutputError
from hsdkit.evaluation.record import Record
from hsdkit.files import write_whole
from hsdkit.results_json import dumps

NAME = "results.jsonl"


class Store:
    """The records of one evaluation on disk. Opened again, it holds those of the pages that went well before; pages
    that failed are run once more. A line that an interrupted run left unfinished is dropped.

    Raises `OutputError` when the file holds results of other settings, naming them, or cannot be written.
    """

    def __init__(self, folder: Path, head: Mapping[str, Any]) -> None:
        self.path = folder / NAME
        self._head = json.loads(dumps(head))
        self.records: dict[str, Record] = {}
        if self.path.exists():
            for record in _records(self.path, self._head):
                if record.error is None:
                    self.records[record.key] = record
        lines = [self._head, *(record.to_json() for record in self.records.values())]
        write_whole(self.path, (dumps(line) + "\n" for line in lines))
        try:
            self._file = self.path.open("a", encoding="utf-8", newline="\n")
        except OSError as e:
            raise OutputError(f"{self.path}: cannot be written: {e.strerror}") from e

    def add(self, record: Record) -> None:
        """Keep a page, on disk before this returns."""
        try:
            self._file.write(dumps(record.to_json()) + "\n")
            self._file.flush()
        except OSError as e:
            raise OutputError(f"{self.path}: cannot be written: {e.strerror}") from e
        self.records[record.key] = record

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()


def _records(path: Path, head: Mapping[str, Any]) -> Iterable[Record]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        before = json.loads(lines[0])["evaluation"]
    except (OSError, ValueError, IndexError, KeyError, TypeError) as e:
        raise OutputError(f"{path}: not the results of an evaluation; choose another folder with output=FOLDER") from e
    if changed := _changed(before, head["evaluation"]):
        raise OutputError(
            f"{path}: holds results of other settings ({'; '.join(changed)}): choose another folder with "
            "output=FOLDER, or remove it"
        )
    for number, line in enumerate(lines[1:], 2):
        try:
            yield Record.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError) as e:
            if number < len(lines):
                raise OutputError(f"{path}, line {number}: not a page of an evaluation: {e}") from e


def _changed(before: Any, now: Any, name: str = "") -> list[str]:
    """`verifier.tau 0.75, now 1.0`: what differs, option by option."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted(before.keys() | now.keys())
        return [
            c
            for k in keys
            for c in _changed(before.get(k), now.get(k), f"{name}.{k}".removeprefix(".settings").strip("."))
        ]
    return [] if before == now else [f"{name} {before}, now {now}"]
