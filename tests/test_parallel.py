"""Many pages at once: the same results, bounded resources, one thread for the caller, and nothing left behind."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from isolated import install, pipeline
from toys import ToyEngine, ToyEngineConfig, ToyVerifier, ToyVerifierConfig, blank_pdf

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.documents import Page
from hsdkit.errors import ConfigError, PluginError
from hsdkit.parallel import PageParser, PageTask, Stopped, parse_pages
from hsdkit.pipeline import Pipeline
from hsdkit.protocols import Verdict
from hsdkit.results import PageResult


class ManyEngine(ToyEngine):
    pages_at_once = 2


@dataclass(frozen=True)
class SlowConfig(ToyVerifierConfig):
    """tokens: how many it writes, one each `pause` seconds. refuse: the page at which it finds its options wrong."""

    tokens: int = 3
    pause: float = 0.005
    refuse: int = 0


class Slow(ToyVerifier):
    """Writes a few tokens, and knows how many pages it was asked for at the same time."""

    name = "slow"
    now = most = 0
    lock = threading.Lock()

    def verify(self, page: Any, draft: Any, target: Any, engine: Any, on_text: Any = None) -> Verdict:
        assert isinstance(self.config, SlowConfig)
        if page.number == self.config.refuse:
            raise ConfigError("verifier.refuse: no page can be read")
        with self.lock:
            Slow.now += 1
            Slow.most = max(Slow.most, Slow.now)
        try:
            for number in range(self.config.tokens):
                time.sleep(self.config.pause)
                if on_text:
                    on_text(0, f"{number} ")
            return super().verify(page, draft, target, engine, on_text)
        finally:
            with self.lock:
                Slow.now -= 1


class ManyToys:
    def __init__(self) -> None:
        self.told: list[tuple[int, str]] = []

    @hookimpl
    def hsdkit_components(self) -> Iterable[Component]:
        yield Component("engine", "many", "takes many pages", ToyEngineConfig, ManyEngine)
        yield Component("verifier", "slow", "takes its time", SlowConfig, Slow)

    @hookimpl
    def hsdkit_page_finished(self, source: str, result: PageResult) -> None:
        self.told.append((threading.get_ident(), f"{Path(source).name} {result.number}"))


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManyToys:
    install(tmp_path / "site", monkeypatch)
    Slow.most = 0
    return ManyToys()


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two documents and a broken one."""
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7\nnothing")
    return [blank_pdf(tmp_path / "a.pdf", 4), blank_pdf(tmp_path / "b.pdf", 4), broken]


def many(toys: ManyToys, *overrides: str) -> Pipeline:
    return pipeline("engine=many", "verifier=slow", *overrides, plugins=[toys])


def _all_children() -> set[int]:
    return {int(n) for n in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}


_ELSEWHERE: set[int] = set()


@pytest.fixture(autouse=True)
def _other_tests_may_have_children() -> None:
    _ELSEWHERE.clear()
    _ELSEWHERE.update(_all_children())


def children() -> set[int]:
    """Processes that the test has started and that are there."""
    return _all_children() - _ELSEWHERE


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("hsdkit-page")]


WAYS = ["preparing=0", "preparing=1", "preparing=2", "preparing=0 concurrency=3", "preparing=2 concurrency=4"]


def test_every_way_gives_the_same_results(toys: ManyToys, files: list[Path]) -> None:
    tasks = [PageTask(f, n, f"{f.name} {n}") for n in (1, 2, 3, 4, 5) for f in files]
    found = []
    for way in WAYS:
        run = many(toys, *way.split(), "verifier.fail=[3]", "drafter.harm={'2': refuse}", "on_failure=[]")
        results = {
            task.key: (r.number, r.text, r.error, len(r.notes), len(r.draft.regions), r.width)
            for task, r in parse_pages(run, tasks)
        }
        assert len(results) == len(tasks)
        found.append(results)
    assert found[0]["a.pdf 1"][:3] == (1, "RAW page 1 of a.pdf", None)
    assert "the toy broke" in str(found[0]["b.pdf 3"][2])
    assert "broken PDF" in str(found[0]["broken.pdf 1"][2])
    assert "has 4 pages" in str(found[0]["a.pdf 5"][2]) or "no page 5" in str(found[0]["a.pdf 5"][2])
    assert found[0]["a.pdf 2"][4] == 0
    for way, results in zip(WAYS, found, strict=True):
        assert results == found[0], way
    assert not children()
    assert not threads()


def test_pages_are_drafted_while_others_are_decoded(toys: ManyToys, tmp_path: Path) -> None:
    file = blank_pdf(tmp_path / "a.pdf", 6)
    finished: dict[int, float] = {}
    run = many(toys, "preparing=1", "concurrency=1", "verifier.tokens=10", "verifier.pause=0.02")
    results = []
    for _, result in parse_pages(run, [PageTask(file, n) for n in range(1, 7)]):
        finished[len(results)] = time.monotonic()
        results.append(result)
    drafted = [float(r.draft.notes[-1]) for r in results]
    assert all(drafted[n + 1] < finished[n] for n in range(5))


def test_a_crash_in_the_middle_costs_nothing_else(toys: ManyToys, files: list[Path], tmp_path: Path) -> None:
    bad = blank_pdf(tmp_path / "bad.pdf", 4)
    tasks = [PageTask(f, n) for n in (1, 2, 3, 4) for f in (*files[:2], bad)]
    run = many(toys, "preparing=2", "concurrency=2", "drafter.harm={bad.pdf: segfault, '3': exit}")
    results = {(t.path.name, t.number): r for t, r in parse_pages(run, tasks)}
    for (name, number), result in results.items():
        if name == "bad.pdf":
            assert result.error is not None
            assert result.error.startswith(f"bad.pdf, page {number}: the process that prepared it was killed (SIGSEGV)")
        else:
            assert result.text == f"RAW page {number} of {name}"
            assert len(result.draft.regions) == (number != 3)
    assert len(results) == 12


def test_no_more_pages_are_decoded_at_once_than_asked_for(toys: ManyToys, tmp_path: Path) -> None:
    file = blank_pdf(tmp_path / "a.pdf", 8)
    tasks = [PageTask(file, n) for n in range(1, 9)]
    for given, most in (("concurrency=auto", 2), ("concurrency=1", 1), ("concurrency=4", 4)):
        Slow.most = 0
        assert len(list(parse_pages(many(toys, given, "preparing=0", "verifier.pause=0.02"), tasks))) == 8
        assert Slow.most == most
    with pytest.raises(ConfigError, match="concurrency=3: engine 'toy' decodes one page at a time"):
        list(parse_pages(many(toys, "concurrency=3", "engine=toy"), tasks))


@pytest.mark.parametrize("way", ["preparing=0", "preparing=1 concurrency=3"])
def test_tasks_are_taken_only_as_there_is_room(toys: ManyToys, tmp_path: Path, way: str) -> None:
    file = blank_pdf(tmp_path / "a.pdf", 1)
    taken = 0

    def endless() -> Iterator[PageTask]:
        nonlocal taken
        while True:
            taken += 1
            yield PageTask(file, 1, taken)

    run = many(toys, *way.split())
    room = 1 if way == "preparing=0" else 5
    with contextlib.closing(parse_pages(run, endless())) as results:
        for count in range(1, 12):
            next(results)
            assert taken <= count + room
    assert not children()


@pytest.mark.parametrize("way", ["preparing=0", "preparing=auto", "preparing=1 concurrency=2"])
def test_an_iterator_may_have_nothing_to_do_yet(toys: ManyToys, tmp_path: Path, way: str) -> None:
    file = blank_pdf(tmp_path / "a.pdf", 1)
    finished: list[object] = []

    def waiting() -> Iterator[PageTask | None]:
        yield PageTask(file, 1, "first")
        while not finished:
            yield None
        yield PageTask(file, 1, "second")

    for task, _ in parse_pages(many(toys, *way.split()), waiting()):
        finished.append(task.key)
    assert finished == ["first", "second"]


@pytest.mark.parametrize("way", ["preparing=0", "preparing=1 concurrency=3"])
def test_all_callbacks_come_in_the_callers_thread(toys: ManyToys, files: list[Path], way: str) -> None:
    tasks = [PageTask(f, n, f"{f.name} {n}") for n in (1, 2) for f in files]
    here = threading.get_ident()
    seen: list[str] = []
    texts: dict[object, str] = {}

    def on_page(task: PageTask, page: Page | None, result: PageResult) -> None:
        assert threading.get_ident() == here
        assert (page is None) == (task.path.name == "broken.pdf")
        seen.append(f"{task.path.name} {result.number}")

    def on_text(task: PageTask, text: str) -> None:
        assert threading.get_ident() == here
        texts[task.key] = texts.get(task.key, "") + text

    list(parse_pages(many(toys, *way.split()), tasks, on_page=on_page, on_text=on_text))
    assert sorted(seen) == sorted(str(t.key) for t in tasks)
    assert [said for _, said in toys.told] == seen
    assert {thread for thread, _ in toys.told} == {here}
    assert texts == {f"{f.name} {n}": f"0 1 2 RAW page {n} of {f.name}" for n in (1, 2) for f in files[:2]}


@pytest.mark.parametrize("way", ["preparing=0", "preparing=1 concurrency=2"])
def test_a_page_can_be_stopped_as_it_grows(toys: ManyToys, files: list[Path], way: str) -> None:
    def on_text(task: PageTask, text: str) -> None:
        if task.number == 2:
            raise Stopped

    tasks = [PageTask(files[0], n) for n in (1, 2, 3)]
    run = many(toys, *way.split(), "verifier.tokens=200")
    results = {t.number: r for t, r in parse_pages(run, tasks, on_text=on_text)}
    assert {n: r.error for n, r in results.items()} == {1: None, 2: "a.pdf, page 2: stopped", 3: None}


@pytest.mark.parametrize("way", ["preparing=0", "preparing=1", "preparing=1 concurrency=3"])
def test_what_would_fail_every_page_is_raised_once(toys: ManyToys, files: list[Path], way: str) -> None:
    tasks = [PageTask(files[0], n) for n in (1, 2, 3, 4)]
    with pytest.raises(ConfigError, match=r"verifier\.refuse"):
        list(parse_pages(many(toys, *way.split(), "verifier.refuse=2"), tasks))
    with pytest.raises(PluginError, match="it has no heart"):
        list(parse_pages(many(toys, *way.split(), "drafter.load=refuse"), tasks))
    assert not children()
    assert not threads()


@pytest.mark.parametrize("leave", ["close", "error"])
def test_leaving_ends_all_at_once(toys: ManyToys, tmp_path: Path, leave: str) -> None:
    file = blank_pdf(tmp_path / "a.pdf", 20)
    run = many(toys, "preparing=2", "concurrency=3", "drafter.harm={'5': hang}", "verifier.tokens=4000")
    begun: list[int] = []

    def on_text(task: PageTask, text: str) -> None:
        begun.append(task.number)
        if leave == "error" and len(begun) > 20:
            raise ZeroDivisionError

    start = time.monotonic()
    if leave == "error":
        with pytest.raises(ZeroDivisionError):
            list(parse_pages(run, [PageTask(file, n) for n in range(1, 21)], on_text=on_text))
    else:
        with PageParser(run) as parser:
            futures = [parser.submit(PageTask(file, n), lambda text: begun.append(0)) for n in range(1, 21)]
            while len(begun) < 20:
                time.sleep(0.01)
            assert len(children()) == 2
            start = time.monotonic()
        assert all(f.done() for f in futures)
        assert {type(f.exception()) for f in futures if not f.cancelled()} <= {Stopped, RuntimeError, type(None)}
        assert sum(f.cancelled() for f in futures) == 20 - parser.capacity
    assert time.monotonic() - start < 15
    assert not children()
    assert not threads()


def _images() -> int:
    from PIL import Image

    return sum(isinstance(o, Image.Image) for o in gc.get_objects())


def test_200_pages_hold_few_images_and_few_files(toys: ManyToys, tmp_path: Path) -> None:
    documents = [blank_pdf(tmp_path / f"{n}.pdf", 2) for n in range(100)]
    run = many(toys, "preparing=1", "concurrency=2", "verifier.pause=0")
    tasks = (PageTask(f, n) for f in documents for n in (1, 2))
    before, held_before = len(os.listdir("/proc/self/fd")), _images()
    images: list[int] = []
    opened: list[int] = []
    over_there: list[int] = []
    for count, (_, result) in enumerate(parse_pages(run, tasks)):
        assert result.error is None
        if count % 10 == 0:
            images.append(_images())
            opened.append(len(os.listdir("/proc/self/fd")))
            [child] = children()
            over_there.append(len(os.listdir(f"/proc/{child}/fd")))
    assert max(images) <= held_before + 2 + 2 + 2  # decoded, on their way, and the one handed over
    assert max(opened) <= before + 6
    assert max(over_there) <= 12
    assert len(os.listdir("/proc/self/fd")) <= before


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from isolated import pipeline
from test_parallel import ManyToys
from hsdkit.parallel import PageTask, parse_pages
run = pipeline("engine=many", "verifier=slow", "verifier.tokens=100000", "preparing=2", "concurrency=2", {harm},
               plugins=[ManyToys()])
begun = lambda task, text: print("begun", flush=True)
for _ in parse_pages(run, [PageTask(Path({file!r}), n) for n in range(1, 9)], on_text=begun):
    pass
"""


@pytest.mark.parametrize("harm", ["'drafter.harm={}'", "\"drafter.harm={'3': hang, '4': hang}\""])
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_ctrl_c_and_kill_leave_no_process_behind(
    toys: ManyToys, tmp_path: Path, sent: signal.Signals, harm: str
) -> None:
    script = tmp_path / "run.py"
    file = str(blank_pdf(tmp_path / "a.pdf", 8))
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parent), file=file, harm=harm))
    paths = os.pathsep.join([str(tmp_path / "site"), *sys.path])
    process = subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
    )
    assert process.stdout
    assert process.stdout.readline() == b"begun\n"
    mine = [int(n) for n in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    assert len(mine) == 2
    start = time.monotonic()
    process.send_signal(sent)
    _, said = process.communicate(timeout=20)
    assert process.returncode in (-signal.SIGINT, 130, -signal.SIGKILL)
    assert sent == signal.SIGKILL or b"KeyboardInterrupt" in said
    while any(Path(f"/proc/{n}").exists() for n in mine) and time.monotonic() < start + 10:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{n}").exists() for n in mine)
    assert time.monotonic() - start < 8
