"""Pages parsed several at a time: what a run's processes and threads do with one page, from file to result.

A page is prepared (opened, rendered, drafted), in this process or in one of a few apart, and then decoded. Several may
be decoded at a time, each by a thread whose requests share the engine's forward passes. A page that waits for its turn
holds one image; how many pages are on their way is bounded, whatever the number of tasks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from hsdkit.documents import Page
from hsdkit.errors import ConfigError
from hsdkit.pipeline import Pipeline
from hsdkit.preparing.local import Local
from hsdkit.preparing.page import PageTask
from hsdkit.preparing.pool import Preparers, fitting_processes
from hsdkit.preparing.process import Bounds, ProcessPreparer
from hsdkit.results import PageResult

#: Called with each piece of a page's text.
OnPiece = Callable[[str], None]
#: A page's image (None when it could not be read) and its result.
Outcome = tuple[Page | None, PageResult]

#: Pages on their way for each process that prepares them, besides those being decoded: one under way, one ready.
AHEAD = 2


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
        self.capacity = self.concurrency + AHEAD * processes
        self._threads = ThreadPoolExecutor(self.capacity, "hsdkit-page")  # they are started as they are needed

    @property
    def serial(self) -> bool:
        """Whether pages are parsed one after the other, in this process alone."""
        return self.capacity == 1

    def submit(self, task: PageTask, on_text: OnPiece | None = None) -> Future[Outcome]:
        """The page's image and result, as soon as there is room for it.

        `on_text` is called with each piece of text, in a thread of this parser; raising `Stopped` there ends the page,
        and its future raises that.
        """
        return self.begin(task, on_text, None)

    def begin(
        self, task: PageTask, on_text: OnPiece | None, on_done: Callable[[Outcome], None] | None
    ) -> Future[Outcome]:
        """As `submit`; `on_done` is called before another page is decoded in this one's place."""
        return self._threads.submit(self.parse, task, on_text, on_done)

    def parse(
        self, task: PageTask, on_text: OnPiece | None = None, on_done: Callable[[Outcome], None] | None = None
    ) -> Outcome:
        """As `begin`, but in the calling thread."""
        prepared = self._preparers.prepare(task, self.pipeline.ask_cost)
        with self._decoding:

            def tell(_: int, text: str) -> None:
                self._go_on()
                if on_text is not None:
                    on_text(text)

            self._go_on()
            outcome = self.pipeline.decode_page(prepared, task.path.name, tell)
            if on_done is not None:
                on_done(outcome)
            return outcome

    def _go_on(self) -> None:
        if self._closed.is_set():
            raise Stopped("the parser was closed")

    def close(self) -> None:
        """End everything; waits for the threads."""
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._preparers.close()
        self._threads.shutdown()

    def __enter__(self) -> PageParser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


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
