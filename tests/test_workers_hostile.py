"""Libraries that do in their worker what no library should: it costs a page at most."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from heavy import FakeConfig, drafter, pid, refusal, text

from hsdkit.errors import PluginError
from hsdkit.workers import process


@pytest.mark.parametrize(
    ("what", "expected"),
    [("panic", "Panic: out of bounds"),
     ("mute", "Mute: its message cannot be shown"),
     ("half", "its worker ended with exit code 0"),
     ("garbage", "its worker answered something that is no answer (AttributeError)"),
     ("large", "its worker answered with over 0.01 MB"),
     ("orphan", "its worker was killed (SIGKILL")],
)  # fmt: skip
def test_whatever_a_worker_does_costs_that_page_only(
    home: Path, monkeypatch: pytest.MonkeyPatch, what: str, expected: str
):
    monkeypatch.setattr(process, "MOST_CHARACTERS", 10_000)
    made = drafter(home, {"do": {"2": what}, "characters": 20_000}, timeout=30)
    pid(made)
    start = time.monotonic()
    assert refusal(made).startswith(f"a.png, page 1: {expected}")
    assert time.monotonic() - start < 20, "it did not wait for what will not come"
    assert text(made)


def test_a_log_without_lines_does_not_fill_memory(home: Path):
    made = drafter(home, {"do": {"1": "flood", "2": "die"}, "megabytes": 20})
    assert text(made)
    assert len(refusal(made)) < 1500


def test_a_large_answer_arrives_whole(home: Path):
    made = drafter(home, {"always": "large", "characters": 10_000_000})
    assert len(text(made)) > 10_000_000


def test_an_environment_without_its_library_is_told_how_to_be_made_anew(home: Path):
    with pytest.raises(PluginError, match=r"its environment is broken \(ModuleNotFoundError.* --again makes it anew"):
        drafter(home, {"load": "import"}).load()


def test_a_panic_at_start_is_told(home: Path):
    with pytest.raises(PluginError, match="cannot be loaded: Panic: out of bounds"):
        drafter(home, {"load": "panic"}).load()


@pytest.mark.parametrize("option", ["timeout", "start_timeout", "max_pages"])
def test_bounds_of_a_worker_are_refused_where_there_is_none(home: Path, option: str):
    assert FakeConfig(via="environment", **{option: 7})
    with pytest.raises(ValueError, match=rf"{option}=7: bounds a worker, .*prepare_seconds"):
        FakeConfig(via="process", **{option: 7})


@pytest.mark.parametrize("option", ["timeout", "start_timeout", "max_pages", "max_megabytes"])
def test_bounds_that_no_clock_takes_are_refused(home: Path, option: str):
    for value in (0, -1, float("inf"), float("nan"), 1e300):
        with pytest.raises(ValueError, match=f"{option}=.*: must be above 0 and at most 1,000,000"):
            FakeConfig(**{option: value})
