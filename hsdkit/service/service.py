"""The service without its HTTP: takes uploads in, hands them to the runner, knows how it is doing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Literal

from starlette.requests import Request

from hsdkit.documents import parse_pages
from hsdkit.errors import ConfigError, DocumentError, PluginError
from hsdkit.pipeline import Pipeline
from hsdkit.service import fetching
from hsdkit.service.counting import Counting
from hsdkit.service.job import Job
from hsdkit.service.jobs import Jobs
from hsdkit.service.limits import Limits
from hsdkit.service.metrics import Metrics
from hsdkit.service.refusal import Refusal, stopping
from hsdkit.service.runner import Runner
from hsdkit.service.upload import Upload, receive

log = logging.getLogger(__name__)

Status = Literal["ready", "loading", "stopping", "failed"]

#: Seconds between two looks for jobs that have expired.
_TIDYING = 10.0


class Service:
    """`urls`: whether documents may be fetched by address. `failed` is told why parsing cannot go on at all."""

    def __init__(
        self, pipeline: Pipeline, folder: Path, limits: Limits, *, urls: bool = False,
        failed: Callable[[str], None] = lambda _: None,
        counting: Counting | None = None,
    ) -> None:  # fmt: skip
        self.pipeline, self.limits, self.urls = pipeline, limits, urls
        self.jobs = Jobs(folder, limits)
        self.metrics = Metrics()
        self.error: str | None = None
        self.runner = Runner(pipeline, self.jobs, self.metrics, self._fail)
        self._told = failed
        self._uploads = 0
        self._counting = counting or Counting(pipeline.config)
        gauge = self.metrics.gauge
        gauge("hsdkit_queued_pages", "Pages that wait.", lambda: self.runner.queue.pages)
        gauge("hsdkit_pages_in_flight", "Pages being parsed.", lambda: self.runner.in_flight)
        gauge("hsdkit_active_jobs", "Documents waiting or being parsed.", lambda: self.jobs.active)
        gauge("hsdkit_kept_jobs", "Jobs whose results are kept, and those under way.", lambda: len(self.jobs))
        gauge("hsdkit_uploads", "Bodies being received.", lambda: self._uploads)

    @property
    def status(self) -> Status:
        if self.error is not None:
            return "failed"
        if self.runner.draining:
            return "stopping"
        return "ready" if self.runner.ready else "loading"

    def _fail(self, error: str) -> None:
        self.error = error
        self._told(error)

    async def accept(self, request: Request) -> tuple[Job, dict[str, str]]:
        """Take a document in: its job, which waits for its turn, and the options that came with it. Raises `Refusal`;
        what can be refused early is, before the body is read."""
        with self._uploading():
            self._check_open()
            try:
                upload = await receive(request, self.limits)
                try:
                    job = await self._taken(upload)
                finally:
                    await upload.close()
            except OSError as e:  # a full disk
                raise Refusal(429, f"the document cannot be kept: {e.strerror}; try again later", "disk", 30) from None
        return job, upload.options

    async def _taken(self, upload: Upload) -> Job:
        await asyncio.to_thread(self.jobs.tidy)
        id, folder = self.jobs.new_folder()
        try:
            _check_options(upload.options)
            password = upload.options.get("password")
            path = await self._file(upload, folder / "upload")
            with self.jobs.place():
                numbers = self._numbers(upload, await self._counting.count(path, password))
                if self.status == "stopping":
                    raise stopping()
                job = Job(id, upload.name, folder, numbers, bytes=path.stat().st_size)
                self.runner.submit(job, password)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        return job

    @contextlib.contextmanager
    def _uploading(self) -> Iterator[None]:
        if self._uploads >= self.limits.uploads:
            raise Refusal(429, f"{self._uploads} documents are being received; try again later", "uploads", 2)
        self._uploads += 1
        try:
            yield
        finally:
            self._uploads -= 1

    def _check_open(self) -> None:
        if self.status in ("stopping", "failed"):
            raise stopping()
        self.jobs.check_room()

    async def _file(self, upload: Upload, folder: Path) -> Path:
        if upload.file is not None:
            return await upload.move_to(folder)
        if not self.urls:
            raise Refusal(422, "url: this service takes no addresses, send the document as `file`", "url")
        path = folder / upload.name
        await fetching.fetch(upload.options["url"], path, self.limits)
        return path

    def _numbers(self, upload: Upload, count: int) -> tuple[int, ...]:
        try:
            numbers = parse_pages(upload.options.get("pages") or None, count, upload.name)
        except (ConfigError, DocumentError) as e:
            raise Refusal(422, str(e), "option") from None
        if len(numbers) > self.limits.pages:
            raise Refusal(
                413, f"{upload.name}: {len(numbers)} pages, at most {self.limits.pages} in one request; "
                f"choose some with pages=1-{self.limits.pages}", "page_count",
            )  # fmt: skip
        return numbers

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """While the block runs: pages are parsed, expired jobs removed. At its end what is left is saved."""
        try:
            self._counting.start()
        except PluginError as e:  # no process can be started
            self.error = str(e)
            raise
        self.runner.start()
        tidying = asyncio.create_task(self._tidy())
        try:
            yield
        finally:
            tidying.cancel()
            self._counting.close()
            await asyncio.to_thread(self.runner.drain, self.limits.grace_seconds)
            self.jobs.close()

    async def _tidy(self) -> None:
        while True:
            await asyncio.sleep(_TIDYING)
            try:
                await asyncio.to_thread(self.jobs.tidy)
            except Exception:  # the next look may do better; none at all would let the disk fill
                log.exception("expired jobs cannot be removed")


def _check_options(options: dict[str, str]) -> None:
    if options.get("format", "json") not in ("json", "markdown"):
        raise Refusal(422, f"format={options['format'][:40]}: must be json or markdown", "option")
    if options.get("async", "false").lower() not in ("true", "false", "1", "0"):
        raise Refusal(422, f"async={options['async'][:40]}: must be true or false", "option")
