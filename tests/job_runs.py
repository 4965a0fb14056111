"""Jobs on blank documents, parsed by nobody: what the tests of jobs share."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from toys import TOY, blank_pdf, register_toys

from hsdkit.config import RunConfig, compose
from hsdkit.document_result import DocumentResult
from hsdkit.jobs import Input, Job
from hsdkit.jobs.database import NAME, Database
from hsdkit.parallel import PageTask
from hsdkit.results import PageResult


@pytest.fixture(autouse=True)
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here pulls the plug, so nothing has to reach the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    run = Database._run

    def quick(self: Database, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        return run(self, statement.replace("synchronous = FULL", "synchronous = OFF"), values)

    monkeypatch.setattr(Database, "_run", quick)


def config(*overrides: str) -> RunConfig:
    register_toys()
    return compose([*TOY, *overrides])


def open_job(folder: Path, documents: list[Path], *overrides: str, **more: Any) -> Job:
    return Job.open(folder / "out", config(*overrides), map(Input, documents), **more)


def read(task: PageTask, error: str | None = None) -> PageResult:
    return PageResult(task.number, f"{task.path.stem} {task.number}", "raw", "eos", error=error)


def parse(tasks: Iterator[PageTask]) -> Iterator[tuple[PageTask, PageResult]]:
    return ((task, read(task)) for task in tasks)


def texts(folder: Path) -> dict[str, list[str]]:
    return {p.stem: [page.markdown for page in DocumentResult.load(p).pages] for p in (folder / "out").glob("*.json")}


def whole(sizes: dict[str, int]) -> dict[str, list[str]]:
    return {name: [f"{name} {n}" for n in range(1, size + 1)] for name, size in sizes.items()}


def documents(folder: Path, sizes: dict[str, int]) -> list[Path]:
    return [blank_pdf(folder / f"{name}.pdf", size) for name, size in sizes.items()]


def bury(job: Job) -> None:
    """What is left of a process that was killed."""
    me = job._workers.me
    job._workers._stop.set()
    job._database.close()
    with sqlite3.connect(job.folder / NAME) as connection:
        connection.execute("UPDATE workers SET started = 'long ago' WHERE id = ?", (me,))
    connection.close()
