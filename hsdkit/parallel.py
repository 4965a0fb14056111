"""Many pages through one pipeline: tasks in, results out as they are ready."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from hsdkit.documents import Document, Page
from hsdkit.errors import DocumentError
from hsdkit.pipeline import Pipeline
from hsdkit.preparing.page import PageTask
from hsdkit.results import PageResult

__all__ = ["OnTask", "OnTaskText", "PageTask", "parse_pages"]

#: Called with each finished page while its image is in memory; the page is None when it could not be read.
OnTask = Callable[[PageTask, Page | None, PageResult], None]
#: Called with each piece of text as a page's text grows.
OnTaskText = Callable[[PageTask, str], None]


def parse_pages(
    pipeline: Pipeline,
    tasks: Iterable[PageTask],
    *,
    on_page: OnTask | None = None,
    on_text: OnTaskText | None = None,
) -> Iterator[tuple[PageTask, PageResult]]:
    """Parse the pages of any documents; results come as they are ready.

    Tasks are taken from the iterator only as there is room for them, so it may be endless and may wait. Whatever is
    wrong with a page or its file is the page's `error`; only what would fail every page alike is raised (`ConfigError`,
    `PluginError`, `TargetError`).
    """
    opened: Document | None = None
    opened_as: Path | None = None
    try:
        for task in tasks:
            if opened_as != task.path:
                if opened is not None:
                    opened.close()
                opened, opened_as = None, None
                try:
                    opened = pipeline.open(task.path)
                except DocumentError as e:
                    result = PageResult(task.number, verifier=pipeline.verifier.name, error=str(e))
                    if on_page:
                        on_page(task, None, result)
                    yield task, result
                    continue
                opened_as = task.path
            assert opened is not None
            tell = (lambda _, text, task=task: on_text(task, text)) if on_text else None
            page, result = pipeline.page(opened, task.number, tell)
            if on_page:
                on_page(task, page, result)
            pipeline.tell_observers(str(task.path), result)
            yield task, result
    finally:
        if opened is not None:
            opened.close()
