"""The loop of a job: claim, parse, keep; wait for other processes; claim what dead ones left."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from itertools import chain

from hsdkit.jobs.job import Job
from hsdkit.parallel import PageTask
from hsdkit.results import PageResult

#: Parses pages; results come in any order. `functools.partial(parse_pages, pipeline)` is one.
Parse = Callable[[Iterator[PageTask]], Iterator[tuple[PageTask, PageResult]]]
#: Called with each result when it is on disk.
OnResult = Callable[[PageTask, PageResult], None]


def work(
    job: Job, parse: Parse, *, on_result: OnResult | None = None, check: Callable[[], None] = lambda: None
) -> None:
    """Parse what is to be parsed, until the whole job is finished, the pages of other processes included.

    `parse` is not called when there is no page for it, so that it may load a model. `check` is called often and may
    raise; a failed page is thrown away when it does, as it may have failed of what `check` reports.
    """
    while True:
        tasks = job.tasks()
        if (first := next(tasks, None)) is not None:
            results = parse(chain([first], tasks))
            with contextlib.ExitStack() as stack:
                if close := getattr(results, "close", None):
                    stack.callback(close)
                for task, result in results:
                    if result.error:
                        check()
                    if job.finish(task, result) and on_result:
                        on_result(task, result)
                    check()
        if not job.wait(check):
            return
