"""`hsdkit run` as a job: what is kept, what is done again, lists of files, two processes at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import load, run
from kill_job import TOYS, torture
from toys import TOY, ToyEngine, ToyVerifier, blank_pdf

from hsdkit.protocols import Verdict

Read = list[tuple[str, int]]


@pytest.fixture
def read(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Read]:
    """The pages that the model has read since the list was last cleared; documents a.pdf (3 pages) and b.pdf (1)."""
    blank_pdf(workplace / "a.pdf", 3)
    blank_pdf(workplace / "b.pdf", 1)
    pages: Read = []
    verify = ToyVerifier.verify

    def noting(self: ToyVerifier, page: Any, *rest: Any, **more: Any) -> Verdict:
        pages.append((page.source, page.number))
        return verify(self, page, *rest, **more)

    monkeypatch.setattr(ToyVerifier, "verify", noting)
    return pages


def again(read: Read, *arguments: str) -> tuple[Any, Read]:
    """The outcome of a run, and the pages that the model has read in it."""
    read.clear()
    return run(*arguments), list(read)


ALL = [("a.pdf", 1), ("a.pdf", 2), ("a.pdf", 3), ("b.pdf", 1)]


def test_a_second_run_reads_nothing_and_loads_no_model(read: Read, monkeypatch: pytest.MonkeyPatch):
    assert again(read, "a.pdf", "b.pdf")[1] == ALL

    def load(self: ToyEngine) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(ToyEngine, "load", load)
    before = {p.name: p.read_bytes() for p in Path("out").glob("*.json")}
    outcome, pages = again(read, "a.pdf", "b.pdf")
    assert (outcome.exit_code, pages) == (0, [])
    assert "4 pages kept from before in out/: nothing was left to do" in outcome.stderr
    assert before == {p.name: p.read_bytes() for p in Path("out").glob("*.json")}


def test_other_settings_read_everything_again_and_where_results_go_is_no_setting(read: Read):
    run("a.pdf")
    assert again(read, "a.pdf", "verifier.tau=0.5")[1] == ALL[:3]
    assert again(read, "a.pdf", "verifier.tau=0.5", "concurrency=2", "password=x")[1] == []
    assert load("out/a.json").pages[0].tau == 0.5


def test_a_file_that_changed_is_read_again_and_one_that_was_touched_is_not(read: Read):
    run("a.pdf", "b.pdf")
    blank_pdf(Path("b.pdf"), 2)
    os.utime("a.pdf", (1, 1))
    outcome, pages = again(read, "a.pdf", "b.pdf")
    assert pages == [("b.pdf", 1), ("b.pdf", 2)]
    assert "3 pages kept" in outcome.stderr
    assert len(load("out/b.json").pages) == 2


def test_failed_pages_stay_failed_until_they_are_to_be_retried(read: Read, monkeypatch: pytest.MonkeyPatch):
    fails = [True]
    verify = ToyVerifier.verify

    def failing(self: ToyVerifier, page: Any, *rest: Any, **more: Any) -> Verdict:
        if page.number == 2 and fails[0]:
            raise RuntimeError("a bad day")
        return verify(self, page, *rest, **more)

    monkeypatch.setattr(ToyVerifier, "verify", failing)
    assert again(read, "a.pdf", "on_failure=[]")[0].exit_code == 1
    [line] = Path("out/failures.jsonl").read_text().splitlines()
    assert json.loads(line)["page"] == 2
    assert "a bad day" in json.loads(line)["error"]
    fails[0] = False
    outcome, pages = again(read, "a.pdf", "on_failure=[]")
    assert (outcome.exit_code, pages) == (1, [])
    assert "a bad day" in outcome.stderr
    outcome, pages = again(read, "a.pdf", "on_failure=[]", "--retry-failed")
    assert (outcome.exit_code, pages) == (0, [("a.pdf", 2)])
    assert [p.markdown for p in load("out/a.json").pages] == [f"page {n} of a.pdf" for n in (1, 2, 3)]
    assert not Path("out/failures.jsonl").exists()


def test_fresh_reads_everything_again(read: Read):
    run("a.pdf")
    assert again(read, "a.pdf", "--fresh")[1] == ALL[:3]


def test_results_that_were_removed_or_changed_are_made_again(read: Read):
    run("a.pdf")
    text = Path("out/a.md").read_bytes()
    Path("out/a.md").unlink()
    assert again(read, "a.pdf")[1] == []
    assert Path("out/a.md").read_bytes() == text
    Path("out/a.json").write_text(Path("out/a.json").read_text().replace("page 2", "Page 2"))
    assert again(read, "a.pdf")[1] == ALL[:3]
    Path("out/a.json").unlink()
    assert again(read, "a.pdf")[1] == ALL[:3]
    assert len(load("out/a.json").pages) == 3


def test_results_that_were_copied_elsewhere_are_known(read: Read):
    run("a.pdf")
    os.utime("out/a.json", (1, 1))
    Path("out").rename("there")
    assert again(read, "a.pdf", "output=there")[1] == []


def test_more_pages_of_a_document_are_added_to_those_before(read: Read):
    assert again(read, "a.pdf", "pages=1")[1] == [("a.pdf", 1)]
    assert again(read, "a.pdf")[1] == [("a.pdf", 2), ("a.pdf", 3)]
    assert [p.number for p in load("out/a.json").pages] == [1, 2, 3]
    assert again(read, "a.pdf", "pages=2-3")[1] == []
    assert [p.number for p in load("out/a.json").pages] == [2, 3]


def test_reports_and_drafts_are_made_of_what_is_there(read: Read):
    run("a.pdf")
    outcome, pages = again(read, "a.pdf", "--report", "save_drafts=true")
    assert (outcome.exit_code, pages) == (0, [])
    assert Path("out/a.html").read_text().count("data:image/jpeg;base64,") == 3
    assert Path("out/a.drafts.json").exists()
    assert load("out/a.json").versions["model"] == "toy-checkpoint"


def test_a_list_of_files_is_read_line_by_line(read: Read):
    Path("list.txt").write_text("a.pdf\n\nmissing.pdf\nb.pdf\n")
    outcome, pages = again(read, "input=@list.txt")
    assert (outcome.exit_code, pages) == (1, ALL)
    assert "missing.pdf: no such file" in outcome.stderr
    assert load("out/missing.json").error == "missing.pdf: no such file"
    assert again(read, "@list.txt")[1] == []
    blank_pdf(Path("missing.pdf"))
    assert again(read, "@list.txt")[1] == [("missing.pdf", 1)]


def test_json_lines_have_pages_and_passwords_of_their_own(read: Read):
    Path("list.jsonl").write_text('{"path": "a.pdf", "pages": "2-"}\n{"path": "b.pdf", "pages": "7"}\n')
    outcome, pages = again(read, "@list.jsonl", "pages=1")
    assert pages == [("a.pdf", 2), ("a.pdf", 3)]
    assert "b.pdf, page 7: out of range, the document has 1 page" in outcome.stderr
    Path("list.jsonl").write_text('{"path": "a.pdf"}\n{"page": "b.pdf"}\n')
    outcome, pages = again(read, "@list.jsonl", "output=other")
    assert (outcome.exit_code, pages) == (2, [])
    assert "list.jsonl, line 2: unknown key 'page'" in outcome.stderr


def test_many_failures_are_named_in_a_file_and_the_first_of_them_on_the_screen(read: Read):
    for n in range(25):
        Path(f"broken{n}.pdf").write_bytes(b"%PDF-1.7 nonsense")
    outcome, _ = again(read, "broken*.pdf", "a.pdf", "preparing=0")
    assert outcome.exit_code == 1
    summary = outcome.stderr[outcome.stderr.index("26 documents") :]
    assert summary.count("failed:") == 20
    assert "and 5 failures more: all are in out/failures.jsonl" in summary
    lines = [json.loads(line) for line in Path("out/failures.jsonl").read_text().splitlines()]
    assert {Path(line["path"]).name for line in lines} == {f"broken{n}.pdf" for n in range(25)}
    assert {line["page"] for line in lines} == {None}


def test_documents_done_in_part_are_completed_later(read: Read):
    outcome, _ = again(read, "a.pdf", "b.pdf", "verifier.interrupt=[3]", "on_failure=[]")
    assert outcome.exit_code == 130
    assert load("out/a.json").error == "interrupted after 2 pages"
    assert "0 of 2 documents, 2 pages" in outcome.stderr


def test_nothing_is_made_where_nothing_is_asked_for(read: Read):
    assert again(read)[0].exit_code == 2
    outcome, _ = again(read, "missing.pdf", "@missing.txt")
    assert outcome.exit_code == 1
    assert "@missing.txt: no such list of files" in outcome.stderr
    assert not Path("out").exists()


# -- processes of their own

WORKER = """
import os, sys, time, toys
toys.register_toys()
verify = toys.ToyVerifier.verify
def noting(self, page, *rest, **more):
    time.sleep(0.02)
    with open("read.txt", "a") as file:
        file.write(f"{os.getpid()} {page.source} {page.number}\\n")
    return verify(self, page, *rest, **more)
toys.ToyVerifier.verify = noting
from hsdkit.cli import main; main()
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    places = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, "-c", WORKER, "run", *TOY, "preparing=0", *arguments]
    return subprocess.Popen(command, env=environment, text=True, stderr=subprocess.PIPE)


def notes() -> list[tuple[str, ...]]:
    return (
        [tuple(line.split()) for line in Path("read.txt").read_text().splitlines()] if Path("read.txt").exists() else []
    )


def test_two_processes_share_a_job_and_read_no_page_twice(workplace: Path):
    for name, pages in (("a", 30), ("b", 1), ("c", 9), ("d", 20)):
        blank_pdf(workplace / f"{name}.pdf", pages)
    crew = [start("a.pdf", "b.pdf", "c.pdf", "d.pdf") for _ in range(2)]
    said = [process.communicate(timeout=120)[1] for process in crew]
    assert [process.returncode for process in crew] == [0, 0], said
    pages = [(name, number) for _, name, number in notes()]
    assert len(pages) == len(set(pages)) == 60
    assert len({pid for pid, _, _ in notes()}) == 2, said
    assert "parsed by other processes meanwhile" in said[0] + said[1]
    for name, count in (("a", 30), ("b", 1), ("c", 9), ("d", 20)):
        assert [p.number for p in load(f"out/{name}.json").pages] == list(range(1, count + 1))
    assert [p for p in Path("out").iterdir() if ".part" in p.name] == []


def test_a_process_finishes_what_one_that_was_killed_has_left(workplace: Path):
    blank_pdf(workplace / "a.pdf", 40)
    victim, heir = start("a.pdf"), start("a.pdf")
    until = time.monotonic() + 60
    while len({pid for pid, _, _ in notes()}) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    victim.send_signal(signal.SIGKILL)
    said = heir.communicate(timeout=60)[1]
    victim.communicate()
    assert heir.returncode == 0, said
    document = load("out/a.json")
    assert document.ok
    assert [p.number for p in document.pages] == list(range(1, 41))
    pages = [number for _, _, number in notes()]
    assert len(pages) - len(set(pages)) <= 1  # the page under way


def test_a_job_that_is_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path: Path):
    wrong = torture(tmp_path, TOYS, pages=40, kills=4, seed=3, tell=lambda said: None)
    assert [said for said in wrong if not said.startswith("only")] == []  # on a busy machine a kill may come too late
