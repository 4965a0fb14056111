"""results.jsonl: a first line that says what is measured, then one line a page as it is finished."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
        kept: set[int] = set()
        if self.path.exists():
            for number, record in _records(self.path, self._head):
                if record.error is None:
                    self.records[record.key] = record.light()
                    kept.add(number)
        write_whole(self.path, self._kept_lines(kept))
        try:
            self._file = self.path.open("a", encoding="utf-8", newline="\n")
        except OSError as e:
            raise OutputError(f"{self.path}: cannot be written: {e.strerror}") from e

    def _kept_lines(self, kept: set[int]) -> Iterator[str]:
        yield dumps(self._head) + "\n"
        if kept:
            yield from (line + "\n" for number, line in lines(self.path) if number in kept)

    def add(self, record: Record) -> None:
        """Keep a page, on disk before this returns."""
        try:
            self._file.write(dumps(record.to_json()) + "\n")
            self._file.flush()
        except OSError as e:
            raise OutputError(f"{self.path}: cannot be written: {e.strerror}") from e
        self.records[record.key] = record.light()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()


def lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from 1. Texts in them may hold other line ends than "\\n"."""
    with path.open(encoding="utf-8", newline="\n") as file:
        yield from ((number, line.removesuffix("\n")) for number, line in enumerate(file, 1))


def _records(path: Path, head: Mapping[str, Any]) -> Iterator[tuple[int, Record]]:
    """The pages in the file with the numbers of their lines. Only the last line may be broken."""
    try:
        found = lines(path)
        before = json.loads(next(found)[1])["evaluation"]
    except (OSError, ValueError, StopIteration, KeyError, TypeError) as e:
        raise OutputError(f"{path}: not the results of an evaluation; choose another folder with output=FOLDER") from e
    if changed := _changed(before, head["evaluation"]):
        raise OutputError(
            f"{path}: holds results of other settings ({'; '.join(changed)}): choose another folder with "
            "output=FOLDER, or remove it"
        )
    broken: OutputError | None = None
    for number, line in found:
        if broken:
            raise broken
        try:
            yield number, Record.from_json(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            broken = OutputError(
                f"{path}, line {number}: not a page of an evaluation: {e}; without that line its page is run anew"
            )


def _changed(before: Any, now: Any, name: str = "") -> list[str]:
    """`verifier.tau 0.75, now 1.0`: what differs, option by option."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted(before.keys() | now.keys())
        return [c for k in keys for c in _changed(before.get(k), now.get(k), f"{name}.{k}".strip("."))]
    return [] if before == now else [f"{name} {before}, now {now}"]
