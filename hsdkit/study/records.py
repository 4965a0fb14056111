"""What a sweep measured, a record a cell, and the folder that holds them: a JSON file a record, whole or not there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hsdkit.errors import DocumentError, described
from hsdkit.files import make_folder, write_whole
from hsdkit.results_json import dumps

SCHEMA = 1

#: `ok`; `partial`: some pages failed, the figures are of the others; `failed`; `invalid`: options that do not go
#: together.
Status = Literal["ok", "partial", "failed", "invalid"]


@dataclass(frozen=True, slots=True)
class Turn:
    """Seconds of one page in one round, as `hsdkit bench` measures them: `e2e` is all, `decode` without rendering and
    the page's own image encoding and prefill, which are `render` and `prefill`; `draft` is part of both. `host` is the
    part of `decode` outside the model: matching, trees, masks, the walk."""

    e2e: float
    decode: float
    render: float
    draft: float
    prefill: float
    host: float = 0.0


@dataclass(frozen=True, slots=True)
class PageRecord:
    """One page of a cell: its turns, one a round, and the counts of the last one. `baseline` are the turns of plain
    decoding.

    `text` is the page's Markdown, `draft` the draft as the target would write it (None where no draft was used),
    `output` a digest of the tokens written; `same` says that these are the baseline's in all rounds; `edit` is the edit
    distance of the Markdown to the baseline's over the longer one's length, 0..1 (mean over rounds), `draft_edit` that
    of the draft.
    `groups` and `metrics` are a benchmark's. `regions_read` counts the crops of Stage 1. `fates` maps the label of a
    drafted region to how its drafts fared (`hsdkit.drafting_tally.Fates.to_json`).
    """

    document: str
    page: int
    turns: tuple[Turn, ...]
    tokens: int
    steps: int
    accepted: int
    emitted: int
    forwards: int
    finish_reason: str
    text: str = ""
    draft: str | None = None
    output: str = ""
    baseline: tuple[Turn, ...] = ()
    same: bool | None = None
    edit: float | None = None
    draft_edit: float | None = None
    groups: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    regions_read: int = 0
    fates: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CellRecord:
    """One cell. `at` maps each axis to the label of the cell's value on it; `metrics` are the figures of a benchmark,
    `benchmark` says of which (`Grader.about`; {} without one).

    `probe` are seconds that show how fast the machine was before and after (`hsdkit.study.probe`); `drift` is how many
    times slower it was than when the baseline was measured, None where both were measured in turn.
    """

    key: str
    at: dict[str, str]
    status: Status
    reason: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    rounds: int = 0
    measured: str = ""
    seconds: float = 0.0
    pages: tuple[PageRecord, ...] = ()
    failures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    benchmark: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    probe: tuple[float, ...] = ()
    drift: float | None = None

    @property
    def done(self) -> bool:
        """Nothing is left to measure: a rerun need not do it again."""
        return self.status == "ok"

    def to_json(self) -> str:
        return dumps({"schema": SCHEMA, **asdict(self)}) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> CellRecord:
        """Raises `ValueError`, `KeyError` or `TypeError` for anything else."""
        data = json.loads(text)
        if data.pop("schema") != SCHEMA:
            raise ValueError(f"written by another version of hsdkit (schema {data.get('schema')})")
        tuples: dict[str, Any] = {k: tuple(data.get(k, ())) for k in ("failures", "notes", "probe")}
        return cls(**data | tuples | {"pages": tuple(map(_page, data["pages"]))})


def _page(data: dict[str, Any]) -> PageRecord:
    turns = {k: tuple(Turn(**t) for t in data[k]) for k in ("turns", "baseline")}
    return PageRecord(**data | turns)


class Store:
    """A sweep's folder: `sweep.json` (axes and cells, in order), `cells/KEY.json`, `baselines/KEY.json`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def plan(self, axes: Sequence[str], cells: Sequence[tuple[str, dict[str, str]]], about: dict[str, Any]) -> Path:
        """Write which cells the folder is about, in order; records of other cells stay, unlisted."""
        make_folder(self.folder)
        content = {
            "schema": SCHEMA,
            **about,
            "axes": list(axes),
            "cells": [{"key": key, "at": at} for key, at in cells],
        }
        return write_whole(self.folder / "sweep.json", (json.dumps(content, indent=1, ensure_ascii=False), "\n"))

    def about(self) -> dict[str, Any]:
        """What `plan` wrote. Raises `DocumentError` when the folder holds no sweep."""
        file = self.folder / "sweep.json"
        try:
            found = json.loads(file.read_bytes())
            _ = [cell["key"] for cell in found["cells"]], found["axes"]
        except FileNotFoundError:
            raise DocumentError(f"{self.folder}: no sweep in this folder (no sweep.json)") from None
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise DocumentError(f"{file}: cannot be read: {described(e)}") from None
        return dict(found)

    def cells(self) -> list[CellRecord]:
        """The records of the plan's cells, in order; cells that were not measured yet are `failed` with that reason."""
        records = []
        for cell in self.about()["cells"]:
            record = self.load("cells", cell["key"])
            at = dict(cell["at"])  # two combinations may come to the same settings, and share a record
            missing = CellRecord(cell["key"], at, "failed", "not measured yet: run the sweep again")
            records.append(replace(record, at=at) if record else missing)
        return records

    def load(self, kind: Literal["cells", "baselines"], key: str) -> CellRecord | None:
        """None when there is no such record, or what is there is none."""
        try:
            return CellRecord.from_json(self._file(kind, key).read_bytes())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def save(self, kind: Literal["cells", "baselines"], record: CellRecord) -> None:
        """Raises `OutputError`."""
        file = self._file(kind, record.key)
        make_folder(file.parent)
        write_whole(file, (record.to_json(),))

    def _file(self, kind: str, key: str) -> Path:
        return self.folder / kind / f"{key}.json"
