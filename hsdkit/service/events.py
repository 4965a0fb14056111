"""A job as it happens, one JSON object a line (NDJSON): pages as they are finished, text as it grows.

Whoever comes late is told everything from the start; whoever reads slowly is told less often. Nothing is queued for a
watcher: it has a mark for what it knows, and the job is asked for what is newer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from hsdkit.results import PageResult
from hsdkit.results_json import dumps
from hsdkit.service.job import Job
from hsdkit.service.views import page_view

#: Seconds between two looks at a job that changes all the time, and until a silent one gives a sign of life.
_PACE, _SILENCE = 0.05, 15.0


class Bell:
    """Rung from any thread, heard by one coroutine."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and with it the watcher gone
            self._loop.call_soon_threadsafe(self._rung.set)

    async def heard(self, seconds: float) -> bool:
        """Whether it rang within that time."""
        try:
            await asyncio.wait_for(self._rung.wait(), seconds)
        except TimeoutError:
            return False
        self._rung.clear()
        return True


async def events(job: Job) -> AsyncIterator[str]:
    """`job` (its facts), `text` (page, at: where in the page's text so far this piece begins, text), `page` (a finished
    page in full), `alive`, and `end` (its facts) at the end."""
    told, begun = 0, job.started
    known: dict[int, str] = {}
    bell = Bell()
    with job.watched(bell.ring):
        yield _line("job", **job.facts())
        while True:
            with job.lock:
                over, finished, text, started = job.state.over, job.finished[told:], dict(job.text), job.started
            if started != begun and not over:
                begun = started
                yield _line("job", **job.facts())
            for number, said in text.items():
                before = known.get(number, "")
                if said != before:
                    at = len(before) if said.startswith(before) else 0
                    yield _line("text", page=number, at=at, text=said[at:])
            known = text
            for number in finished:
                told += 1
                yield await asyncio.to_thread(_page, job, number)
            if finished and not over:
                yield _line("job", **job.facts())
            if over:
                yield _line("end", **job.facts())
                return
            if await bell.heard(_SILENCE):
                await asyncio.sleep(_PACE)
            else:
                yield _line("alive")


async def wait_over(job: Job, seconds: float) -> bool:
    """Whether the job is over within that time."""
    bell = Bell()
    with job.watched(bell.ring):
        end = asyncio.get_running_loop().time() + seconds
        while not job.state.over:
            left = end - asyncio.get_running_loop().time()
            if left <= 0 or not await bell.heard(left):
                return job.state.over
    return True


def _page(job: Job, number: int) -> str:
    try:
        view = job.file(number, ".view.json").read_text(encoding="utf-8")
    except (OSError, ValueError):  # the job has been deleted meanwhile, or the disk has lost it
        error = f"{job.source}, page {number}: this result is not there any more"
        view = dumps(page_view(PageResult(number, verifier="", error=error)))
    return '{"event":"page","page":' + view + "}\n"


def _line(event: str, **values: object) -> str:
    return dumps({"event": event, **values}) + "\n"
