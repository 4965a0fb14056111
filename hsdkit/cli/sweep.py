"""`hsdkit sweep`: one measurement for every combination of option values; what is measured stays measured."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hsdkit.cli import console
from hsdkit.cli.console import duration, plain
from hsdkit.cli.interrupts import Interrupts
from hsdkit.cli.run import split_arguments
from hsdkit.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

    from hsdkit.study.execute import Options, Sweep
    from hsdkit.study.grading import Grader
    from hsdkit.study.plan import Plan
    from hsdkit.study.records import CellRecord, Store

OWN = ("rounds", "baseline", "paired")

HELP = """Measure every combination of option values: KEY=A,B,... makes an axis.

One row a combination: speed against plain decoding of the same pages, tokens
a step, and how far the text is from what plain decoding writes. A rerun does
what is missing or failed. [bold]hsdkit report FOLDER[/] makes tables and plots.

[bold]Its own options[/]

  experiment=STUDY   axes made ready: fig3, fig4, table4, table8, ...
  rounds=N           how often a page is measured [dim](3)[/]
  baseline=VERIFIER  what speed and text are compared with [dim](autoregressive)[/]
  paired=true        measure the baseline anew in every cell, in turn with it:
                     slower, but safe from a drift of the machine [dim](false)[/]
  benchmark=NAME     its pages, and its figures of every cell; path=, limit=,
                     subset= as for [bold]hsdkit eval[/]

[bold]Examples[/]

  hsdkit sweep report.pdf verifier.tau=0.75,1 verifier.n=1,3
  hsdkit sweep report.pdf drafter=noise drafter.base=pdftext
               drafter.recognition.char_error_rate=0,0.02,0.05
  hsdkit sweep experiment=fig4 report.pdf target=hunyuanocr

[bold]Exit code[/]  0: all measured (combinations that do not go together are rows
with their reason); 1: some failed; 2: usage; 130: Ctrl-C, with what was done."""


def sweep(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE[,VALUE...]|FILE",
            show_default=False,
            help="Options as for `hsdkit run`, several values each where wanted, and the documents.",
        ),
    ] = None,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    console.set_up(debug)
    raise typer.Exit(run_sweep(arguments or []))


sweep.__doc__ = HELP


def run_sweep(arguments: list[str]) -> int:
    """Measure, store, print the table to stdout; returns the exit code."""
    from hsdkit.study.execute import Sweep
    from hsdkit.study.records import Store

    own = {k: v for k, _, v in (a.partition("=") for a in arguments) if k in OWN}
    options = read_options(own)
    rest = [a for a in arguments if not re.match(rf"({'|'.join(OWN)})=", a)]
    grader, rest = graded(rest)
    overrides, inputs = split_arguments(rest)
    plan, name = planned(overrides, inputs)
    if grader and (plan.first.input or plan.first.pages):
        raise ConfigError(
            "with benchmark= the pages are the benchmark's: leave documents and pages= out; limit=, subset="
        )
    store = Store(Path(plan.first.output))
    sweep = Sweep(plan, grader or _paths(plan), store, options)
    for note in (*plan.notes, *(grader.notes if grader else ())):
        console.warn(note)
    sweep.write_plan({"study": name, "arguments": _without_password(arguments)})
    interrupts = Interrupts()
    interrupted = False
    try:
        with interrupts, Progress(console.console()) as watch:
            watch.begin(sweep)
            for _ in sweep.run(watch, interrupts.check):
                pass
    except KeyboardInterrupt:
        interrupted = True
    records = store.cells()
    _show(store, records)
    if interrupted:
        console.error("interrupted: the same command goes on where it was stopped")
        return 128 + (interrupts.received or signal.SIGINT)
    return 1 if any(r.status in ("failed", "partial") for r in records) else 0


def read_options(own: Mapping[str, str]) -> Options:
    """`rounds=`, `baseline=`, `paired=`. Raises `ConfigError`."""
    from hsdkit.cli.bench import parse_rounds
    from hsdkit.study.execute import Options

    given: dict[str, Any] = {}
    if "rounds" in own:
        given["rounds"] = parse_rounds(own["rounds"])
    if "baseline" in own:
        given["baseline"] = own["baseline"]
    if "paired" in own:
        if own["paired"] not in ("true", "false"):
            raise ConfigError(f"paired={own['paired']}: must be true or false")
        given["paired"] = own["paired"] == "true"
    return Options(**given)


def graded(arguments: list[str]) -> tuple[Grader | None, list[str]]:
    """What `benchmark=` and its options ask for, and the other arguments. Raises `ConfigError`, `BenchmarkError`."""
    from hsdkit.evaluation.options import build_benchmark, split_options
    from hsdkit.evaluation.selection import select
    from hsdkit.plugins import plugins
    from hsdkit.study.grading import Grader

    if not any(a.startswith("benchmark=") for a in arguments):
        return None, arguments
    options, rest = split_options(arguments)
    benchmark, composed = build_benchmark(options, plugins())
    items = select(benchmark.items(), options.subset, options.limit)
    return Grader(benchmark, tuple(items), composed), rest


def planned(overrides: list[str], inputs: list[str]) -> tuple[Plan, str]:
    """The plan, and the study's name ("" for none). Raises `ConfigError` when there is nothing to go through."""
    from hsdkit.config_layers import override_layer, study_axes, study_note
    from hsdkit.study.axes import read_axes
    from hsdkit.study.plan import Plan, make_plan

    experiment = next((a for a in override_layer(overrides) if a.key == "experiment"), None)
    several = experiment is not None and "," in str(experiment.value)
    study = {} if several else study_axes(experiment)
    name = str(experiment.value) if experiment and study else ""
    fixed, axes = read_axes(overrides, study)
    if not axes:
        no_study = f"experiment={experiment.value} has settings and no axis; " if experiment else ""
        raise ConfigError(
            f"{no_study}nothing to go through: give an option several values, such as verifier.tau=0.75,1, or name a "
            f"study: experiment={' or '.join(studies())}"
        )
    if not any(o.startswith("output=") for o in fixed):
        fixed.append(f"output=out/{Path(name).stem or 'sweep'}")
    plan = make_plan(["reuse_drafts=false", *fixed], axes, inputs)
    return Plan(plan.axes, plan.cells, tuple(n for n in plan.notes if n != study_note(name))), name


def studies() -> list[str]:
    """Names of the shipped experiments that are studies."""
    from hsdkit.config_layers import experiments, override_layer, study_axes

    return [name for name in experiments() if study_axes(override_layer([f"experiment={name}"])[0])]


def _paths(plan: Plan) -> list[Path]:
    from hsdkit.documents import NO_INPUT, find_inputs

    if not plan.first.input:
        raise ConfigError(NO_INPUT)
    return find_inputs(plan.first.input)


def _without_password(arguments: list[str]) -> list[str]:
    return [a for a in arguments if not a.startswith("password=")]


def _show(store: Store, records: list[CellRecord]) -> None:
    from hsdkit.cli.study_output import print_table

    print_table(console.console(sys.stdout), store.about()["axes"], records)
    console.console().print(
        f"written: {plain(str(store.folder))}; tables and plots: [cyan]hsdkit report {plain(str(store.folder))}[/]",
        soft_wrap=True,
    )


class Progress:
    """A line a cell with the time left; on a terminal also what is being measured now."""

    def __init__(self, out: Console) -> None:
        self.out = out
        self._status: Status | None = out.status("starting") if out.is_terminal else None
        self._at = ""

    def begin(self, sweep: Sweep) -> None:
        total, left = len(sweep.keys), len(sweep.todo())
        done = f", {total - left} of them done before" if left < total else ""
        pages = f"{console.count(len(sweep.sources), 'document')}, {console.count(sweep.options.rounds, 'round')}"
        self.out.print(f"{console.count(total, 'cell')}{done}; {pages}")

    def cell(self, at: dict[str, str]) -> None:
        self._at = " ".join(f"{k}={v}" for k, v in at.items())

    def turn(self, what: str, round_: int, document: str, page: int) -> None:
        if self._status:
            where = f"round {round_ + 1}, {Path(document).name}, page {page}"
            name = "plain decoding, for all cells to be compared with" if what == "baseline" else self._at
            self._status.update(plain(f"{name}: {where}"))

    def finished(self, record: CellRecord, done: int, total: int, left: float | None) -> None:
        from hsdkit.cli.study_output import cell_line

        about = f", about {duration(left)} left" if left is not None else ""
        self.out.print(f"[{done}/{total}] {plain(self._at)}: {cell_line(record)}{about}", soft_wrap=True)

    def __enter__(self) -> Progress:
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._status:
            self._status.stop()
