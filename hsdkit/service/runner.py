"""The thread that parses: one endless `parse_pages`, fed page by page from the queue of all jobs."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

from hsdkit.documents import Page
from hsdkit.errors import cause, described
from hsdkit.page_reader import ANEW
from hsdkit.parallel import PageTask, Stopped, parse_pages
from hsdkit.pipeline import Pipeline
from hsdkit.results import PageResult
from hsdkit.service.job import Job, State
from hsdkit.service.jobs import Jobs
from hsdkit.service.metrics import Metrics
from hsdkit.service.page_queue import PageQueue
from hsdkit.service.refusal import Refusal
from hsdkit.service.results import save_document, save_page
from hsdkit.service.views import jpeg
from hsdkit.totals import Totals

log = logging.getLogger(__name__)


#: Seconds between two looks whether to end, while there is nothing to do, and for pages that nobody waits for to end.
_IDLE, _LAST_WORDS = 0.5, 2.0


class Runner:
    """Loads the pipeline and parses until it is drained. `failed` is told when it cannot go on at all."""

    def __init__(self, pipeline: Pipeline, jobs: Jobs, metrics: Metrics, failed: Callable[[str], None]) -> None:
        self.pipeline, self.jobs, self.metrics = pipeline, jobs, metrics
        self.queue = PageQueue()
        self.ready = False
        self.draining = False
        self._failed = failed
        self._in_flight: set[tuple[str, int]] = set()
        self._versions: dict[str, str] = {}
        # A daemon: a page that never ends must not keep a service from ending.
        self._thread = threading.Thread(target=self._run, name="hsdkit-parse", daemon=True)

    def start(self) -> None:
        self._thread.start()

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def submit(self, job: Job, password: str | None) -> None:
        self.jobs.add(job)
        self.queue.add(job.id, job.upload, job.numbers, password)

    def cancel(self, job: Job) -> None:
        """Give the job up; a page of it that is being decoded ends at its next step."""
        self.queue.discard(job.id)
        self._end(job, State.CANCELLED, "cancelled by the client")

    def drain(self, seconds: float) -> bool:
        """Start no further page, wait so long for those in flight, and end every job with what it has. Whether nothing
        is being parsed any more."""
        self.draining = True
        self.queue.close()
        if self.ready and self._thread.is_alive():  # no page is in flight while the model is being loaded
            self._thread.join(seconds)
        for job in self.jobs.all():
            if not job.state.over:
                done = f"{len(job.finished)} of {len(job.numbers)} pages"
                self._finish(job, State.STOPPED, f"the service was shut down after {done}")
        if self.ready:
            self._thread.join(_LAST_WORDS)  # pages of jobs that are over end with their next token
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self.draining:
            try:
                with closing(
                    parse_pages(self.pipeline, self._tasks(), on_page=self._keep_image, on_text=self._on_text)
                ) as parsing:
                    for task, result in parsing:
                        self._page(task, result)
            except Exception as e:  # what fails every page alike
                log.debug("parsing failed", exc_info=True)
                error = cause(e)
                if not self._in_flight:
                    self._failed(error)
                    return
                self._fail_in_flight(error)  # it may have been theirs alone: others are tried

    def _tasks(self) -> Iterator[PageTask | None]:
        """For `parse_pages`: first asked when everything is loaded."""
        if not self.ready:
            self._versions = self.pipeline.versions()
            self.ready = True
        while not self.queue.closed:
            task = self.queue.take(0.0 if self._in_flight else _IDLE)
            job = self._job(task) if task else None
            if task is None or job is None:
                yield None
                continue
            with job.lock:
                if job.started is None:
                    job.started, job.state = time.time(), State.RUNNING
            self._in_flight.add((job.id, task.number))
            job.news()
            yield task

    def _job(self, task: PageTask) -> Job | None:
        """The task's job while it is under way."""
        try:
            job = self.jobs.get(str(task.key))
        except Refusal:
            return None
        return None if job.state.over else job

    def _on_text(self, task: PageTask, text: str) -> None:
        job = self._job(task)
        if job is None or self._late(job):
            raise Stopped
        with job.lock:
            job.text[task.number] = "" if text is ANEW else job.text.get(task.number, "") + text
        job.news()

    def _late(self, job: Job) -> bool:
        return job.started is not None and time.time() - job.started > self.jobs.limits.document_seconds

    def _keep_image(self, task: PageTask, page: Page | None, result: PageResult) -> None:
        job = self._job(task)
        if page is None or job is None:
            return
        try:
            data = jpeg(page.image)
            with job.writing:
                if not job.state.over:
                    job.file(task.number, ".jpg").write_bytes(data)
        except Exception:  # a full disk is told when the page's text does not fit either
            log.debug("%s, page %d: no image is kept", job.source, task.number, exc_info=True)

    def _page(self, task: PageTask, result: PageResult) -> None:
        try:
            self._add_page(task, result)
        except Exception as e:  # whatever a page does to who keeps it is that document's end, and nobody else's
            log.debug("%s, page %d cannot be kept", task.path.name, task.number, exc_info=True)
            if job := self._job(task):
                self.queue.discard(job.id)
                self._end(job, State.FAILED, f"{job.source}, page {task.number}: cannot be kept: {_reason(e)}")
        finally:
            self._in_flight.discard((str(task.key), task.number))

    def _add_page(self, task: PageTask, result: PageResult) -> None:
        self.metrics.page(result)
        if (job := self._job(task)) is None:
            return
        if self._late(job):
            self._out_of_time(job)
            if result.error:
                result = replace(result, error=self._too_late(job, result.number))
        self._add(job, result)
        if len(job.finished) == len(job.numbers):
            failed = job.totals.failed == len(job.numbers)
            self._finish(job, State.FAILED if failed else State.DONE, result.error if failed else None)

    def _add(self, job: Job, result: PageResult) -> None:
        with job.writing:
            if job.state.over:
                return
            written = save_page(job, result)
            with job.lock:
                job.bytes += written
                job.totals += Totals.of(result)
                job.finished.append(result.number)
                job.text.pop(result.number, None)
        job.news()

    def _out_of_time(self, job: Job) -> None:
        """The pages that still wait are failures; those in flight end by themselves."""
        self.queue.discard(job.id)
        flying = {number for of, number in self._in_flight if of == job.id}
        for number in set(job.numbers) - set(job.finished) - flying:
            error = self._too_late(job, number)
            self._add(job, PageResult(number, verifier=self.pipeline.verifier.name, error=error))

    def _too_late(self, job: Job, number: int) -> str:
        return f"{job.source}, page {number}: the document took longer than {self.jobs.limits.document_seconds:g} s"

    def _finish(self, job: Job, state: State, error: str | None) -> None:
        try:
            with job.writing:
                if job.state.over:
                    return
                save_document(job, self.pipeline.config.settings(), self._versions, error)
        except Exception as e:  # a full disk, or a bug: the job ends all the same, and others go on
            log.debug("%s cannot be kept", job.source, exc_info=True)
            state, error = State.FAILED, f"{job.source}: the result cannot be kept: {_reason(e)}"
        self._end(job, state, error)

    def _end(self, job: Job, state: State, error: str | None) -> None:
        with job.writing:
            if job.state.over:
                return
            job.end(state, error)
        self.metrics.jobs.labels(state.value).inc()
        job.news()

    def _fail_in_flight(self, error: str) -> None:
        for id, _ in list(self._in_flight):
            self.queue.discard(id)
            with contextlib.suppress(Refusal):  # deleted meanwhile
                self._finish(self.jobs.get(id), State.FAILED, error)
        self._in_flight.clear()


def _reason(e: Exception) -> str:
    """Why something could not be kept, without the names of folders, which are no client's concern."""
    origin = e if isinstance(e, OSError) else e.__cause__
    if isinstance(origin, OSError) and origin.strerror:
        return origin.strerror
    return described(e)
