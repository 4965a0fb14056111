"""Worker processes: what they answer, how they die, who replaces them. The library is a fake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from heavy import SCRIPT, FakeConfig, Heavy, drafter, library, page, pid, refusal, text
from toys import TOY, Toys, blank_pdf

from hsdkit.config import compose
from hsdkit.drafting import safe_draft
from hsdkit.errors import PluginError
from hsdkit.pipeline import Pipeline
from hsdkit.plugins import Plugins
from hsdkit.workers.process import WorkerProcess, end_group


def gone(process: int, seconds: float = 5.0) -> bool:
    """Whether the process ends in that time (a zombie has ended)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_what_the_library_prints_does_not_get_into_its_answers(home: Path):
    made = drafter(home)
    made.load()
    draft = made.draft(page())
    assert draft.regions[0].text.startswith("page 1 by ")
    assert (draft.drafter, draft.notes) == ("fake", ())


def test_one_worker_drafts_many_pages_and_ends_when_closed(home: Path):
    made = drafter(home)
    pids = {pid(made, n) for n in range(1, 6)}
    assert len(pids) == 1
    made.close()
    assert gone(pids.pop())


def test_an_error_of_the_library_is_the_page_s_and_the_worker_goes_on(home: Path):
    made = drafter(home, {"do": {"2": "raise", "3": "exit"}})
    first = pid(made)
    assert refusal(made) == "a.png, page 1: ValueError: no such page"
    assert refusal(made) == "a.png, page 1: SystemExit: the library gives up"
    assert pid(made) == first


def test_a_page_that_kills_the_worker_has_no_draft_and_the_next_has(home: Path):
    made = drafter(home, {"do": {"2": "die"}})
    first = pid(made)
    said = refusal(made)
    assert "was killed (SIGKILL, perhaps for want of memory)" in said
    assert said.endswith("about to fall over")
    assert pid(made) != first


def test_a_page_that_takes_too_long_has_no_draft_and_the_next_has(home: Path):
    made = drafter(home, {"do": {"2": "hang"}}, timeout=1.5)
    first = pid(made)
    assert "took more than 1.5 s (drafter.timeout=1.5)" in refusal(made)
    assert gone(first)
    assert pid(made) != first


def test_a_worker_killed_mid_run_costs_one_page_its_draft_and_nothing_else(home: Path, tmp_path: Path):
    pids = tmp_path / "pids"

    def kill() -> None:
        deadline = time.monotonic() + 20
        while not pids.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(int(pids.read_text().split()[0]), signal.SIGKILL)

    registry = Plugins()
    registry.register(Toys(), "toys")
    registry.register(Heavy(home), "heavy")
    told = json.dumps({"do": {"3": "hang"}, "pids": str(pids)})
    overrides = [*TOY, "drafter=fake", f"drafter.told={told}", "draft=always", "reuse_drafts=false"]
    pipeline = Pipeline(compose(overrides, registry=registry), registry=registry)
    killer = threading.Thread(target=kill)
    killer.start()
    result = pipeline.parse(blank_pdf(tmp_path / "a.pdf", 5))
    killer.join()
    assert result.ok
    assert [p.markdown for p in result.pages] == [f"page {n} of a.pdf" for n in range(1, 6)]
    assert [len(p.draft.regions) for p in result.pages] == [1, 1, 0, 1, 1]
    [note] = result.pages[2].notes
    assert note.startswith("no draft: drafter 'fake' failed: a.pdf, page 3: its worker was killed (SIGKILL")
    assert gone(int(pids.read_text().split()[1])), "the worker's own child"
    before, after = (result.pages[i].draft.regions[0].text.split()[-1] for i in (1, 3))
    assert before != after


def test_fifty_pages_of_a_leaking_library_stay_under_the_bound(home: Path, monkeypatch: pytest.MonkeyPatch):
    """Each page leaks 2.5 MB; memory is looked at after each page, so one page may go past the bound."""
    bound, leak = 45, 2.5
    sizes: list[float] = []
    answer = WorkerProcess._answer

    def measured(self: WorkerProcess, seconds: float) -> dict[str, Any]:
        found = answer(self, seconds)
        sizes.append(self.rss / 1e6)
        return found

    monkeypatch.setattr(WorkerProcess, "_answer", measured)
    made = drafter(home, {"always": "leak"}, max_megabytes=bound)
    pids = [pid(made, n) for n in range(1, 51)]
    assert max(sizes) < bound + leak + 1
    assert max(sizes) > bound
    assert 50 / len(set(pids)) > 3


def test_a_bound_below_one_page_is_told(home: Path):
    made = drafter(home, max_megabytes=1)
    [note] = made.draft(page()).notes
    assert "more than drafter.max_megabytes=1" in note


def test_a_worker_is_replaced_after_its_number_of_pages(home: Path):
    made = drafter(home, max_pages=2)
    pids = [pid(made, n) for n in range(1, 6)]
    assert [pids.index(p) for p in pids] == [0, 0, 2, 2, 4]


def test_missing_weights_are_one_line_with_what_to_do_and_not_tried_again(home: Path, tmp_path: Path):
    made = drafter(home, {"load": "raise", "count": str(tmp_path / "starts")})
    with pytest.raises(
        PluginError, match=r"^drafter 'fake' in its own environment: get weights\.bin with: fetch-weigh"
    ):
        made.load()
    assert refusal(made).endswith("get weights.bin with: fetch-weights")
    assert (tmp_path / "starts").read_text() == "s"


def test_a_worker_that_dies_at_start_is_given_up_with_its_last_words(home: Path, tmp_path: Path):
    made = drafter(home, {"load": "die", "count": str(tmp_path / "starts")})
    for _ in range(2):
        with pytest.raises(PluginError, match="ended with exit code 3; it last said: the last words, 2 times while it"):
            made.load()
    assert (tmp_path / "starts").read_text() == "ss"


def test_a_worker_that_is_never_ready_is_given_up(home: Path):
    with pytest.raises(PluginError, match=r"was not ready after 0\.5 s \(drafter\.start_timeout=0\.5\)"):
        drafter(home, {"load": "hang"}, start_timeout=0.5).load()


def test_pages_that_all_kill_it_stop_the_restarts(home: Path, tmp_path: Path):
    made = drafter(home, {"always": "die", "count": str(tmp_path / "starts")})
    for n in range(1, 8):
        _, notes = safe_draft(made, page(n))
    assert "was ended by 5 pages in a row" in notes[0]
    assert (tmp_path / "starts").read_text() == "s" * 5


def test_what_is_no_json_of_the_library_is_the_page_s_error(home: Path):
    made = library(home, convert=lambda native, page: native["nothing"]).drafter(FakeConfig())
    assert refusal(made) == (
        "a.png, page 1: fake in its own environment gave JSON that cannot be read: KeyError: 'nothing'"
    )


def test_pdf_pages_are_handed_over_as_pdfs_and_images_as_png(home: Path, tmp_path: Path):
    from hsdkit.documents import open_document
    from hsdkit.regions import Box, Label, Region

    def head(native: Any, page: Any) -> list[Region]:
        return [Region(Box(0, 0, 1, 1), Label.TEXT, native["head"])]

    with open_document(blank_pdf(tmp_path / "a.pdf")) as document:
        of_pdf = document.page(1)
        for feed, expected in (("pdf", "%PDF"), ("image", "\x89PNG")):
            made = library(home, convert=head, feed=feed).drafter(FakeConfig())
            assert made.draft(of_pdf).regions[0].text == expected
            assert made.draft(page()).regions[0].text == "\x89PNG"


PARENT = """
import sys, time
from pathlib import Path
from hsdkit.workers.process import WorkerProcess
worker = WorkerProcess(sys.executable, Path(sys.argv[1]), {"always": "hang", "pids": sys.argv[2]})
worker.wait_ready(20)
worker.read(Path("page1.png"), 60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_worker_outlives_its_parent(tmp_path: Path, number: signal.Signals):
    pids = tmp_path / "pids"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, SCRIPT, pids], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not pids.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        worker, child = map(int, pids.read_text().split())
        parent.send_signal(number)
        parent.wait(10)
        assert gone(worker)
        assert gone(child)
    finally:
        parent.kill()
        parent.wait()


def test_ctrl_c_while_a_page_is_read_leaves_no_late_answer(home: Path):
    made = drafter(home)
    first = pid(made)
    worker = made._reader._worker

    def interrupted(**_: Any) -> str:
        raise KeyboardInterrupt

    worker._answers = type("Interrupted", (), {"get": staticmethod(interrupted)})()
    with pytest.raises(KeyboardInterrupt):
        made.draft(page(7))
    assert gone(first)
    assert text(made).startswith("page 3 by ")


def test_ending_a_process_twice_is_nothing(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.PIPE, start_new_session=True
    )
    end_group(process)
    end_group(process)
    assert process.poll() is not None
