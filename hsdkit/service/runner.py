"""The thread that parses: one endless `parse_pages`, fed page by page from the queue of all jobs."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable

from hsdkit.documents import Page
from hsdkit.errors import HsdkitError
from hsdkit.parallel import PageTask, parse_pages
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


class GivenUp(Exception):
    """Ends the decoding of a page whose job is gone or out of time; it becomes the page's error."""


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

    def submit(self, job: Job) -> None:
        """Raises `Refusal` when there is no room."""
        self.jobs.add(job)
        self.queue.add(job.id, job.upload, job.numbers)

    def cancel(self, job: Job) -> None:
        """Give the job up; a page of it that is being decoded ends at its next step."""
        self.queue.discard(job.id)
        self._end(job, State.CANCELLED, "cancelled by the client")

    def drain(self, seconds: float) -> None:
        """Start no further page, wait so long for those in flight, and end every job with what it has."""
        self.draining = True
        self.queue.close()
        if self._thread.is_alive():
            self._thread.join(seconds)
        for job in self.jobs.all():
            if not job.state.over:
                done = f"{len(job.finished)} of {len(job.numbers)} pages"
                self._finish(job, State.STOPPED, f"the service was shut down after {done}")

    def _run(self) -> None:
        try:
            self.pipeline.load()
            self._versions = self.pipeline.versions()
        except Exception as e:
            log.debug("loading failed", exc_info=True)
            self._failed(str(e) if isinstance(e, HsdkitError) else f"{type(e).__name__}: {e}")
            return
        self.ready = True
        while not self.draining:
            try:
                for task, result in parse_pages(
                    self.pipeline, self._tasks(), on_page=self._keep_image, on_text=self._on_text
                ):
                    self._page(task, result)
            except Exception as e:  # what fails every page alike: no job in flight can go on, later ones may
                log.exception("parsing failed")
                self._fail_in_flight(str(e) if isinstance(e, HsdkitError) else f"{type(e).__name__}: {e}")

    def _tasks(self):  # type: ignore[no-untyped-def]
        for task in self.queue:
            if (job := self._job(task)) is None:
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
        if job is None:
            raise GivenUp("cancelled")
        if self._late(job):
            raise GivenUp(f"the document took longer than {self.jobs.limits.document_seconds:g} s")
        with job.lock:
            job.text[task.number] = job.text.get(task.number, "") + text
        job.news()

    def _late(self, job: Job) -> bool:
        return job.started is not None and time.time() - job.started > self.jobs.limits.document_seconds

    def _keep_image(self, task: PageTask, page: Page | None, result: PageResult) -> None:
        job = self._job(task)
        if page is None or job is None:
            return
        data = jpeg(page.image)
        with job.lock:
            if not job.state.over:
                job.file(task.number, ".jpg").write_bytes(data)

    def _page(self, task: PageTask, result: PageResult) -> None:
        self._in_flight.discard((str(task.key), task.number))
        self.metrics.page(result)
        if (job := self._job(task)) is None:
            return
        self._add(job, result)
        if self._late(job):
            self._out_of_time(job)
        if len(job.finished) == len(job.numbers):
            failed = job.totals.failed == len(job.numbers)
            self._finish(job, State.FAILED if failed else State.DONE, result.error if failed else None)

    def _add(self, job: Job, result: PageResult) -> None:
        try:
            with job.lock:
                if job.state.over:
                    return
                save_page(job, result)
                job.totals += Totals.of(result)
                job.finished.append(result.number)
                job.text.pop(result.number, None)
        except (HsdkitError, OSError) as e:
            self.queue.discard(job.id)
            self._end(job, State.FAILED, str(e))
            return
        job.news()

    def _out_of_time(self, job: Job) -> None:
        """The pages that still wait are failures; those in flight end by themselves."""
        self.queue.discard(job.id)
        flying = {number for of, number in self._in_flight if of == job.id}
        why = f"not parsed: the document took longer than {self.jobs.limits.document_seconds:g} s"
        for number in set(job.numbers) - set(job.finished) - flying:
            self._add(
                job,
                PageResult(number, verifier=self.pipeline.verifier.name, error=f"{job.source}, page {number}: {why}"),
            )

    def _finish(self, job: Job, state: State, error: str | None) -> None:
        try:
            with job.lock:
                if job.state.over:
                    return
                save_document(job, self.pipeline.config.settings(), self._versions, error)
        except (HsdkitError, OSError) as e:
            state, error = State.FAILED, str(e)
        self._end(job, state, error)

    def _end(self, job: Job, state: State, error: str | None) -> None:
        with job.lock:
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
