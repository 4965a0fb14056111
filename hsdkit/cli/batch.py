"""`hsdkit run` as a job: what it shows, and how it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

from hsdkit.cli import console
from hsdkit.cli.display import Display, choose_display
from hsdkit.cli.inputs import all_inputs
from hsdkit.cli.interrupts import Interrupts
from hsdkit.cli.summary import MOST_FAILURES, Outcome, print_summary
from hsdkit.config import RunConfig
from hsdkit.documents import Document
from hsdkit.errors import HsdkitError, OutputError
from hsdkit.jobs import Job, Parse, Watcher, work
from hsdkit.parallel import PageTask, parse_pages
from hsdkit.pipeline import Pipeline
from hsdkit.results import PageResult

#: How the pages of a job are parsed; given the job, what shows it, and what raises once the user wants no more.
Parser = Callable[[Job, Display, Callable[[], None]], Parse]


@dataclass(frozen=True, slots=True)
class RunFlags:
    """What `hsdkit run` can be told beside the configuration."""

    stream: bool = False
    report: bool = False
    quiet: bool = False
    retry_failed: bool = False
    fresh: bool = False


def run_batch(config: RunConfig, flags: RunFlags, parser: Callable[[Pipeline], Parser] | None = None) -> int:
    """Parse all inputs; returns the exit code. Raises `HsdkitError` when nothing can be parsed at all."""
    if flags.stream:  # texts of pages read at the same time would be mixed up
        config = replace(config, concurrency=1)
    outcome = Outcome(folder=Path(config.output))
    pipeline = Pipeline(config)
    display = choose_display(stream=flags.stream, quiet=flags.quiet)
    interrupts = Interrupts()
    watcher = _Shown(display, outcome)
    named_in_vain: list[str] = []
    inputs = all_inputs(config.input, named_in_vain)
    first = next(inputs, None)
    if first is None:  # no folder is made for nothing
        display.close()
        return 1
    try:
        with (
            interrupts,
            Job.open(
                Path(config.output),
                config,
                chain([first], inputs),
                retry_failed=flags.retry_failed,
                fresh=flags.fresh,
                reopen=partial(_reopen, pipeline) if flags.report else None,
                watcher=watcher,
            ) as job,
        ):
            watcher.job = job
            try:
                _parse_all(job, (parser or _here)(pipeline), display, interrupts)
            except KeyboardInterrupt:
                outcome.interrupted = interrupts.received or signal.SIGINT
            finally:
                _conclude(job, outcome, named_in_vain)
    except KeyboardInterrupt:  # before the first page, or once more while the rest was written
        outcome.interrupted = interrupts.received or signal.SIGINT
    finally:
        display.close()
    if not flags.quiet:
        print_summary(console.console(), pipeline, outcome)
    return outcome.exit_code


def _reopen(pipeline: Pipeline, path: Path, pages: str | None, password: str | None) -> Document:
    return pipeline.open(path, pages=pages, password=password)


def _parse_all(job: Job, parser: Parser, display: Display, interrupts: Interrupts) -> None:
    def on_result(task: PageTask, result: PageResult) -> None:
        display.page(task.path.name, result, job.progress)

    try:
        work(job, parser(job, display, interrupts.check), on_result=on_result, check=interrupts.check)
    except KeyboardInterrupt:
        job.interrupt(lambda pages: f"interrupted after {console.count(pages, 'page')}")
        raise
    except OutputError:  # what there is could not be written either
        raise
    except HsdkitError as e:  # it would fail every page alike
        reason = str(e)
        job.interrupt(lambda pages: reason)
        raise


def _here(pipeline: Pipeline) -> Parser:
    """Parse in this process."""

    def parser(job: Job, display: Display, check: Callable[[], None]) -> Parse:
        def on_text(task: PageTask, text: str) -> None:
            check()
            display.on_text(text)

        def parse(tasks: Iterator[PageTask]) -> Iterator[tuple[PageTask, PageResult]]:
            display.status(f"loading {pipeline.config.target.name}")
            with closing(parse_pages(pipeline, tasks, on_text=on_text)) as results:
                for finished in results:
                    job.versions = job.versions or pipeline.versions()
                    yield finished

        return parse

    return parser


def _conclude(job: Job, outcome: Outcome, named_in_vain: Sequence[str]) -> None:
    """What the run has come to, for its summary and its exit code."""
    outcome.progress = job.progress
    with suppress(OutputError):
        reasons = (f.error for f in job.failures())
        first = [*named_in_vain, *job.progress.troubles, *islice(reasons, MOST_FAILURES)]
        outcome.failures = first[:MOST_FAILURES]
        outcome.failed = len(named_in_vain) + len(job.progress.troubles) + job.count_failures()
    try:
        outcome.list_of_failures = job.write_failures()
    except OutputError as e:
        console.error(str(e))
        outcome.failed += 1


class _Shown(Watcher):
    """Passes on to the display what happens to documents."""

    def __init__(self, display: Display, outcome: Outcome) -> None:
        self._display, self._outcome = display, outcome
        self.job: Job | None = None

    def planned(self, path: Path, pages: int, kept: int) -> None:
        self._moved()

    def closed(self, path: Path) -> None:
        self._moved()

    def failed(self, reason: str) -> None:
        self._display.failure(reason)

    def written(self, paths: Sequence[Path]) -> None:
        self._outcome.add_written(paths)

    def _moved(self) -> None:
        if self.job is not None:
            self._display.moved(self.job.progress)
