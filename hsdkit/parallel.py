"""Many pages through one pipeline: tasks in, results out as they are ready, in the thread of who asks."""

from __future__ import annotations

import queue
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import chain

from hsdkit.documents import Page
from hsdkit.page_parser import Outcome, PageParser, Stopped
from hsdkit.pipeline import Pipeline
from hsdkit.preparing.page import PageTask, Prepared
from hsdkit.results import PageResult

__all__ = ["OnTask", "OnTaskText", "PageParser", "PageTask", "Stopped", "parse_pages"]

#: Called with each finished page while its image is in memory; the page is None when it could not be read.
OnTask = Callable[[PageTask, Page | None, PageResult], None]
#: Called with each piece of text as a page's text grows.
OnTaskText = Callable[[PageTask, str], None]

#: `preparing=auto` starts no process for so few pages: it would take longer than it saves.
FEW_PAGES = 4

#: Seconds after which an iterator that had no task to give is asked again.
_ASK_AGAIN = 0.05


def parse_pages(
    pipeline: Pipeline,
    tasks: Iterable[PageTask | None],
    *,
    on_page: OnTask | None = None,
    on_text: OnTaskText | None = None,
) -> Generator[tuple[PageTask, PageResult], None, None]:
    """Parse the pages of any documents; results come as they are ready.

    Tasks are taken from the iterator only as there is room for them, so it may be endless. While it waits for tasks no
    result is handed on: where it may wait long it should give `None` instead, and is asked again a little later. It,
    `on_page`, `on_text` and observers run in the calling thread. An `on_text` that raises `Stopped` ends its page,
    whose error says so.

    Whatever is wrong with a page or its file is the page's `error`; only what would fail every page alike is raised
    (`ConfigError`, `PluginError`, `TargetError`). Closing the iterator (`contextlib.closing`) ends all that is under
    way; a loop that is left by an exception does not always do so by itself.
    """
    first: list[PageTask | None] = []
    coming, preparing = iter(tasks), pipeline.config.preparing
    if preparing == "auto":
        first = _few(coming)
        if len(first) <= FEW_PAGES and None not in first:
            preparing = 0
    with PageParser(pipeline, preparing=preparing) as parser:
        run = _serially if parser.serial else _together
        for task, (page, result) in run(parser, chain(first, coming), on_text):
            if on_page:
                on_page(task, page, result)
            del page
            pipeline.tell_observers(str(task.path), result)
            yield task, result


def _few(coming: Iterator[PageTask | None]) -> list[PageTask | None]:
    """The first tasks: one more than `FEW_PAGES` where there are so many, less where one has to be waited for."""
    first: list[PageTask | None] = []
    for task in coming:
        first.append(task)
        if task is None or len(first) > FEW_PAGES:
            break
    return first


def _serially(
    parser: PageParser, tasks: Iterable[PageTask | None], on_text: OnTaskText | None
) -> Iterator[tuple[PageTask, Outcome]]:
    for task in tasks:
        if task is None:
            continue
        try:
            yield task, parser.parse(task, partial(on_text, task) if on_text else None)
        except Stopped:
            yield task, _stopped(parser, task)


def _together(
    parser: PageParser, tasks: Iterable[PageTask | None], on_text: OnTaskText | None
) -> Iterator[tuple[PageTask, Outcome]]:
    under_way = _UnderWay(parser, listen=on_text is not None)
    coming, more = iter(tasks), True
    while more or under_way.count:
        idle = False
        while more and not idle and under_way.count < parser.capacity:
            try:
                task = next(coming)
            except StopIteration:
                more = False
            else:
                if task is None:
                    idle = True
                else:
                    under_way.begin(task)
        if not idle and not under_way.count:
            return
        try:
            begun, what = under_way.next(_ASK_AGAIN if idle else None)
        except queue.Empty:
            continue
        if not isinstance(what, str):
            yield begun.task, what
        elif on_text is not None and not begun.stopped:
            try:
                on_text(begun.task, what)
            except Stopped:
                begun.stopped = True


@dataclass(eq=False, slots=True)
class _Begun:
    """A page under way; `stopped` once the caller wants no more of it."""

    task: PageTask
    stopped: bool = False


class _UnderWay:
    """The pages that threads are at. These put what happens into a queue, to be told in the thread that iterates."""

    def __init__(self, parser: PageParser, listen: bool) -> None:
        self.count = 0
        self._parser, self._listen = parser, listen
        self._happened: queue.SimpleQueue[tuple[_Begun, str | Outcome | BaseException]] = queue.SimpleQueue()

    def begin(self, task: PageTask) -> None:
        begun = _Begun(task)

        def text(piece: str) -> None:
            if begun.stopped:
                raise Stopped
            self._happened.put((begun, piece))

        def done(outcome: Outcome) -> None:
            self._happened.put((begun, outcome))

        def ended(future: Future[Outcome]) -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                self._happened.put((begun, error))

        self.count += 1
        self._parser.begin(task, text if self._listen else None, done).add_done_callback(ended)

    def next(self, seconds: float | None) -> tuple[_Begun, str | Outcome]:
        """What happens next to one of them: more text, or its end. Raises `queue.Empty` when nothing does for so long,
        and what would fail every page."""
        begun, what = self._happened.get(timeout=seconds)
        if isinstance(what, str):
            return begun, what
        self.count -= 1
        if isinstance(what, Stopped):
            return begun, _stopped(self._parser, begun.task)
        if isinstance(what, BaseException):
            raise what
        return begun, what


def _stopped(parser: PageParser, task: PageTask) -> Outcome:
    return None, parser.pipeline.unread(Prepared(task.number, error=f"{task.path.name}, page {task.number}: stopped"))
