"""Sweeps of toys: what is done stays done, what fails is a row, models are kept, and the command line around it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from toys import TOY, Toys, ToyTarget, blank_pdf, register_toys
from typer.testing import CliRunner

from hsdkit import hookimpl
from hsdkit.benchmarks import Item
from hsdkit.cli.app import app
from hsdkit.components import Component
from hsdkit.config import Choice
from hsdkit.documents import Document, open_document
from hsdkit.errors import ConfigError, TargetError
from hsdkit.plugins import Plugins
from hsdkit.study.axes import read_axes
from hsdkit.study.execute import Options, Sweep
from hsdkit.study.figures import figures
from hsdkit.study.grading import Grader
from hsdkit.study.plan import make_plan
from hsdkit.study.probe import drift
from hsdkit.study.records import CellRecord, Store
from hsdkit.study.sources import Shelf, ShelvedDocument, Source


@dataclass
class Log:
    """Watches, and counts what is loaded."""

    cells: list[dict[str, str]] = field(default_factory=list)
    turns: list[str] = field(default_factory=list)
    left: list[float | None] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)

    def cell(self, at: dict[str, str]) -> None:
        self.cells.append(at)

    def turn(self, what: str, round_: int, document: str, page: int) -> None:
        self.turns.append(what)

    def finished(self, record: CellRecord, done: int, total: int, left: float | None) -> None:
        self.left.append(left)


class CountedToys(Toys):
    def __init__(self, log: Log) -> None:
        self.log = log

    @hookimpl
    def hsdkit_components(self) -> Iterator[Component]:
        for component in super().hsdkit_components():
            if component.kind != "target":
                yield component

        def build(config):  # type: ignore[no-untyped-def]
            self.log.loaded.append(config.model)
            if config.model == "broken":
                raise TargetError("target=toy: no weights in 'broken'")
            return ToyTarget(config)

        yield Component("target", "toy", "counted", component_config(), build)


def component_config():  # type: ignore[no-untyped-def]
    from toys import ToyTargetConfig

    return ToyTargetConfig


def sweep(folder: Path, *overrides: str, log: Log, pages: int = 2, **options: object) -> Sweep:
    registry = Plugins()
    registry.register(CountedToys(log), "toys")
    path = folder / "a.pdf"
    folder.mkdir(exist_ok=True)
    if not path.exists():
        blank_pdf(path, pages)
    fixed, axes = read_axes([*TOY, *overrides])
    given = {"rounds": 2, "baseline": "toy"} | options
    return Sweep(make_plan(fixed, axes, registry=registry), [path], Store(folder), Options(**given), registry)  # type: ignore[arg-type]


def go(made: Sweep, log: Log) -> list[CellRecord]:
    made.write_plan({})
    return list(made.run(log))


def test_the_baseline_is_measured_once_and_cells_are_compared_with_it(tmp_path: Path) -> None:
    log = Log()
    made = sweep(tmp_path, "verifier.tau=0.5,1", "verifier.text=RAW abc,RAW abcd", log=log)
    go(made, log)
    records = made.store.cells()
    assert [r.status for r in records] == ["ok"] * 4
    assert log.turns == ["baseline"] * 4 + ["cell"] * 16
    # Plain decoding says "page 1 of a.pdf".
    first = records[0].pages[0]
    assert (first.text, first.same, first.edit) == ("abc", False, 1 - 1 / 15)
    assert len(first.turns) == len(first.baseline) == 2
    f = figures(records[0])
    assert f is not None
    assert (f.pages, f.same, f.aal) == (2, 0, 4)
    assert f.sr_e2e is not None
    assert f.sr_e2e.value > 0
    assert log.loaded == ["toy-checkpoint"]
    assert log.left[-1] is None
    assert all(left is not None for left in log.left[:-1])


def test_a_cell_that_is_the_baseline_has_its_text(tmp_path: Path) -> None:
    log = Log()
    [record, _] = go(sweep(tmp_path, "verifier.tau=0.5,1", log=log), log)
    assert all(p.same and p.edit == 0 and p.draft_edit is not None for p in record.pages)


def test_paired_measures_both_sides_in_turn(tmp_path: Path) -> None:
    log = Log()
    [record, _] = go(sweep(tmp_path, "verifier.tau=0.5,1", log=log, paired=True), log)
    assert log.turns == ["cell"] * 8
    assert all(p.same and len(p.baseline) == 2 for p in record.pages)


def test_a_rerun_does_what_an_interrupt_left(tmp_path: Path) -> None:
    first = Log()
    made = sweep(tmp_path, "verifier.tau=0.25,0.5,1", log=first)
    made.write_plan({})

    def stop() -> None:
        if len(first.cells) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(made.run(first, stop))
    assert [r.status for r in made.store.cells()] == ["ok", "failed", "failed"]
    assert "run the sweep again" in made.store.cells()[1].reason

    second = Log()
    go(sweep(tmp_path, "verifier.tau=0.25,0.5,1", log=second), second)
    assert second.cells == [{"verifier.tau": "0.5"}, {"verifier.tau": "1"}]
    assert "baseline" not in second.turns
    assert [r.status for r in made.store.cells()] == ["ok"] * 3

    third = Log()
    go(sweep(tmp_path, "verifier.tau=0.25,0.5,1", log=third), third)
    assert third.cells == third.loaded == []


def test_an_interrupt_within_a_page_leaves_no_record_of_the_cell(tmp_path: Path) -> None:
    log = Log()
    made = sweep(tmp_path, "verifier.interrupt=[],[2]", log=log)
    with pytest.raises(KeyboardInterrupt):
        go(made, log)
    assert [r.status for r in made.store.cells()] == ["ok", "failed"]


def test_another_document_or_value_is_measured_anew(tmp_path: Path) -> None:
    log = Log()
    go(sweep(tmp_path, "verifier.tau=0.5,1", log=log), log)
    more = Log()
    go(sweep(tmp_path, "verifier.tau=0.5,0.75,1", log=more), more)
    assert more.cells == [{"verifier.tau": "0.75"}]
    blank_pdf(tmp_path / "a.pdf", 3)
    other = Log()
    go(sweep(tmp_path, "verifier.tau=0.5,0.75,1", log=other), other)
    assert len(other.cells) == 3


def test_what_fails_is_a_row_and_is_tried_again(tmp_path: Path) -> None:
    log = Log()
    made = sweep(tmp_path, "verifier.fail=[],[2],[1,2]", "drafter=toy,toy_missing", log=log)
    go(made, log)
    status = {tuple(r.at.values()): (r.status, r.reason or r.failures) for r in made.store.cells()}
    assert status["[]", "toy"] == ("ok", ())
    assert status["[2]", "toy"] == ("partial", ("a.pdf, page 2: RuntimeError: the toy broke",))
    assert status["[1,2]", "toy"][0] == "failed"
    assert "the toy" in status["[1,2]", "toy"][1]
    assert status["[]", "toy_missing"][0] == "failed"
    assert "hsdkit[toys]" in status["[]", "toy_missing"][1]
    again = Log()
    go(sweep(tmp_path, "verifier.fail=[],[2],[1,2]", "drafter=toy,toy_missing", log=again), again)
    assert len(again.cells) == 5


def test_combinations_of_the_same_settings_are_measured_once(tmp_path: Path) -> None:
    log = Log()
    made = sweep(tmp_path, "verifier.tau=1,1.0", log=log)
    go(made, log)
    assert len(log.cells) == 1
    assert [(r.at["verifier.tau"], r.status) for r in made.store.cells()] == [("1", "ok"), ("1.0", "ok")]


def test_pages_that_plain_decoding_fails_on_are_kept_and_not_compared(tmp_path: Path) -> None:
    log = Log()
    made = sweep(tmp_path, "verifier.tau=0.5,1", log=log)
    fail_once = replace(made.plan.first.verifier.options, fail=(2,))
    made._baseline_config = lambda config: replace(config, verifier=Choice("toy", fail_once))  # type: ignore[method-assign]
    [record, _] = go(made, log)
    assert record.status == "partial"
    assert record.failures == ("baseline: a.pdf, page 2: RuntimeError: the toy broke",)
    assert [(p.page, p.same, len(p.baseline)) for p in record.pages] == [(1, True, 2), (2, None, 0)]


def test_a_model_serves_all_its_cells_and_a_broken_one_is_tried_once(tmp_path: Path) -> None:
    log = Log()
    made = sweep(tmp_path, "verifier.tau=0.5,1", "target.model=one,broken,two", log=log)
    go(made, log)
    assert log.loaded == ["one", "broken", "two"]
    assert [r.status for r in made.store.cells()] == ["ok", "failed", "ok"] * 2
    assert "no weights" in made.store.cells()[1].reason


def test_a_document_that_cannot_be_opened_fails_its_cells(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"not a PDF")
    log = Log()
    records = go(sweep(tmp_path, "verifier.tau=0.5,1", log=log), log)
    assert all(r.status == "failed" and "a.pdf" in r.reason for r in records)


def test_records_come_back_from_disk(tmp_path: Path) -> None:
    log = Log()
    made = sweep(tmp_path, "verifier.tau=0.5,1", log=log)
    records = go(made, log)
    assert made.store.cells() == records
    file = tmp_path / "cells" / f"{records[0].key}.json"
    file.write_text(file.read_text()[:100])  # cut short
    again = Log()
    go(sweep(tmp_path, "verifier.tau=0.5,1", log=again), again)
    assert len(again.cells) == 1


def test_an_unknown_baseline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="baseline=nobody"):
        sweep(tmp_path, "verifier.tau=0.5,1", log=Log(), baseline="nobody")


def test_the_probe_tells_a_drift_of_the_machine() -> None:
    assert drift([1.0, 1.0], [1.5, 1.7]) == pytest.approx(1.6)
    assert drift([], [1.0]) is None
    assert drift([1.0], []) is None


def test_cells_measured_apart_from_the_baseline_know_the_drift(tmp_path: Path) -> None:
    log = Log()
    apart = go(sweep(tmp_path, "verifier.tau=0.5,1", log=log), log)
    assert all(len(r.probe) == 2 and r.drift and r.drift > 0 for r in apart)
    paired = go(sweep(tmp_path / "p", "verifier.tau=0.5,1", log=log, paired=True), log)
    assert [r.drift for r in paired] == [None, None]


# ---- with a benchmark


class Letters:
    """Counts letters. The page that is not there counts as empty."""

    name, edition, notes = "letters", "v1", ()

    def measure(self, item: Item, markdown: str) -> dict[str, int]:
        return {"letters": len(markdown)}

    def summarise(self, pages: Sequence[Mapping[str, int]], group: bool = False) -> dict[str, float | None]:
        return {"letters": sum(p["letters"] for p in pages) / len(pages), "none": None, "test/1": 1.0}


def test_a_benchmark_brings_pages_and_figures(tmp_path: Path) -> None:
    log = Log()
    paths = [blank_pdf(tmp_path / name, 3) for name in ("a.pdf", "b.pdf")]
    items = [Item(f"{p.stem}{n}", p, n, {"file": (p.stem, "pdf")}) for p in paths for n in (1, 3)]
    items.append(Item("gone", tmp_path / "gone.pdf"))
    grader = Grader(Letters(), tuple(items), {})  # type: ignore[arg-type]
    assert grader.sources() == [Source(p, (1, 3)) for p in paths] + [Source(tmp_path / "gone.pdf", (1,))]
    fixed, axes = read_axes([*TOY, "verifier.text=RAW abcd,RAW ab"])
    registry = Plugins()
    registry.register(CountedToys(log), "toys")
    plan = make_plan(fixed, axes, registry=registry)
    made = Sweep(plan, grader, Store(tmp_path / "out"), Options(rounds=1, baseline="toy"), registry)
    records = go(made, log)
    assert [r.metrics for r in records] == [{"letters": n / 5, "draft letters": len("drafted")} for n in (16, 8)]
    assert [p.metrics["letters"] for p in records[0].pages] == [4.0] * 4
    assert [r.status for r in records] == ["partial", "partial"]
    assert "gone.pdf" in records[0].failures[0]
    assert [p.page for p in records[0].pages] == [1, 3, 1, 3]
    assert records[0].pages[0].groups == {"file": "a, pdf"}
    assert "benchmark letters v1" in records[0].notes
    assert records[0].benchmark == {"name": "letters", "edition": "v1", "truth": ""}


def test_a_shelf_holds_one_document_at_a_time(tmp_path: Path) -> None:
    opened: list[str] = []

    def open_(path: Path) -> Document:
        opened.append(path.name)
        return open_document(path)

    shelf = Shelf(open_)
    a, b = (ShelvedDocument(blank_pdf(tmp_path / n, 2), (1, 2), shelf) for n in ("a.pdf", "b.pdf"))
    assert [d.page(n).number for d, n in ((a, 1), (a, 2), (b, 1), (a, 2))] == [1, 2, 1, 2]
    assert opened == ["a.pdf", "b.pdf", "a.pdf"]
    assert len(a) == 2
    shelf.close()


# ---- the command line


def command(*arguments: str):  # type: ignore[no-untyped-def]
    register_toys()
    return CliRunner().invoke(app, ["sweep", *TOY, "baseline=toy", *arguments])


def test_the_command_measures_prints_and_resumes(tmp_path: Path) -> None:
    document = str(blank_pdf(tmp_path / "a.pdf"))
    arguments = ["verifier.tau=0.5,0,1", "rounds=1", f"output={tmp_path}/out", document, "password=secret"]
    found = command(*arguments)
    assert found.exit_code == 0, found.output
    assert "tau must be above 0" in found.output
    assert "[3/3] verifier.tau=1: " in found.output
    plan = json.loads((tmp_path / "out" / "sweep.json").read_text())
    assert plan["axes"] == ["verifier.tau"]
    assert "secret" not in "".join(p.read_text() for p in (tmp_path / "out").rglob("*.json"))
    assert "3 cells, 2 of them done before" in command(*arguments).output


def test_failed_cells_end_in_exit_code_1_and_ctrl_c_in_130(tmp_path: Path) -> None:
    document = str(blank_pdf(tmp_path / "a.pdf"))
    assert command("verifier.fail=[1],[2]", f"output={tmp_path}/a", document).exit_code == 1
    found = command("verifier.interrupt=[],[1]", f"output={tmp_path}/b", document)
    assert found.exit_code == 128 + signal.SIGINT
    assert "goes on where it was stopped" in found.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.pdf"], "nothing to go through"),
        (["a.pdf", "experiment=roofline"], "experiment=roofline has settings and no axis"),
        (["verifier.tau=0.5,1"], "no input"),
        (["verifier.tau=0.5,1", "rounds=0", "a.pdf"], "rounds=0"),
        (["verifier.tau=0.5,1", "paired=maybe", "a.pdf"], "paired=maybe"),
        (["verifier.tau=0.5,1", "benchmark=nothing", "path=x"], "nothing"),
        (["verifier.tua=0.5,1", "a.pdf"], "no cell of the sweep can run"),
    ],
)
def test_usage_errors_are_one_line(arguments: list[str], said: str) -> None:
    found = command(*arguments)
    assert found.exit_code == 2
    assert said in found.output
