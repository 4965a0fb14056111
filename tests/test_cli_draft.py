"""`hsdkit draft` and `hsdkit drafter` in process: what is shown, written, installed, and told when it goes wrong."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest
from commands import hsdkit, load, run
from heavy import Heavy, make_ready, stand_in
from toys import TOY, ToyDrafter, blank_pdf, register_toys

from hsdkit.cli.draft import table
from hsdkit.components import Environment
from hsdkit.documents import Page
from hsdkit.draft_cache import DraftCache
from hsdkit.draft_files import load_drafts
from hsdkit.plugins import plugins
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.workers import environments


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """The drafter `fake`, not installed, in a working folder of its own."""
    register_toys()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HSDKIT_HOME", str(tmp_path / "home"))
    heavy = Heavy(tmp_path)
    known = plugins()
    before = dict(known._components)
    known.register(heavy, "heavy")
    yield heavy.library.environment
    known.manager.unregister(heavy)
    known._components = before


def draft(*arguments: str):
    return hsdkit("draft", *TOY, *arguments)


# -- hsdkit draft


def test_a_draft_is_a_table_in_reading_order_with_its_notes(tmp_path: Path):
    blank_pdf(tmp_path / "a.pdf", 2)
    result = draft("a.pdf", "pages=2")
    assert result.exit_code == 0
    head, note, columns, row = result.stdout.rstrip().splitlines()
    assert head.startswith("a.pdf, page 2: 1 region, by toy in ")
    assert note == "toy draft"
    assert columns.split() == ["#", "label", "box", "text"]
    assert row.split() == ["1", "text", "0", "0", "10", "10", "drafted"]
    assert not Path("out").exists()


def test_long_texts_are_cut_and_controls_shown():
    [rows] = table([Region(Box(0, 0, 1, 1), Label.LIST, "a\n" + "b" * 90)]).columns[3:]
    [shown] = rows.cells
    assert shown == "a\\n" + "b" * 58 + "..."


def test_saved_drafts_replay_in_a_run(tmp_path: Path):
    blank_pdf(tmp_path / "a.pdf", 2)
    assert "out/a.drafts.json: 2 drafts" in draft("a.pdf", "--save", "-q").stdout
    assert len(load_drafts("out/a.drafts.json")) == 2
    replayed = run("a.pdf", "drafter=replay", "drafter.path=out/a.drafts.json")
    assert replayed.exit_code == 0
    assert [len(p.draft.regions) for p in load("out/a.json").pages] == [1, 1]


def test_the_report_shows_pages_with_their_boxes(tmp_path: Path):
    blank_pdf(tmp_path / "a.pdf")
    assert draft("a.pdf", "--report").stdout.rstrip().endswith("out/a.html")
    html = Path("out/a.html").read_text()
    assert "drafted only: no model has read this page" in html
    assert "data:image/jpeg" in html


def test_a_page_that_cannot_be_drafted_is_told_and_costs_nothing_else(tmp_path: Path):
    blank_pdf(tmp_path / "a.pdf", 2)
    result = draft("a.pdf", "drafter.behave=refuse", "--save")
    assert result.exit_code == 1
    assert "note: a.pdf, page 1: no draft: drafter 'toy' failed: the page is upside down" in result.stderr
    assert len(load_drafts("out/a.drafts.json")) == 2


def test_files_that_cannot_be_read_are_errors_and_the_others_are_drafted(tmp_path: Path):
    blank_pdf(tmp_path / "b.pdf")
    (tmp_path / "a.pdf").write_bytes(b"")
    result = draft("a.pdf", "gone.pdf", "b.pdf")
    assert result.exit_code == 1
    assert "error: a.pdf: the file is empty (0 bytes)" in result.stderr
    assert "error: gone.pdf: no such file or folder" in result.stderr
    assert "b.pdf, page 1: 1 region" in result.stdout


def test_a_drafter_that_is_not_installed_is_one_line(tmp_path: Path):
    blank_pdf(tmp_path / "a.pdf")
    result = draft("a.pdf", "drafter=fake")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "drafter 'fake' is not installed: `hsdkit drafter install fake`" in result.stderr


def test_a_run_whose_drafter_can_never_work_ends_before_the_first_page(tmp_path: Path, made: Environment):
    blank_pdf(tmp_path / "a.pdf")
    make_ready(made)
    result = run("a.pdf", "drafter=fake", 'drafter.told={"load": "raise"}')
    assert result.exit_code == 1
    assert "error: drafter 'fake' in its own environment: get weights.bin with: fetch-weights" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_worker_drafts_for_the_command_line(tmp_path: Path, made: Environment):
    blank_pdf(tmp_path / "a.pdf")
    make_ready(made)
    result = draft("a.pdf", "drafter=fake")
    assert result.exit_code == 0
    assert "page 1 by " in result.stdout
    assert "draft from the cache" in draft("a.pdf", "drafter=fake").stdout


# -- hsdkit drafter


def test_the_list_says_what_is_installed(made: Environment):
    assert "not installed: hsdkit drafter install fake" in hsdkit("drafter", "list").stdout
    make_ready(made)
    assert "ready 1.2 in its own environment" in hsdkit("drafter", "list").stdout
    assert "ready 1.2 in its own environment" in hsdkit("plugins", "drafter").stdout
    made.requirements.write_text("fake==2")
    listed = hsdkit("drafter", "list").stdout
    assert "outdated: hsdkit drafter install fake" in listed
    assert "fake==2" in listed


def test_installing_what_is_there_does_nothing_and_removing_removes(made: Environment):
    make_ready(made)
    assert "fake is installed in " in hsdkit("drafter", "install", "fake").stdout
    assert hsdkit("drafter", "remove", "fake").stdout == "fake removed\n"
    assert environments.state(made) == "absent"
    assert hsdkit("drafter", "remove", "fake").stdout == "fake has no environment\n"


def test_what_cannot_be_installed_is_told():
    unknown = hsdkit("drafter", "install", "fakes")
    assert unknown.exit_code == 1
    assert "no drafter named 'fakes': did you mean 'fake'?" in unknown.stderr
    light = hsdkit("drafter", "install", "toy")
    assert light.exit_code == 2
    assert "drafter 'toy' needs no environment of its own; it is ready as it is (those that do: " in light.stderr
    failed = hsdkit("drafter", "install", "fake", "--python", "/no/python")
    assert failed.exit_code == 1
    assert "no virtual environment can be made: /no/python" in failed.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_installation_and_leaves_nothing(tmp_path: Path, number: signal.Signals):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit it ignored
    pip = f"import signal, time; os.kill(os.getppid(), {number:d}); time.sleep(60)"
    result = hsdkit("drafter", "install", "fake", "--python", stand_in(tmp_path, pip))
    assert result.exit_code == 128 + number
    assert list(environments.root().glob("[!.]*")) == []


def test_a_signal_that_a_library_swallows_ends_the_drafting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def swallowing(self: ToyDrafter, page: Page) -> Draft:
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        return Draft((), "toy")

    monkeypatch.setattr(ToyDrafter, "draft", swallowing)
    blank_pdf(tmp_path / "a.pdf", 9)
    result = draft("a.pdf", "--save")
    assert result.exit_code == 143
    assert not Path("out/a.drafts.json").exists()


def test_drafts_that_cannot_be_removed_are_told(monkeypatch: pytest.MonkeyPatch):
    from heavy import page

    DraftCache().put(page(), "key", Draft())
    monkeypatch.setattr(DraftCache, "prune", lambda self, most_bytes: None)
    result = hsdkit("drafter", "cache", "--clear")
    assert result.exit_code == 1
    assert result.stdout.startswith("removed 0 drafts, 0.0 MB")
    assert "1 draft cannot be removed" in result.stderr


def test_the_cache_is_counted_and_cleared(tmp_path: Path):
    from heavy import page

    DraftCache().put(page(), "key", Draft())
    folder = tmp_path / "home" / "drafts"
    assert hsdkit("drafter", "cache").stdout == f"1 draft, 0.0 MB (at most 500), in {folder}\n"
    assert hsdkit("drafter", "cache", "--clear").stdout == f"removed 1 draft, 0.0 MB, from {folder}\n"
    assert hsdkit("drafter", "cache").stdout.startswith("0 drafts")
