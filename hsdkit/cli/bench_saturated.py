"""The second regime of `hsdkit bench`: every verifier with several pages in flight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from hsdkit.bench import BenchResult, Saturation, saturate
from hsdkit.cli import console
from hsdkit.config import RunConfig
from hsdkit.documents import Document
from hsdkit.parallel import FEW_PAGES, PageParser
from hsdkit.pipeline import Pipeline
from hsdkit.preparing.page import PageTask
from hsdkit.results import PageResult

#: Pages in flight where the run does not say how many.
DEFAULT_CONCURRENCY = 8


def measure_saturated(
    pipeline: Pipeline,
    configs: dict[str, RunConfig],
    documents: Sequence[Document],
    alone: BenchResult,
    baseline: str,
    rounds: int,
) -> Saturation | None:
    """The verifiers of `configs` on the pages that came out in `alone`, with whose outputs of `baseline` theirs are
    compared. None where there is nothing to measure: fewer than two pages, in flight or at all, or an engine that
    decodes one page at a time."""
    failed = {(f.document, f.page) for f in alone.failures}
    tasks = [PageTask(d.path, n) for d in documents for n in d.numbers if (str(d.path), n) not in failed]
    wanted = pipeline.config.concurrency
    concurrency = min(DEFAULT_CONCURRENCY if wanted == "auto" else int(wanted), len(tasks))
    if concurrency < 2 or getattr(pipeline.engine, "pages_at_once", None) is None:
        return None
    expected = {(s.document, s.page): s.output.tokens for s in alone.samples if s.side == baseline}
    with ExitStack() as stack:

        def side(config: RunConfig) -> Callable[[Sequence[PageTask]], list[tuple[PageTask, PageResult]]]:
            own = pipeline.with_config(replace(config, concurrency=concurrency))
            preparing = 0 if len(tasks) <= FEW_PAGES and config.preparing == "auto" else None
            parser = stack.enter_context(PageParser(own, preparing=preparing))

            def parse(given: Sequence[PageTask]) -> list[tuple[PageTask, PageResult]]:
                under_way = [(task, parser.submit(task)) for task in given]
                return [(task, future.result()[1]) for task, future in under_way]

            return parse

        sides = {name: side(config) for name, config in configs.items()}
        return saturate(sides, tasks, concurrency, rounds, expected, _say(concurrency, rounds))


def _say(concurrency: int, rounds: int) -> Callable[[int, str], None]:
    said: set[int] = set()

    def say(round_: int, side: str) -> None:
        if round_ not in said:
            said.add(round_)
            console.console().print(f"{concurrency} pages in flight: round {round_ + 1} of {rounds}")

    return say
