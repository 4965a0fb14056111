"""Jobs that are given odd things: pipes, thousands of equal names, records of dead hosts, damaged records."""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run
from job_runs import open_job
from toys import blank_pdf

from hsdkit.config import compose
from hsdkit.documents import open_document
from hsdkit.errors import ConfigError, DocumentError, OutputError
from hsdkit.jobs import Input, Job, read_inputs, work
from hsdkit.jobs.database import NAME, Database
from hsdkit.jobs.fingerprint import settings_fingerprint
from hsdkit.jobs.owner import Observer, Owner, this_process
from hsdkit.jobs.selection import select
from hsdkit.parallel import PageTask
from hsdkit.results import PageResult


def parse(tasks: Iterator[PageTask]) -> Iterator[tuple[PageTask, PageResult]]:
    return ((task, PageResult(task.number, "read", "read", "eos")) for task in tasks)


# -- inputs


def test_a_pipe_or_a_device_is_no_document_and_stops_nothing(workplace: Path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("no named pipes here")
    blank_pdf(workplace / "a.pdf")
    os.mkfifo("pipe.pdf")
    (workplace / "list.txt").write_text("pipe.pdf\n/dev/zero\na.pdf\n")
    outcome = run("@list.txt")
    assert outcome.exit_code == 1
    assert "failed: pipe.pdf: is a pipe or a device, not a file" in outcome.stderr
    assert "/dev/zero: is a pipe" in outcome.stderr
    assert "3 documents, 1 page, 2 failures" in outcome.stderr
    with pytest.raises(DocumentError, match="is a pipe or a device"):
        open_document("pipe.pdf")


def test_a_list_may_begin_with_the_mark_that_some_editors_write(tmp_path: Path):
    (tmp_path / "list.txt").write_bytes("\ufeffa.pdf\r\nb.pdf\r\n".encode())
    assert [i.path for i in read_inputs(f"@{tmp_path / 'list.txt'}")] == [Path("a.pdf"), Path("b.pdf")]
    (tmp_path / "list.txt").write_text('{"path":' + "[" * 200_000)
    with pytest.raises(ConfigError, match="line 1: not JSON"):
        list(read_inputs(f"@{tmp_path / 'list.txt'}"))


def test_a_number_of_a_page_that_no_document_has_is_no_number(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    (workplace / "list.txt").write_text(json.dumps({"path": "a.pdf", "pages": "9" * 5000}))
    outcome = run("@list.txt")
    assert (outcome.exit_code, "neither a page number nor a range" in outcome.stderr) == (1, True)


def test_what_lies_in_the_current_folder_is_no_setting(workplace: Path):
    (workplace / "config.json").write_text("{}")
    config = compose([])
    assert config.composed["target"]["model"] == ""
    before = settings_fingerprint(config)
    (workplace / "another.txt").write_text("new")
    assert settings_fingerprint(config) == before


# -- names


def test_a_folder_in_the_place_of_a_result_costs_that_document_its_files_until_it_is_gone(workplace: Path):
    for name in ("a", "b", "c"):
        blank_pdf(workplace / f"{name}.pdf", 2)
    (workplace / "out" / "b.md").mkdir(parents=True)
    (workplace / "out" / "c.json").mkdir()
    outcome = run("b.pdf", "a.pdf", "c.pdf")
    assert outcome.exit_code == 1
    failed = [line for line in outcome.stderr.splitlines() if line.startswith("failed: ")]
    assert failed[: len(failed) // 2] == [  # as it happens, and at the end
        f"failed: out/{name}: cannot be written: there is a folder of that name; move it away"
        for name in ("b.md", "c.json")
    ]
    assert "3 documents, 6 pages, 2 failures" in outcome.stderr
    assert (workplace / "out" / "a.json").is_file()
    (workplace / "out" / "b.md").rmdir()
    again = run("b.pdf", "a.pdf", "c.pdf")
    assert (again.exit_code, again.stderr.count("failed: out/c.json")) == (1, 2)
    assert "page 1" not in again.stderr  # none was read again
    assert (workplace / "out" / "b.md").is_file()


def names(folder: Path, given: list[str]) -> list[str]:
    database = Database(folder)
    select(database, (Input(Path(path)) for path in given))
    found = [row["name"] for row in database.all("SELECT name FROM documents ORDER BY id")]
    database.close()
    return found


def test_thousands_of_documents_of_one_name_are_told_apart_in_no_time(tmp_path: Path):
    begin = time.process_time()
    found = names(tmp_path, [f"{n}/report.pdf" for n in range(3000)])
    assert time.process_time() - begin < 8  # once it was 25
    assert found[:3] == ["report.pdf", "report.pdf-2", "report.pdf-3"]
    assert found[-1] == "report.pdf-3000"


def test_no_file_of_a_document_is_that_of_another(tmp_path: Path):
    assert names(tmp_path / "1", ["a.pdf", "a.drafts.pdf"]) == ["a", "a.drafts-2"]
    assert names(tmp_path / "2", ["a.drafts.pdf", "a.pdf"]) == ["a.drafts", "a-2"]
    composed, decomposed = "na\u00efve.pdf", "nai\u0308ve.pdf"  # one name on some file systems
    assert names(tmp_path / "3", [composed, decomposed]) == [composed, f"{decomposed}-2"]


# -- processes that are gone


def strange_worker(job_file: Path, host: str) -> None:
    with sqlite3.connect(job_file) as connection:
        connection.execute("INSERT INTO workers (host, pid, started) VALUES (?, 1, '1')", (host,))
    connection.close()


def test_fresh_is_not_refused_for_ever_for_a_process_that_died_elsewhere(tmp_path: Path):
    files = [blank_pdf(tmp_path / "a.pdf")]
    with open_job(tmp_path, files) as job:
        work(job, parse)
    strange_worker(tmp_path / "out" / NAME, "another")
    with open_job(tmp_path, files, fresh=True, lease=0.5) as job:
        work(job, parse)
        assert job.progress.totals.pages == 1


def test_fresh_is_refused_for_a_process_elsewhere_whose_heart_beats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    files = [blank_pdf(tmp_path / "a.pdf")]
    open_job(tmp_path, files).close()
    strange_worker(tmp_path / "out" / NAME, "another")

    def beat(seconds: float) -> None:
        with sqlite3.connect(tmp_path / "out" / NAME) as connection:
            connection.execute("UPDATE workers SET beat = beat + 1 WHERE host = 'another'")
        connection.close()

    monkeypatch.setattr("hsdkit.jobs.workers.time.sleep", beat)
    with pytest.raises(OutputError, match="process 1 on another is at work there"):
        open_job(tmp_path, files, fresh=True)


def test_who_worked_before_this_host_was_started_anew_is_dead_where_the_disk_is_its_own():
    node, boot, namespace = this_process().host.split(" ")
    before = Owner(f"{node} {boot[::-1]} {namespace}", 1, "1")
    assert Observer(local=True).is_dead(1, before, 0)
    assert not Observer(local=False).is_dead(1, before, 0)
    assert not Observer(local=True).is_dead(1, Owner(f"box {boot} pid:[1]", 1, "1"), 0)  # a container beside this one


def live(folder: Path, files: list[Path], deadly: tuple[str, int]) -> tuple[bool, list[str], Job]:
    """A process that has two pages in hand and is killed by the deadly one: whether it was, and what it read."""
    job = open_job(folder, files)
    read: list[str] = []
    while True:
        tasks = job.tasks()
        while hands := list(itertools.islice(tasks, 2)):
            if deadly in [(task.path.stem, task.number) for task in hands]:
                job._workers._stop.set()
                with job._database.transaction():
                    job._database.change("UPDATE workers SET started = 'long ago'")
                job._database.close()
                return True, read, job
            for task in hands:
                read.append(f"{task.path.stem}{task.number}")
                job.finish(task, PageResult(task.number, "read", "read", "eos"))
        if not job.wait():
            job.close()
            return False, read, job


def test_a_page_that_kills_who_reads_it_is_given_up_and_costs_no_other(tmp_path: Path):
    files = [blank_pdf(tmp_path / "a.pdf", 4), blank_pdf(tmp_path / "b.pdf")]
    lives = [live(tmp_path, files, ("a", 3)) for _ in range(6)]
    assert [died for died, _, _ in lives] == [True] * 5 + [False]
    assert [read for _, read, _ in lives] == [["a1", "a2"], [], ["b1"], ["a4"], [], []]  # the third was alone with it
    assert lives[-1][2].progress.totals.failed == 1
    with open_job(tmp_path, files) as job:
        work(job, parse)
        assert [f.error for f in job.failures()] == ["a.pdf, page 3: ended the process that read it, 5 times"]
    with open_job(tmp_path, files, retry_failed=True) as job:
        work(job, parse)
        assert (list(job.failures()), job.progress.totals.pages) == ([], 1)


def test_pages_in_hand_when_a_process_ends_in_order_have_killed_nobody(tmp_path: Path):
    files = [blank_pdf(tmp_path / "a.pdf")]
    for _ in range(4):
        with open_job(tmp_path, files) as job:
            assert next(job.tasks()).number == 1


def test_a_job_of_the_tables_before_is_gone_on_with(tmp_path: Path):
    files = [blank_pdf(tmp_path / "a.pdf", 2)]
    with open_job(tmp_path, files) as job:
        task, result = next(parse(job.tasks()))
        job.finish(task, result)
    with sqlite3.connect(tmp_path / "out" / NAME) as connection:
        connection.execute("ALTER TABLE pages DROP COLUMN deaths")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    with open_job(tmp_path, files) as job:
        work(job, parse)
        assert (job.progress.kept, job.progress.totals.pages) == (1, 1)


def test_files_that_are_still_missing_are_told_again_and_not_written_again(workplace: Path):
    (workplace / "list.txt").write_text("one.pdf\ntwo.pdf\n")
    assert run("@list.txt").exit_code == 1
    before = {p.name: p.stat().st_ino for p in Path("out").glob("*.json")}
    Path("out/two.json").unlink()
    outcome = run("@list.txt")
    assert (outcome.exit_code, outcome.stderr.count("failed: one.pdf: no such file")) == (1, 2)
    after = {p.name: p.stat().st_ino for p in Path("out").glob("*.json")}
    assert (after["one.json"], after.keys()) == (before["one.json"], before.keys())


def test_a_list_of_failures_that_cannot_be_written_is_a_failure(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    Path("out/failures.jsonl").mkdir(parents=True)
    outcome = run("a.pdf")
    assert outcome.exit_code == 1
    assert "failures.jsonl: cannot be removed" in outcome.stderr


# -- what somebody or something has damaged


def test_a_damaged_page_in_the_record_is_one_clear_error(tmp_path: Path):
    files = [blank_pdf(tmp_path / "a.pdf", 2)]
    with open_job(tmp_path, files) as job:
        task, result = next(parse(job.tasks()))
        job.finish(task, result)
    with sqlite3.connect(tmp_path / "out" / NAME) as connection:
        connection.execute("UPDATE pages SET payload = x'00' WHERE payload IS NOT NULL")
    connection.close()
    with pytest.raises(OutputError, match="is damaged; remove it"), open_job(tmp_path, files) as job:
        work(job, parse)


def test_a_folder_where_a_file_is_to_be_removed_is_one_clear_error(tmp_path: Path):
    for taken in ("failures.jsonl", "missing.md"):
        (tmp_path / "out" / taken).mkdir(parents=True)
    with open_job(tmp_path, [tmp_path / "missing.pdf"]) as job:
        with pytest.raises(OutputError, match=r"failures\.jsonl: cannot be removed"):
            job.write_failures()
        work(job, parse)
        [trouble] = job.progress.troubles
        assert trouble.endswith("missing.md: cannot be removed: there is a folder of that name; move it away")
