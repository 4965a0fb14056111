"""Jobs: claims, takeovers, crashes between any two statements, names, lists."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from job_runs import bury, config, documents, open_job, parse, read, texts, unsynced, whole  # noqa: F401
from toys import blank_pdf

from hsdkit.errors import ConfigError, OutputError
from hsdkit.jobs import Input, Job, read_inputs, work
from hsdkit.jobs.database import NAME, Database
from hsdkit.jobs.owner import Observer, Owner, this_process
from hsdkit.jobs.selection import select
from hsdkit.parallel import PageTask
from hsdkit.results import PageResult

# -- several processes


SIZES = {"a": 3, "b": 1, "c": 4}


class Crew(RuleBasedStateMachine):
    """Processes that join, take pages, finish them, leave in order or are killed, in any order."""

    @initialize(folder=st.builds(lambda: Path(os.environ["JOBS_OF_TESTS"]) / str(time.time_ns())))
    def begin(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.documents = documents(folder, SIZES)
        self.crew: list[tuple[Job, Iterator[PageTask], list[PageTask]]] = []

    @precondition(lambda self: len(self.crew) < 4)
    @rule()
    def join(self) -> None:
        job = open_job(self.folder, self.documents)
        self.crew.append((job, job.tasks(), []))

    @precondition(lambda self: self.crew)
    @rule(data=st.data(), count=st.integers(1, 3))
    def take(self, data: st.DataObject, count: int) -> None:
        _, tasks, hands = data.draw(st.sampled_from(self.crew))
        for _ in range(count):
            if (task := next(tasks, None)) is None:
                break
            hands.append(task)

    @precondition(lambda self: any(hands for _, _, hands in self.crew))
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        job, _, hands = data.draw(st.sampled_from([c for c in self.crew if c[2]]))
        task = hands.pop(data.draw(st.integers(0, len(hands) - 1)))
        assert job.finish(task, read(task))

    @precondition(lambda self: self.crew)
    @rule(data=st.data(), killed=st.booleans())
    def leave(self, data: st.DataObject, killed: bool) -> None:
        worker = data.draw(st.sampled_from(self.crew))
        self.crew.remove(worker)
        bury(worker[0]) if killed else worker[0].close()

    @invariant()
    def no_page_is_in_two_hands(self) -> None:
        held = [(task.path, task.number) for _, _, hands in getattr(self, "crew", []) for task in hands]
        assert len(held) == len(set(held))

    def teardown(self) -> None:
        if hasattr(self, "crew"):
            for job, _, _ in self.crew:
                bury(job)
            with open_job(self.folder, self.documents) as last:
                work(last, parse)
            with open_job(self.folder, self.documents, retry_failed=True) as last:  # what three were killed with
                work(last, parse)
            assert texts(self.folder) == whole(SIZES)


@pytest.fixture
def _room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBS_OF_TESTS", str(tmp_path))


@pytest.mark.usefixtures("_room")
def test_no_page_is_claimed_twice_and_none_is_lost_whoever_dies_when():
    Crew.TestCase.settings = settings(max_examples=6, stateful_step_count=16, suppress_health_check=list(HealthCheck))
    Crew.TestCase("runTest").runTest()


class Died(BaseException):
    """The process ends here."""


def test_a_process_may_end_between_any_two_statements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sizes = {"a": 2, "b": 1}
    files = [*documents(tmp_path, sizes), tmp_path / "missing.pdf"]
    left, run, replace = [10**9], Database._run, os.replace

    def countdown() -> None:
        left[0] -= 1
        if left[0] <= 0:  # once dead, for ever: no clean-up either
            raise Died

    def statement(self: Database, text: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        countdown()
        return run(self, text, values)

    def replaced(*paths: Path) -> None:
        countdown()
        replace(*paths)

    def attempt(folder: Path) -> None:
        with open_job(folder, files) as job:
            work(job, parse)

    monkeypatch.setattr(Database, "_run", statement)
    monkeypatch.setattr(os, "replace", replaced)
    attempt(tmp_path / "count")
    total = 10**9 - left[0]
    assert total > 60
    for moment in range(1, total, 9):
        folder, opened = tmp_path / str(moment), []
        monkeypatch.setattr(Database, "close", lambda self, opened=opened: opened.append(self))
        left[0] = moment
        with pytest.raises(Died):
            attempt(folder)
        left[0] = 10**9
        monkeypatch.undo()
        for database in opened:
            database.close()
        if (folder / "out" / NAME).exists() and (folder / "out" / NAME).stat().st_size:
            with sqlite3.connect(folder / "out" / NAME) as connection:
                if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'workers'").fetchone()[0]:
                    connection.execute("UPDATE workers SET started = 'long ago'")
            connection.close()
        monkeypatch.setattr(os, "fsync", lambda _: None)
        attempt(folder)
        found = texts(folder)
        assert found == whole(sizes) | {"missing": []}, moment
        assert [p.name for p in (folder / "out").iterdir() if ".part" in p.name] == []
        monkeypatch.setattr(Database, "_run", statement)
        monkeypatch.setattr(os, "replace", replaced)


def test_pages_of_a_dead_process_are_taken_over_and_those_of_a_living_one_waited_for(tmp_path: Path):
    files = documents(tmp_path, {"a": 3})
    first, second = open_job(tmp_path, files), open_job(tmp_path, files)
    [held] = [next(first.tasks())]
    work_of_second = list(second.tasks())
    assert [t.number for t in work_of_second] == [2, 3]
    for task in work_of_second:
        second.finish(task, read(task))

    class Enough(Exception):
        pass

    looks: list[None] = []

    def check() -> None:
        looks.append(None)
        if len(looks) > 1:
            raise Enough

    with pytest.raises(Enough):
        second.wait(check)
    bury(first)
    assert second.wait()
    [taken] = list(second.tasks())
    assert (taken.path, taken.number) == (held.path, held.number)
    second.finish(taken, read(taken))
    assert not second.wait()
    second.close()
    assert texts(tmp_path) == whole({"a": 3})


def test_the_result_of_one_that_only_seemed_dead_is_kept_once(tmp_path: Path):
    files = documents(tmp_path, {"a": 2})
    slow, quick = open_job(tmp_path, files), open_job(tmp_path, files)
    tasks = slow.tasks()
    late = [next(tasks), next(tasks)]
    with sqlite3.connect(tmp_path / "out" / NAME) as connection:
        connection.execute("UPDATE workers SET started = 'long ago' WHERE id = ?", (slow._workers.me,))
    connection.close()
    work(quick, parse)
    assert [slow.finish(task, read(task)) for task in late] == [False, False]
    slow.close()
    quick.close()
    assert texts(tmp_path) == whole({"a": 2})


def test_a_process_elsewhere_is_dead_when_its_heart_has_not_beaten_for_the_lease(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    observer, elsewhere = Observer(lease=60), Owner("another host", 1, "1")
    assert not observer.is_dead(1, elsewhere, beat=5)
    now[0] += 50
    assert not observer.is_dead(1, elsewhere, beat=6)
    now[0] += 59
    assert not observer.is_dead(1, elsewhere, beat=6)
    now[0] += 2
    assert observer.is_dead(1, elsewhere, beat=6)


def test_on_this_host_a_process_is_known_by_number_and_start():
    me = this_process()
    assert not Observer().is_dead(1, me, 0)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = Path(f"/proc/{child.pid}/stat")
        if not started.exists():
            pytest.skip("no /proc here")
        other = Owner(me.host, child.pid, started.read_text().rpartition(")")[2].split()[19])
        assert not Observer().is_dead(1, other, 0)
        assert Observer().is_dead(1, Owner(me.host, child.pid, "1"), 0)  # the number was given to another process
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert Observer().is_dead(1, other, 0)  # a zombie


def test_another_run_with_other_settings_leaves_a_document_that_is_being_parsed_alone(tmp_path: Path):
    files = documents(tmp_path, {"a": 2, "b": 1})
    first = open_job(tmp_path, files)
    tasks = first.tasks()
    held = [next(tasks)]
    with open_job(tmp_path, files, "verifier.tau=0.5") as second:
        work(second, parse)
        [told] = second.progress.troubles
        assert "a.pdf: another run with other settings is at work on it" in told
    with pytest.raises(OutputError, match="is at work there; --fresh would undo"):
        open_job(tmp_path, files, fresh=True)
    for task in (*held, *tasks):
        assert first.finish(task, read(task))
    first.close()
    assert texts(tmp_path) == whole({"a": 2, "b": 1})


# -- the size of a job


def test_neither_memory_nor_open_files_grow_with_the_number_of_documents(tmp_path: Path):
    def peak(count: int) -> int:
        folder = tmp_path / str(count)
        database = Database(folder)
        names = [sys.intern(f"{n}.pdf") for n in range(count)]  # parts of paths are, and would be counted
        tracemalloc.start()
        assert select(database, (Input(Path("/in", name)) for name in names)) == count
        _, top = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        database.close()
        return top

    assert peak(2_400) - peak(800) < 1_600 * 150  # bytes a document
    page = blank_pdf(tmp_path / "page.pdf").read_bytes()
    for n in range(10):
        (tmp_path / f"{n}.pdf").write_bytes(page)
    opened = Path(f"/proc/{os.getpid()}/fd")
    if not opened.exists():
        pytest.skip("no /proc here")
    with open_job(tmp_path, sorted(tmp_path.glob("?*.pdf"))) as job:
        counts = set()
        for task in job.tasks():
            counts.add(len(list(opened.iterdir())))
            job.finish(task, read(task))
    assert max(counts) - min(counts) <= 2


def test_documents_are_opened_when_their_turn_comes(tmp_path: Path):
    files = documents(tmp_path, {"a": 1, "b": 1})
    with open_job(tmp_path, files) as job:
        tasks = job.tasks()
        next(tasks)
        assert (job.progress.documents, job.progress.planned) == (2, 1)
        files[1].unlink()
        assert list(tasks) == []
        assert [f.path.name for f in job.failures()] == ["b.pdf"]


# -- names


def test_names_stay_when_later_runs_are_asked_for_other_documents(tmp_path: Path):
    for folder in ("x", "y", "z"):
        (tmp_path / folder).mkdir()
    files = [blank_pdf(tmp_path / folder / "same.pdf") for folder in ("x", "y", "z")]
    for asked in ([files[1]], files, files[::-1]):
        with open_job(tmp_path, asked) as job:
            work(job, lambda tasks: ((t, PageResult(1, t.path.parent.name, "", "eos")) for t in tasks))
        assert texts(tmp_path)["same"] == ["y"]
    assert texts(tmp_path) == {"same": ["y"], "same.pdf": ["x"], "same.pdf-2": ["z"]}


# -- lists


def test_a_list_holds_paths_or_json_lines(tmp_path: Path):
    listing = tmp_path / "list"
    listing.write_bytes(b'a.pdf\r\n\n  b c.pdf\n{"path": "d.pdf", "pages": 3}\n{"path": "e", "password": "x"}')
    assert list(read_inputs(f"@{listing}")) == [
        Input(Path("a.pdf")),
        Input(Path("b c.pdf")),
        Input(Path("d.pdf"), "3"),
        Input(Path("e"), None, "x"),
    ]


@pytest.mark.parametrize(
    "line",
    ['{"pages": "1"}', '{"path": 3}', '{"path": "a", "page": "1"}', '{"path": "a"', '{"path": ""}',
     '{"path": "a", "pages": true}', '{"path": "a", "password": "\\ud800"}', "a\0b"],
)  # fmt: skip
def test_a_line_that_cannot_be_understood_is_named(tmp_path: Path, line: str):
    listing = tmp_path / "list"
    listing.write_text(f"good.pdf\n{line}\n")
    with pytest.raises(ConfigError, match=r"list, line 2: "):
        list(read_inputs(f"@{listing}"))


def test_a_document_listed_twice_counts_once_unless_it_is_not_the_same(tmp_path: Path):
    [file] = documents(tmp_path, {"a": 2})
    with Job.open(tmp_path / "out", config(), [Input(file), Input(file)]) as job:
        assert job.progress.documents == 1
    with pytest.raises(ConfigError, match=r"a\.pdf: is named twice"):
        Job.open(tmp_path / "out", config(), [Input(file), Input(file, "1")])
