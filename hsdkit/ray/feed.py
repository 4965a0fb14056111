"""Pages on their way into Ray Data: a queue the driver fills as results come back, read as an endless dataset.

A dataset of all pages would hold a job of millions in memory and claim it whole. This one is a few pages ahead of the
workers. The feed also counts how often each page was begun, which is how a page that kills its worker is told from the
pages that were merely beside it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import ray
from ray.data import Datasource
from ray.data.block import BlockMetadata
from ray.data.datasource import ReadTask


class Feed:
    """Runs as one Ray actor without a core of its own, on the driver's node."""

    def __init__(self) -> None:
        self._rows: list[bytes] = []  # empty: answered already
        self._first = 0  # the index of the first row that is kept
        self._ended = False
        self._changed = asyncio.Event()
        self._begun: dict[int, int] = {}

    async def put(self, tasks: list[bytes], done: list[int], end: bool) -> None:
        """More rows, the indices of rows that need no longer be kept, and whether these were the last."""
        self._rows += tasks
        for index in done:
            self._begun.pop(index, None)
            self._rows[index - self._first] = b""
        kept = next((i for i, row in enumerate(self._rows) if row), len(self._rows))
        del self._rows[:kept]
        self._first += kept
        self._ended |= end
        self._changed.set()

    async def take(self, index: int) -> tuple[int, list[bytes]]:
        """How many rows from `index` on have their result already, and the rows behind those; waits until there is
        anything to say. (0, []) at the end."""
        while True:
            self._changed.clear()
            answered = max(0, self._first - index)
            rows = self._rows[index + answered - self._first :]
            if answered or rows or self._ended:
                return answered, rows
            await self._changed.wait()

    async def begun(self, index: int) -> int:
        """How often a worker has begun this row."""
        return self._begun.get(index, 0)

    async def begin(self, index: int) -> None:
        self._begun[index] = self._begun.get(index, 0) + 1


class FedRows(Datasource):
    """The rows of a `Feed`, one a block: a block is what Ray repeats when a worker dies, and what it hands on."""

    def __init__(self, feed: Any) -> None:
        super().__init__()
        self._feed = feed

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        feed = self._feed

        def read() -> Iterable[pa.Table]:
            return _tables(feed)

        return [ReadTask(read, BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None))]


def _tables(feed: Any) -> Iterator[pa.Table]:
    """Each row as a block, for ever; row i is always the i-th block, as Ray counts them when it reads anew after a
    failure. A row that has its result already is empty then."""
    index = 0
    while True:
        answered, rows = ray.get(feed.take.remote(index))
        if not answered and not rows:
            return
        for task in itertools.chain(itertools.repeat(b"", answered), rows):
            yield pa.table({"index": [index], "task": [task]})
            index += 1
