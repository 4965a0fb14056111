"""The loop over the pages of a benchmark: every side parses each page, and it is measured at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hsdkit.benchmarks import Benchmark, Item, figures_of
from hsdkit.config import RunConfig
from hsdkit.errors import DocumentError, cause
from hsdkit.evaluation.record import Record, SideRecord
from hsdkit.evaluation.store import Store
from hsdkit.pipeline import Pipeline
from hsdkit.plugins import Plugins
from hsdkit.results import PageResult

log = logging.getLogger(__name__)

#: Called after each page with (its record, pages done, pages in all).
OnRecord = Callable[[Record, int, int], None]


def pipelines(configs: Mapping[str, RunConfig], registry: Plugins) -> dict[str, Pipeline]:
    """One pipeline a side, by its name, all on one model and drafter. Loads no model yet."""
    (name, config), *others = configs.items()
    first = Pipeline(config, registry=registry)
    if others:
        _ = first.engine, first.drafter  # built, they are shared
    return {name: first} | {other: first.with_config(config) for other, config in others}


def run(
    benchmark: Benchmark,
    items: Sequence[Item],
    sides: Mapping[str, Pipeline],
    store: Store,
    on_record: OnRecord | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Run what the store does not hold yet.

    Where there are several sides, the first page is parsed by each once before anything counts, and they take turns at
    being the first. Whatever fails on a page is in its record. `check` is called between pages and may raise
    KeyboardInterrupt; all pages before are in the store then.
    """
    waiting = [item for item in items if item.key not in store.records]
    done = len(items) - len(waiting)
    names = list(sides)
    if waiting and len(sides) > 1:
        for name in names:
            _parsed(sides[name], waiting[0])
            check()
    for turn, item in enumerate(waiting):
        check()
        first = turn % len(names)
        results = {name: _parsed(sides[name], item) for name in names[first:] + names[:first]}
        check()  # a swallowed interrupt makes a page fail
        record = Record.of(item, {name: _measured(benchmark, item, results[name]) for name in names})
        store.add(record)
        if on_record:
            on_record(record, done + turn + 1, len(items))


def _parsed(pipeline: Pipeline, item: Item) -> PageResult:
    try:
        with pipeline.open(item.document, pages=str(item.page)) as document:
            return next(iter(pipeline.run(document)))
    except DocumentError as e:
        log.debug("%s cannot be opened", item.document, exc_info=True)
        verifier = pipeline.verifier
        return PageResult(item.page, verifier=verifier.name, tau=verifier.settings.tau, error=str(e))


def _measured(benchmark: Benchmark, item: Item, page: PageResult) -> SideRecord:
    """A page that failed is measured as an empty one, as official evaluators do with a file that is there and empty.
    One that has the drafter's text has failed: no model has read it."""
    if page.origin == "draft":
        page = replace(
            page, markdown="", text="", error=f"{item.key}: not read: on_failure put the drafter's text there"
        )
    try:
        measured = benchmark.measure(item, "" if page.error else page.markdown)
        return SideRecord(page, measured, figures=figures_of(benchmark, [measured]))
    except Exception as e:  # a metric may do anything with what a model writes
        log.debug("%s cannot be measured", item.key, exc_info=True)
        return SideRecord(page, None, f"{item.key}: cannot be measured: {cause(e)}")
