"""`hsdkit eval`: a run measured on a benchmark, its quality and what it cost."""

from __future__ import annotations

import signal
from typing import Annotated

import typer

from hsdkit.cli import console
from hsdkit.cli.run import split_arguments
from hsdkit.errors import ConfigError

HELP = """Measure a run on a benchmark: quality by its official rules, and beside it what the same pages cost.

Writes results.jsonl (a line a page), summary.json and predictions/ in the
layout of the official evaluator. Started again with the same output folder it
goes on where it stopped, and runs pages that failed once more.

[bold]Its own options[/]

  benchmark=NAME      omnidocbench, olmocr_bench, ocean_ocr or a plugin's;
                      its options are benchmark.OPTION=VALUE
  path=PATH           its ground truth, in the official format
  limit=N             so many pages, spread evenly, the same every time
  subset=NAME,...     only pages of these groups: newspaper, language=english
  baseline=VERIFIER   a second verifier on the same pages and loaded model,
                      for speedups: autoregressive is plain decoding

[bold]Examples[/]

  hsdkit eval benchmark=omnidocbench path=OmniDocBench/ target=dots_ocr
  hsdkit eval benchmark=ocean_ocr path=OCR_eval_data subset=english limit=20
  hsdkit eval benchmark=olmocr_bench path=bench_data baseline=autoregressive
  hsdkit eval benchmark=omnidocbench path=gt.json verifier.tau=0.75

[bold]Exit code[/]  0: all pages measured; 1: some failed (they count as empty);
2: usage; 130: Ctrl-C (143: SIGTERM), with what was measured."""


def evaluate(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            show_default=False,
            help="benchmark=, path=, limit=, subset=, baseline=, and options as for `hsdkit run`.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and the tables only.")] = False,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    console.set_up(debug)
    raise typer.Exit(run_eval(arguments or [], quiet))


evaluate.__doc__ = HELP


def run_eval(arguments: list[str], quiet: bool) -> int:
    """Measure, write the results, print the tables to stdout; returns the exit code."""
    from pathlib import Path

    from hsdkit.cli.eval_output import Progress, print_summary, write_outputs
    from hsdkit.cli.interrupts import Interrupts
    from hsdkit.config import compose
    from hsdkit.evaluation.options import build_benchmark, split_options, with_verifier
    from hsdkit.evaluation.run import pipelines, run
    from hsdkit.evaluation.selection import select, some_are_there
    from hsdkit.evaluation.store import Store
    from hsdkit.evaluation.summary import summarise
    from hsdkit.files import make_folder
    from hsdkit.plugins import plugins
    from hsdkit.study.fingerprint import contents, input_digests, truth_digest

    options, rest = split_options(arguments)
    overrides, inputs = split_arguments(rest)
    if inputs:
        raise ConfigError(f"{inputs[0]!r}: the pages to run are the benchmark's, named by path=; options are KEY=VALUE")
    overrides = ["reuse_drafts=false", *overrides]  # drafting is part of what is measured
    registry = plugins()
    benchmark, composed = build_benchmark(options, registry)
    config = compose(overrides, registry=registry)
    if config.input or config.pages:
        raise ConfigError(
            "input= and pages= are not for an evaluation: the pages are the benchmark's; limit= and subset="
        )
    configs = {config.verifier.name: config}
    if options.baseline == config.verifier.name:
        raise ConfigError(f"baseline={options.baseline}: is the verifier that is measured; choose another verifier=")
    if options.baseline:
        configs[options.baseline] = with_verifier(config, options.baseline, overrides, registry)
    for note in config.notes:
        console.warn(note)
    items = select(benchmark.items(), options.subset, options.limit)
    some_are_there(items, composed)
    folder = Path(config.output)
    make_folder(folder)
    sides = pipelines(configs, registry)
    measured = {"benchmark": {"name": benchmark.name, "edition": benchmark.edition} | composed}
    settings = {name: {k: v for k, v in c.settings().items() if k != "output"} for name, c in configs.items()}
    interrupts, progress, interrupted = Interrupts(), Progress(quiet), False
    files = {"ground truth": truth_digest(composed), **contents(settings)}
    head = {"evaluation": measured | {"sides": settings, "contents": files}}
    with Store(folder, head) as store:
        waiting = any(item.key not in store.records for item in items)
        try:
            with interrupts:
                if waiting:
                    sides[config.verifier.name].load()
                run(benchmark, items, sides, store, progress.record, interrupts.check)
        except KeyboardInterrupt:
            interrupted = True
    records = [store.records[item.key] for item in items if item.key in store.records]
    summary = summarise(benchmark, records, options.baseline)
    made_with = sides[config.verifier.name].versions() if waiting and records else None
    digests = input_digests(dict.fromkeys(item.document for item in items))
    written = write_outputs(folder, benchmark, items, records, head["evaluation"], summary, made_with, digests)
    print_summary(benchmark, summary, len(items))
    for path in (store.path, *written):
        console.console().print(f"written: {path}", soft_wrap=True)
    if interrupted:
        console.error("interrupted: the figures are those of the pages before; the same command goes on from there")
        return 128 + (interrupts.received or signal.SIGINT)
    return 1 if summary["failed"] else 0
