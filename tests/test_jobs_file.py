"""The job's file: what is refused, what a full disk or a lock comes to, and the journal where hosts share it."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from job_runs import documents, open_job, parse, read, texts, unsynced, whole  # noqa: F401

from hsdkit.errors import OutputError
from hsdkit.jobs import database as database_module
from hsdkit.jobs import work
from hsdkit.jobs.database import APPLICATION, NAME, Database
from hsdkit.results import PageResult


def newer(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()


def torn(path: Path) -> None:
    database = Database(path.parent)
    with database.transaction():
        for n in range(500):
            database.insert("INSERT INTO documents (path, stem) VALUES (?, ?)", str(n) * 50, "x" * 100)
    database.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + os.urandom(len(content) - 4096))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_bytes(b"no database at all" * 100), "is damaged; remove it"),
        (torn, "is damaged; remove it"),
        (foreign, "not a job of hsdkit"),
        (newer, "written by a newer hsdkit"),
        (lambda path: path.mkdir(), "cannot be opened for writing"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error(tmp_path: Path, make: Callable[[Path], None], said: str):
    (tmp_path / "out").mkdir()
    make(tmp_path / "out" / NAME)
    with pytest.raises(OutputError, match=said), open_job(tmp_path, documents(tmp_path, {"a": 1})) as job:
        work(job, parse)


def test_a_lock_that_is_never_let_go_is_an_error_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = documents(tmp_path, {"a": 1})
    open_job(tmp_path, files).close()
    monkeypatch.setattr(database_module, "_PATIENCE", 0.1)
    other = sqlite3.connect(tmp_path / "out" / NAME)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OutputError, match="another process has kept it locked"):
        open_job(tmp_path, files)
    other.close()


def test_a_full_disk_is_an_error_and_what_was_finished_is_kept(tmp_path: Path):
    files = documents(tmp_path, {"a": 3})
    job = open_job(tmp_path, files)
    tasks = job.tasks()
    job.finish(task := next(tasks), read(task))
    pages = job._database.value("PRAGMA page_count")
    job._database.one(f"PRAGMA max_page_count = {pages}")
    task = next(tasks)
    with pytest.raises(OutputError, match="no space left on the disk"):
        job.finish(task, PageResult(2, os.urandom(50_000).hex(), "", "eos"))
    job.close()
    with open_job(tmp_path, files) as again:
        work(again, parse)
        assert again.progress.kept == 1
    assert texts(tmp_path) == whole({"a": 3})


def test_on_a_network_file_system_a_rollback_journal_is_used_by_two_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database_module, "_on_local_disk", lambda folder: False)
    files = documents(tmp_path, {"a": 2, "b": 2})
    first, second = open_job(tmp_path, files), open_job(tmp_path, files)
    assert first._database.value("PRAGMA journal_mode") == "truncate"
    one, other = next(first.tasks()), next(second.tasks())
    assert (one.number, other.number) == (1, 2)
    first.finish(one, read(one))
    second.finish(other, read(other))
    work(second, parse)
    first.close()
    second.close()
    assert texts(tmp_path) == whole({"a": 2, "b": 2})


def test_a_file_made_for_one_host_is_refused_elsewhere_while_it_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    files = documents(tmp_path, {"a": 2})
    with open_job(tmp_path, files) as first:
        if first._database.value("PRAGMA journal_mode") != "wal":
            pytest.skip("no local disk here")
        monkeypatch.setattr(database_module, "_on_local_disk", lambda folder: False)
        monkeypatch.setattr(database_module, "_PATIENCE", 0.1)
        with pytest.raises(OutputError, match="locked"):
            open_job(tmp_path, files)
    with open_job(tmp_path, files) as later:
        assert later._database.value("PRAGMA journal_mode") == "truncate"
        work(later, parse)
    assert texts(tmp_path) == whole({"a": 2})


def _open_at_once(folders: list[Path], local: bool, gate: Any, failures: Any) -> None:
    database_module._on_local_disk = lambda folder: local  # type: ignore[assignment]
    for folder in folders:
        gate.wait()
        try:
            Database(folder).close()
        except OutputError as e:
            failures.put(str(e))


@pytest.mark.parametrize("local", [True, False])
def test_processes_may_open_a_new_job_at_the_same_moment(tmp_path: Path, local: bool):
    context = multiprocessing.get_context("spawn")
    gate, failures = context.Barrier(3, timeout=60), context.SimpleQueue()
    folders = [tmp_path / str(n) for n in range(60)]
    crew = [context.Process(target=_open_at_once, args=(folders, local, gate, failures)) for _ in range(3)]
    for process in crew:
        process.start()
    for process in crew:
        process.join(120)
    assert [process.exitcode for process in crew] == [0, 0, 0]
    assert failures.empty() or not failures.get()
