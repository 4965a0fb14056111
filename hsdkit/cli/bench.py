"""`hsdkit bench`: verifiers against each other on your documents, measured so that the ratio can be trusted."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsdkit.cli import console
from hsdkit.cli.interrupts import Interrupts
from hsdkit.cli.run import split_arguments
from hsdkit.errors import ConfigError, DocumentError, PluginError

if TYPE_CHECKING:
    from hsdkit.bench import PageFailure, Side
    from hsdkit.bench.measure import OnTurn
    from hsdkit.config import RunConfig
    from hsdkit.documents import Document
    from hsdkit.pipeline import Pipeline

BASELINE = "autoregressive"
DEFAULT_ROUNDS = 5

HELP = """Measure verifiers against each other on documents: same pages, same loaded model, in turn, several rounds.

Rendering and drafting are made anew each round and are part of the time
end to end. All outputs are compared with those of the first side, token for
token. Then once more with several pages in flight, for pages a second: both
figures matter, and batching leaves less to gain. Writes bench.json into the
output folder.

[bold]Its own options[/]

  verifiers=A,B,...  what to measure, the baseline first; `generate` is
                     plain transformers.generate on the same model (none
                     with engine=vllm)
                     [dim](autoregressive,generate and the configured one)[/]
  rounds=N           [dim](5)[/]

`concurrency=N` is how many pages are in flight for the second table [dim](8)[/]; 1
leaves it out, as does an engine that decodes one page at a time.

[bold]Examples[/]

  hsdkit bench report.pdf drafter=pdftext
  hsdkit bench verifiers=autoregressive,page,hsd rounds=3 pages=1-4 scans/
  hsdkit bench draft=always drafter=rapidocr scan.png  [dim]though it may not pay[/]

[bold]Exit code[/]  0: all pages measured; 1: some failed and are left out; 2: usage;
130: Ctrl-C (143: SIGTERM), with what was measured."""


def bench(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE|FILE",
            show_default=False,
            help="Options as for `hsdkit run`, verifiers= and rounds=, and the documents.",
        ),
    ] = None,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    console.set_up(debug)
    own, rest = split_own(arguments or [])
    overrides, inputs = split_arguments(rest)
    raise typer.Exit(run_bench(own, overrides, inputs))


bench.__doc__ = HELP


def split_own(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options that only `bench` has, and the other arguments."""
    found = {k: v for k, _, v in (a.partition("=") for a in arguments) if k in ("verifiers", "rounds")}
    return found, [a for a in arguments if not re.match(r"(verifiers|rounds)=", a)]


def run_bench(own: dict[str, str], overrides: list[str], inputs: list[str]) -> int:
    """Measure, print the table to stdout, write bench.json; returns the exit code."""
    from hsdkit.bench import GENERATE, check_measurable, measure, summarise
    from hsdkit.cli.bench_output import print_result, write_json
    from hsdkit.cli.bench_saturated import measure_saturated
    from hsdkit.config import compose
    from hsdkit.documents import NO_INPUT, find_inputs
    from hsdkit.study.fingerprint import input_digests
    from hsdkit.versions import versions

    for given in overrides:
        if given.startswith("verifier=") and "," in given:
            raise ConfigError(
                f"{given}: a run has one verifier; to measure several write {given.replace('r=', 'rs=', 1)}"
            )
    rounds = parse_rounds(own.get("rounds", str(DEFAULT_ROUNDS)))
    overrides = ["reuse_drafts=false", *overrides]  # drafting is part of what is measured
    configured = compose(overrides, inputs=inputs)
    check_measurable(configured)
    names = parse_verifiers(own.get("verifiers"), configured.verifier.name, configured.engine.name)
    configs = {name: _with_verifier(overrides, inputs, name, configured) for name in names if name != GENERATE}
    if not configured.input:
        raise ConfigError(NO_INPUT)
    paths = find_inputs(configured.input)
    for note in configured.notes:
        console.warn(note)
    pipeline, sides = build_sides(names, configs, configured)
    interrupts = Interrupts()
    try:
        with interrupts, ExitStack() as stack:
            documents, unopened = _open(pipeline, paths, stack)
            if documents:
                pipeline.load()
            with _progress(documents, rounds) as on_turn:
                result = measure(documents, sides, pipeline.draft, pipeline.target, rounds, on_turn, interrupts.check)
            saturation = None
            if result.samples and not result.interrupted:
                try:
                    saturation = measure_saturated(pipeline, configs, documents, result, names[0], rounds)
                except KeyboardInterrupt:  # what is measured stays
                    result = replace(result, interrupted=True)
    except KeyboardInterrupt:
        console.error("interrupted before anything was measured")
        return 128 + (interrupts.received or signal.SIGINT)
    more = saturation.failures if saturation else ()
    result = replace(
        result,
        failures=(*unopened, *result.failures, *more),
        interrupted=result.interrupted or (saturation is not None and saturation.interrupted),
    )
    summaries = summarise(result.samples, references(names))
    print_result(console.console(sys.stdout), result, summaries, names[0], saturation)
    made_with = pipeline.versions() if documents else versions(None)
    folder, digests = Path(configured.output), input_digests(paths)
    path = write_json(folder, result, summaries, configured.settings(), made_with, digests, saturation)
    console.console().print(f"written: {path}", soft_wrap=True)
    if result.interrupted:
        console.error("interrupted: the figures are those of the turns before")
        return 128 + (interrupts.received or signal.SIGINT)
    return 1 if result.failures else 0


def _open(pipeline: Pipeline, paths: list[Path], stack: ExitStack) -> tuple[list[Document], list[PageFailure]]:
    from hsdkit.bench import PageFailure

    documents, failures = [], []
    for path in paths:
        try:
            documents.append(stack.enter_context(pipeline.open(path)))
        except DocumentError as e:
            failures.append(PageFailure(str(path), None, "document", str(e)))
    return documents, failures


def parse_rounds(given: str) -> int:
    if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= 1000:
        raise ConfigError(f"rounds={given}: must be a number from 1 to 1000")
    return int(given)


def parse_verifiers(given: str | None, configured: str, engine: str) -> list[str]:
    """Sides in order, each once; the first is the baseline. Without `generate` where the engine has a model of its own:
    the target's would be loaded a second time, and is compared in other arithmetic.

    Raises `ConfigError` when there is nothing to compare, and when `generate` is asked for where it cannot be.
    """
    from hsdkit.bench import GENERATE
    from hsdkit.plugins import plugins

    elsewhere = hasattr(plugins().component("engine", engine).factory, "facts")  # see `Engine`
    plain = [BASELINE] if elsewhere else [BASELINE, GENERATE]
    wanted = [*plain, configured] if given is None else given.split(",")
    names = list(dict.fromkeys(name.strip() for name in wanted if name.strip()))
    if elsewhere and GENERATE in names:
        raise ConfigError(f"verifiers={given}: engine={engine} has the model elsewhere; leave {GENERATE} out")
    if len(names) < 2:
        said = f"verifiers={given}" if given is not None else f"verifier={configured}"
        raise ConfigError(f"{said}: name at least two, the baseline first, such as verifiers={BASELINE},hsd")
    return names


def references(names: list[str]) -> list[str]:
    """The sides that others are compared with: the baseline, and plain `generate` where it is measured."""
    from hsdkit.bench import GENERATE

    return list(dict.fromkeys([names[0], *(n for n in names if n == GENERATE)]))


def _with_verifier(overrides: list[str], inputs: list[str], name: str, configured: RunConfig) -> RunConfig:
    """The run with another verifier. Options of the configured one (`verifier.tau=`) hold for every verifier that has
    them."""
    from hsdkit.config import compose
    from hsdkit.plugins import plugins

    if name == configured.verifier.name:
        return configured
    try:
        known = {f.name for f in fields(plugins().component("verifier", name).config)}
    except PluginError as e:
        raise ConfigError(f"verifiers=: {e}") from None
    kept = [a for a in overrides if not (m := re.match(r"verifier\.(\w+)", a)) or m[1] in known]
    return compose([a for a in kept if not a.startswith("verifier=")] + [f"verifier={name}"], inputs=inputs)


def build_sides(names: list[str], configs: dict[str, RunConfig], configured: RunConfig) -> tuple[Pipeline, list[Side]]:
    """All sides on one target and engine, and the pipeline that holds them and makes the drafts; nothing is loaded."""
    from hsdkit.bench import GENERATE, GenerateSide, VerifierSide
    from hsdkit.pipeline import Pipeline
    from hsdkit.plugins import plugins

    verifiers = {n: plugins().build("verifier", n, c.verifier.options) for n, c in configs.items()}
    drafting = next((n for n, v in verifiers.items() if v.uses_draft), None)
    pipeline = Pipeline(configs[drafting] if drafting else configured)
    settings = next((v.settings for v in verifiers.values()), pipeline.verifier.settings)
    sides: list[Side] = []
    for name in names:
        if name == GENERATE:
            sides.append(GenerateSide(pipeline.target, settings))
        else:
            sides.append(VerifierSide(name, verifiers[name], pipeline.target, pipeline.engine))
    return pipeline, sides


@contextmanager
def _progress(documents: list[Document], rounds: int) -> Iterator[OnTurn]:
    """A bar on a terminal, a line a round elsewhere."""
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    out = console.console()
    turns = rounds * sum(map(len, documents))
    if not out.is_terminal:
        said: set[int] = set()

        def say(round_: int, name: str, number: int) -> None:
            if round_ not in said:
                said.add(round_)
                out.print(f"round {round_ + 1} of {rounds}")

        yield say
        return
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeRemainingColumn()
    with Progress(*columns, console=out, transient=True) as bar:
        task = bar.add_task("warming up", total=turns)
        begun = False

        def show(round_: int, name: str, number: int) -> None:
            nonlocal begun
            bar.update(task, advance=int(begun), description=f"round {round_ + 1} of {rounds}: {name}, page {number}")
            begun = True

        yield show
