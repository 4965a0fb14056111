"""Many pages through one pipeline: tasks in, results out as they are ready.

A page is prepared (opened, rendered, drafted), in this process or in one of a few apart, and then decoded. Several may
be decoded at a time, each by a thread whose requests share the engine's forward passes. A page that waits for its turn
holds one image; how many pages are on their way is bounded, whatever the number of tasks.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from types import TracebackType

from hsdkit.documents import Page
from hsdkit.errors import ConfigError
from hsdkit.pipeline import Pipeline
from hsdkit.preparing.local import Local
from hsdkit.preparing.page import PageTask, Prepared
from hsdkit.preparing.pool import Preparers, fitting_processes
from hsdkit.preparing.process import Bounds, ProcessPreparer
from hsdkit.results import PageResult

__all__ = ["OnTask", "OnTaskText", "PageParser", "PageTask", "Stopped", "parse_pages"]

#: Called with each finished page while its image is in memory; the page is None when it could not be read.
OnTask = Callable[[PageTask, Page | None, PageResult], None]
#: Called with each piece of text as a page's text grows.
OnTaskText = Callable[[PageTask, str], None]

OnDone = Callable[[Page | None, PageResult], None]

#: `preparing=auto` starts no process for so few pages: it would take longer than it saves.
FEW_PAGES = 4

#: Pages on their way for each process that prepares them, besides those being decoded: one under way, one ready.
_AHEAD = 2

#: Seconds after which an iterator that had no task to give is asked again.
_ASK_AGAIN = 0.05


class Stopped(BaseException):
    """Raised in an `on_text` to end the page. No `Exception`: nobody may take it for a failure and try again."""


class PageParser:
    """Parses pages of any documents, several at once; for services, whose pages come from many sides. Others use
    `parse_pages`.

        with PageParser(pipeline) as parser:
            page, result = parser.submit(PageTask(path, 1)).result()

    Starts the processes that prepare pages and loads the model when it is made; `preparing` is by default the run's.
    Leaving the block ends all processes at once, and the threads as soon as their page has its next token; futures of
    pages that were not finished are cancelled or raise. Whatever is wrong with a page or its file is the result's
    `error`; the constructor and futures raise `ConfigError`, `PluginError` or `TargetError` for what would fail every
    page alike.
    """

    def __init__(self, pipeline: Pipeline, *, preparing: int | str | None = None) -> None:
        config = pipeline.config
        wanted = config.preparing if preparing is None else preparing
        processes = _processes(pipeline) if wanted == "auto" else int(wanted)
        self.pipeline = pipeline
        self._closed = threading.Event()
        self._preparers = Preparers()
        self._threads: ThreadPoolExecutor | None = None
        try:
            if processes:  # they load their drafters while the model is loaded here
                recipe, bounds = pipeline.recipe, Bounds(config.page_memory, config.prepare_seconds)
                for _ in range(processes):
                    self._preparers.add(ProcessPreparer(recipe, bounds))
            pipeline.load(drafter=not processes)
            if not processes:
                self._preparers.add(Local(pipeline.opening, pipeline.used_drafter))
            self.concurrency = _concurrency(pipeline)
            if self.concurrency > 1:
                pipeline.load_for_threads()
        except BaseException:
            self._preparers.close()
            raise
        self._decoding = threading.Semaphore(self.concurrency)
        #: Pages in hand at a time, each with at most one image.
        self.capacity = self.concurrency + _AHEAD * processes

    @property
    def serial(self) -> bool:
        """Whether pages are parsed one after the other, in this process alone."""
        return self.capacity == 1

    def submit(
        self, task: PageTask, on_text: Callable[[str], None] | None = None
    ) -> Future[tuple[Page | None, PageResult]]:
        """The page's image (None when it could not be read) and its result, as soon as there is room for it.

        `on_text` is called with each piece of text, in a thread of this parser; raising `Stopped` there ends the page,
        and its future raises that.
        """
        return self.begin(task, on_text)

    def begin(
        self, task: PageTask, on_text: Callable[[str], None] | None, on_done: OnDone | None = None
    ) -> Future[tuple[Page | None, PageResult]]:
        """As `submit`, with the `on_done` of `parse`."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.capacity, "hsdkit-page")
        return self._threads.submit(self.parse, task, on_text, on_done)

    def parse(
        self, task: PageTask, on_text: Callable[[str], None] | None = None, on_done: OnDone | None = None
    ) -> tuple[Page | None, PageResult]:
        """As `submit`, but in the calling thread. `on_done` is called before another page is decoded in this one's
        place."""
        prepared = self._preparers.prepare(task, self.pipeline.ask_cost)
        with self._decoding:

            def tell(_: int, text: str) -> None:
                self._go_on()
                if on_text is not None:
                    on_text(text)

            self._go_on()
            page, result = self.pipeline.decode_page(prepared, task.path.name, tell)
            if on_done is not None:
                on_done(page, result)
            return page, result

    def _go_on(self) -> None:
        if self._closed.is_set():
            raise Stopped("the parser was closed")

    def close(self) -> None:
        """End everything; waits for the threads."""
        self._closed.set()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
        self._preparers.close()
        if self._threads is not None:
            self._threads.shutdown()

    def __enter__(self) -> PageParser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


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
        for task, page, result in run(parser, chain(first, coming), on_text):
            if on_page:
                on_page(task, page, result)
            del page
            pipeline.tell_observers(str(task.path), result)
            yield task, result


_Finished = tuple[PageTask, Page | None, PageResult]


def _few(coming: Iterator[PageTask | None]) -> list[PageTask | None]:
    """The first tasks: one more than `FEW_PAGES` where there are so many, less where one has to be waited for."""
    first: list[PageTask | None] = []
    for task in coming:
        first.append(task)
        if task is None or len(first) > FEW_PAGES:
            break
    return first


def _serially(parser: PageParser, tasks: Iterable[PageTask | None], on_text: OnTaskText | None) -> Iterator[_Finished]:
    for task in tasks:
        if task is None:
            continue
        try:
            yield task, *parser.parse(task, partial(on_text, task) if on_text else None)
        except Stopped:
            yield task, None, _stopped(parser, task)


def _together(parser: PageParser, tasks: Iterable[PageTask | None], on_text: OnTaskText | None) -> Iterator[_Finished]:
    """The threads put what happens into a queue, and it is told in the thread that iterates."""
    happened: queue.SimpleQueue[tuple[_Begun, str | tuple[Page | None, PageResult] | BaseException]]
    happened = queue.SimpleQueue()

    def begin(task: PageTask) -> None:
        begun = _Begun(task)

        def text(piece: str) -> None:
            if begun.stopped:
                raise Stopped
            happened.put((begun, piece))

        def ended(future: Future[tuple[Page | None, PageResult]]) -> None:
            if not future.cancelled() and (error := future.exception()) is not None:
                happened.put((begun, error))

        # Put there before another page begins: its text comes after this one's result.
        done = lambda page, result: happened.put((begun, (page, result)))  # noqa: E731
        parser.begin(task, text if on_text else None, done).add_done_callback(ended)

    coming, under_way, more = iter(tasks), 0, True
    while more or under_way:
        idle = False
        while more and not idle and under_way < parser.capacity:
            try:
                task = next(coming)
            except StopIteration:
                more = False
                break
            if task is None:
                idle = True
            else:
                begin(task)
                under_way += 1
        if not idle and not under_way:
            return
        try:
            begun, what = happened.get(timeout=_ASK_AGAIN if idle else None)
        except queue.Empty:
            continue
        if isinstance(what, str):
            try:
                if on_text and not begun.stopped:
                    on_text(begun.task, what)
            except Stopped:
                begun.stopped = True
            continue
        under_way -= 1
        if isinstance(what, Stopped):
            what = None, _stopped(parser, begun.task)
        elif isinstance(what, BaseException):
            raise what
        page, result = what
        del what  # it holds the image
        yield begun.task, page, result


@dataclass(eq=False, slots=True)
class _Begun:
    """A page under way; `stopped` once the caller wants no more of it."""

    task: PageTask
    stopped: bool = False


def _stopped(parser: PageParser, task: PageTask) -> PageResult:
    return parser.pipeline.unread(Prepared(task.number, error=f"{task.path.name}, page {task.number}: stopped"))


def _processes(pipeline: Pipeline) -> int:
    """How many processes `preparing=auto` starts."""
    return fitting_processes() if pipeline.drafts_elsewhere else 0


def _concurrency(pipeline: Pipeline) -> int:
    """How many pages are decoded at a time."""
    wanted = pipeline.config.concurrency
    at_once = getattr(pipeline.engine, "pages_at_once", None)
    if wanted == "auto":
        return max(1, int(at_once or 1))
    if int(wanted) > 1 and at_once is None:
        name = pipeline.config.engine.name
        raise ConfigError(f"concurrency={wanted}: engine {name!r} decodes one page at a time; leave it at auto")
    return int(wanted)
