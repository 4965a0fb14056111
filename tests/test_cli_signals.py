"""Runs that are interrupted or killed, and streams that are closed: what is finished is kept."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from commands import load, run, shell
from toys import TOY, blank_pdf


def test_ctrl_c_keeps_the_finished_pages(workplace: Path):
    blank_pdf(workplace / "a.pdf", 3)
    blank_pdf(workplace / "b.pdf")
    result = run("a.pdf", "b.pdf", "verifier.interrupt=[2]", "--report")
    assert result.exit_code == 130
    assert Path("out/a.md").read_text() == "page 1 of a.pdf\n"
    document = load("out/a.json")
    assert len(document.pages) == 1
    assert document.error == "interrupted after 1 page"
    assert "</html>" in Path("out/a.html").read_text()
    assert not Path("out/b.json").exists()
    assert "interrupted" in result.stderr


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("when", ["return verify(*a)", "raise ValueError"])
def test_a_signal_ends_the_run_in_order_though_a_library_swallows_it(workplace: Path, name: str, code: int, when: str):
    blank_pdf(workplace / "a.pdf", 9)
    before = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit it ignored\n"
        "verify = toys.ToyVerifier.verify\n"
        "def swallowing(*a):\n"
        "    if a[1].number == 2:\n"
        f"        try: os.kill(os.getpid(), signal.{name})\n"
        "        except: pass\n"
        f"        {when}\n"
        "    return verify(*a)\n"
        "toys.ToyVerifier.verify = swallowing"
    )
    process = shell("run", *TOY, "a.pdf", before=before)
    assert process.returncode == code, process.stderr
    assert Path("out/a.md").read_text() == "page 1 of a.pdf\n"
    assert load("out/a.json").error == "interrupted after 1 page"
    assert "failure" not in process.stderr


@pytest.mark.parametrize("closed", ["sys.stdout = None", "sys.stderr = None", "sys.stdout = open('/dev/full', 'w')"])
def test_streams_that_are_closed_or_full_do_not_end_a_run(workplace: Path, closed: str):
    if "full" in closed and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    blank_pdf(workplace / "a.pdf", 2)
    shell("run", *TOY, "a.pdf", "--stream", before=f"import sys; {closed}")
    assert load("out/a.json").ok
    assert len(load("out/a.json").pages) == 2


@pytest.mark.parametrize("streams", [[2], [1, 2]])
def test_a_run_goes_on_when_nobody_reads_along_any_more(workplace: Path, streams: list[int]):
    blank_pdf(workplace / "a.pdf", 2)
    (workplace / "bad.pdf").write_bytes(b"%PDF-1.7 nonsense")
    ends = "import os; r, w = os.pipe(); os.close(r);" + ";".join(f"os.dup2(w, {n})" for n in streams)
    process = shell("run", *TOY, "bad.pdf", "a.pdf", "--stream", before=ends)
    assert process.returncode == 1  # for the bad one
    assert load("out/a.json").ok
    assert len(load("out/a.json").pages) == 2
    assert Path("out/failures.jsonl").exists()
    assert shell("run", *TOY, "a.pdf", "--fresh", "--stream", before=ends).returncode == 0


def test_text_that_stdout_cannot_encode_costs_no_page(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    process = shell(
        "run", *TOY, "a.pdf", "verifier.text=\u00fcber \u6f22", "--stream", env={"PYTHONIOENCODING": "ascii"}
    )
    assert process.returncode == 0, process.stderr
    assert "ber" in process.stdout
    assert Path("out/a.md").read_text(encoding="utf-8") == "\u00fcber \u6f22\n"


def test_after_a_kill_the_next_run_goes_on_with_the_finished_pages(workplace: Path):
    blank_pdf(workplace / "a.pdf", 3)
    before = (
        "import os, signal\n"
        "verify = toys.ToyVerifier.verify\n"
        "def deadly(self, page, *rest, **more):\n"
        "    if page.number == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return verify(self, page, *rest, **more)\n"
        "toys.ToyVerifier.verify = deadly"
    )
    process = shell("run", *TOY, "a.pdf", before=before)
    assert process.returncode == -signal.SIGKILL
    assert not Path("out/a.json").exists()
    again = run("a.pdf")
    assert again.exit_code == 0
    assert "2 pages kept" in again.stderr
    assert [p.markdown for p in load("out/a.json").pages] == [f"page {n} of a.pdf" for n in (1, 2, 3)]


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
@pytest.mark.parametrize("swallowed", ["raise", "raise ValueError"])
def test_a_bench_that_is_interrupted_shows_and_writes_the_turns_before(
    workplace: Path, name: str, code: int, swallowed: str
):
    blank_pdf(workplace / "a.pdf", 2)
    before = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "verify, calls = toys.ToyVerifier.verify, []\n"
        "def interrupted(*a, **more):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 4:\n"  # the warm-up, two pages, page 1 of the second round
        f"        try: os.kill(os.getpid(), signal.{name})\n"
        f"        except BaseException: {swallowed}\n"
        "    return verify(*a, **more)\n"
        "toys.ToyVerifier.verify = interrupted\n"
        "from hsdkit_plugins.verifiers import autoregressive\n"
        "plain = toys.ToyVerifier(toys.ToyVerifierConfig(text='letter'))\n"
        "autoregressive.Autoregressive.verify = lambda self, *a: verify(plain, *a)"
    )
    options = ("verifiers=autoregressive,toy", "rounds=3", "verifier.text=letter")
    process = shell("bench", *TOY, "a.pdf", *options, before=before)
    assert process.returncode == code, process.stderr
    assert "interrupted: the figures are those of the turns before" in process.stderr
    assert "tokens/step" in process.stdout
    written = json.loads(Path("out/bench.json").read_text())
    assert written["interrupted"] is True
    assert written["failures"] == []
    assert [(s["page"], s["round"]) for s in written["samples"] if s["side"] == "toy"] == [(1, 0), (2, 0)]
