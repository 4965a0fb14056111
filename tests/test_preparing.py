"""Processes that prepare pages: what comes back is what is prepared here, and harm costs one page or its draft."""

from __future__ import annotations

import glob
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from isolated import install, pipeline
from toys import blank_pdf

from hsdkit.errors import DocumentError, PluginError
from hsdkit.preparing.local import Local
from hsdkit.preparing.page import PageTask, Prepared
from hsdkit.preparing.process import Bounds, ProcessPreparer

Make = Callable[..., ProcessPreparer]


@pytest.fixture
def three(tmp_path: Path) -> Path:
    return blank_pdf(tmp_path / "three.pdf", 3)


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A preparer of a pipeline with these overrides; ended with the test."""
    install(tmp_path / "site", monkeypatch)
    made: list[ProcessPreparer] = []

    def preparer(*overrides: str, megabytes: int = 500, seconds: float = 30.0) -> ProcessPreparer:
        made.append(ProcessPreparer(pipeline(*overrides).recipe, Bounds(megabytes, seconds)))
        return made[-1]

    yield preparer
    for one in made:
        one.close()


def pid(prepared: Prepared) -> int:
    return int(prepared.draft.regions[0].text.split()[0])


def alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def test_a_page_is_what_it_is_when_prepared_here(make: Make, tmp_path: Path) -> None:
    file = Path("examples/ten_pages.pdf").absolute()
    apart = make("drafter=hostile")
    here = Local(pipeline("verifier.uses_draft=no").opening, None)
    for task in (
        PageTask(file, 1),
        PageTask(file, 2, rotate=90),
        PageTask(tmp_path / "none.pdf", 1),
        PageTask(file, 99),
    ):
        got, expected = apart.prepare(task, None), here.prepare(task, None)
        assert (got.error, got.number) == (expected.error, expected.number)
        assert (got.page is None) == (expected.page is None)
        if got.page and expected.page:
            assert got.page.image.tobytes() == expected.page.image.tobytes()
            assert (got.page.source, got.page.dpi, got.page.notes) == ("ten_pages.pdf", 72, expected.page.notes)
            assert got.page.image.size == expected.page.image.size
            with pytest.raises(DocumentError, match="process apart"):
                _ = got.page.text_layer
    here.close()


def test_the_text_layer_is_read_over_there(tmp_path: Path) -> None:
    from hsdkit.config import compose
    from hsdkit.pipeline import Pipeline

    run = Pipeline(compose(["drafter=pdftext", "target=tiny", "reuse_drafts=no"]))
    task = PageTask(Path("examples/ten_pages.pdf"), 3)
    apart, here = ProcessPreparer(run.recipe, Bounds(4000, 60)), Local(run.opening, run.drafter)
    got, expected = apart.prepare(task, None), here.prepare(task, None)
    apart.close()
    assert got.draft.regions
    assert got.draft.regions == expected.draft.regions
    assert got.notes == expected.notes


def test_no_torch_is_imported_there_and_files_stay_apart(make: Make, three: Path, tmp_path: Path) -> None:
    other = blank_pdf(tmp_path / "other.pdf", 2)
    preparer = make()
    found = [preparer.prepare(PageTask(*task), None) for task in ((three, 1), (other, 1), (three, 2), (other, 2))]
    texts = [p.draft.regions[0].text.split(maxsplit=1)[1] for p in found]
    assert texts == [f"False {n} of {name}" for n in (1, 2) for name in ("three.pdf", "other.pdf")]
    assert len({pid(p) for p in found}) == 1


def test_a_file_put_in_the_place_of_another_is_read_anew(make: Make, tmp_path: Path) -> None:
    file = blank_pdf(tmp_path / "a.pdf", 1)
    preparer = make()
    assert preparer.prepare(PageTask(file, 1), None).error is None
    os.replace(blank_pdf(tmp_path / "b.pdf", 2), file)
    assert preparer.prepare(PageTask(file, 2), None).error is None
    file.unlink()
    error = preparer.prepare(PageTask(file, 1), None).error
    assert error is not None
    assert "no such file" in error


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        ("abort", r"was killed \(SIGABRT\)"),
        ("segfault", r"was killed \(SIGSEGV\)"),
        # what was said of the page before may come late
        ("exit", "ended with exit code 7; it last said: (a library talks / )?about to leave"),
        ("babble", ""),
    ],
)
def test_a_drafter_that_dies_costs_the_page_its_draft(make: Make, three: Path, harm: str, said: str) -> None:
    preparer = make(f"drafter.harm={{'2': {harm}}}")
    one, two, three_ = (preparer.prepare(PageTask(three, n), None) for n in (1, 2, 3))
    assert (one.error, two.error, three_.error) == (None, None, None)
    assert two.page is not None
    assert two.page.image.size == (200, 100)
    assert not two.draft.regions
    [note] = two.notes
    assert note.startswith("no draft: drafter 'hostile' failed: its process ")
    assert re.search(said, note)
    assert pid(one) != pid(three_)
    assert not alive(pid(one))


@pytest.mark.parametrize("harm", ["abort", "exit", "hang"])
def test_a_file_that_kills_its_reader_costs_its_page(make: Make, three: Path, tmp_path: Path, harm: str) -> None:
    bad = blank_pdf(tmp_path / "bad.pdf")
    preparer = make(f"drafter.harm={{bad.pdf: {harm}}}", seconds=1.5 if harm == "hang" else 30)
    before, lost, after = (preparer.prepare(PageTask(*t), None) for t in ((three, 1), (bad, 1), (three, 2)))
    assert lost.page is None
    assert lost.error is not None
    assert lost.error.startswith("bad.pdf, page 1: the process that prepared it ")
    assert {"abort": "SIGABRT", "exit": "exit code 7", "hang": "took more than 1.5 s (prepare_seconds=1.5)"}[
        harm
    ] in lost.error
    assert pid(before) != pid(after)
    assert not alive(pid(before))


def test_a_drafter_that_hangs_costs_the_page_its_draft(make: Make, three: Path) -> None:
    preparer = make("drafter.harm={'1': hang}", seconds=1.0)
    start = time.monotonic()
    lost = preparer.prepare(PageTask(three, 1), None)
    assert time.monotonic() - start < 10
    assert lost.page is not None
    assert lost.notes == ("no draft: drafter 'hostile' failed: its process took more than 1 s (prepare_seconds=1)",)
    assert preparer.prepare(PageTask(three, 2), None).draft.regions


def test_memory_is_bounded_and_the_bound_is_named(make: Make, three: Path, tmp_path: Path) -> None:
    bad = blank_pdf(tmp_path / "bad.pdf")
    preparer = make("drafter.harm={'2': bomb, bad.pdf: bomb}")
    drafted, lost, after = (preparer.prepare(PageTask(*t), None) for t in ((three, 2), (bad, 1), (three, 1)))
    assert drafted.page is not None
    assert drafted.notes == ("no draft: drafter 'hostile' failed: MemoryError: no message (page_memory=500)",)
    assert lost.error == "bad.pdf, page 1: MemoryError: no message (page_memory=500)"
    assert after.draft.regions


def test_a_leaking_process_is_replaced_before_it_meets_its_bound(make: Make, tmp_path: Path) -> None:
    file = blank_pdf(tmp_path / "a.pdf", 9)
    preparer = make("drafter.harm={" + ", ".join(f"'{n}': leak" for n in range(1, 10)) + "}", megabytes=300)
    found = [preparer.prepare(PageTask(file, n), None) for n in range(1, 10)]
    assert all(p.draft.regions for p in found), [p.notes for p in found]
    assert 2 <= len({pid(p) for p in found}) <= 5


def test_drafting_that_does_not_pay_is_left_out(make: Make, three: Path) -> None:
    run = pipeline("draft=auto", "drafter.seconds=60", "engine.token=0.001")
    preparer = make("draft=auto", "drafter.seconds=60")
    prepared = preparer.prepare(PageTask(three, 1), run.ask_cost)
    assert not prepared.draft.regions
    assert prepared.notes[0].startswith("no draft: making it would take about 60 s")
    assert prepared.characters == 0
    cheap = make("draft=auto", "drafter.seconds=0.01")

    def never() -> None:
        raise AssertionError("asked for the cost")

    assert cheap.prepare(PageTask(three, 1), never).draft.regions  # type: ignore[arg-type]


def test_what_would_fail_every_page_is_raised(make: Make, three: Path) -> None:
    with pytest.raises(PluginError, match="it has no heart for this"):
        make("drafter.load=refuse").prepare(PageTask(three, 1), None)
    with pytest.raises(PluginError, match=r"was killed \(SIGABRT\).* while it started, 2 times .*preparing=0"):
        make("drafter.load=abort").prepare(PageTask(three, 1), None)


def test_closing_ends_a_page_that_hangs_and_leaves_nothing_behind(make: Make, three: Path) -> None:
    folders = set(glob.glob(f"{tempfile.gettempdir()}/hsdkit-*"))
    preparer = make("drafter.harm={'2': hang}")
    first = preparer.prepare(PageTask(three, 1), None)
    found: list[Prepared] = []
    thread = threading.Thread(target=lambda: found.append(preparer.prepare(PageTask(three, 2), None)))
    thread.start()
    time.sleep(0.3)
    start = time.monotonic()
    preparer.close()
    thread.join(5)
    assert time.monotonic() - start < 3
    assert not thread.is_alive()
    assert len(found) == 1
    assert not alive(pid(first))
    assert set(glob.glob(f"{tempfile.gettempdir()}/hsdkit-*")) <= folders


def test_pages_are_counted_apart(make: Make, three: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 nothing")
    preparer = make("verifier.uses_draft=no")
    assert preparer.count(three) == 3
    for path, said in ((broken, "broken.pdf: is a broken PDF"), (tmp_path / "none.pdf", "no such file")):
        with pytest.raises(DocumentError, match=said):
            preparer.count(path)
    assert preparer.prepare(PageTask(three, 2), None).page is not None
    slow = make("verifier.uses_draft=no", seconds=1.0)
    os.kill(slow._ready().pid, signal.SIGSTOP)
    with pytest.raises(DocumentError, match=rf"{three.name}: the process that opened it took more than 1 s"):
        slow.count(three)
    assert slow.count(three) == 3


def test_a_process_killed_between_two_pages_costs_nothing(make: Make, three: Path) -> None:
    preparer = make()
    first = pid(preparer.prepare(PageTask(three, 1), None))
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    second = preparer.prepare(PageTask(three, 2), None)
    assert second.draft.regions
    assert pid(second) != first
