"""Many pages through the workers of a Ray cluster: tasks in, results out as they are ready, as in `hsdkit.parallel`."""

from __future__ import annotations

import contextlib
import json
import pickle
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import ray
from ray.data import ActorPoolStrategy, DataContext

from hsdkit import errors
from hsdkit.config import RunConfig
from hsdkit.parallel import PageTask
from hsdkit.pipeline import Pipeline
from hsdkit.ray.feed import FedRows, Feed
from hsdkit.ray.load import at_once, preparing
from hsdkit.ray.settings import Settings
from hsdkit.ray.worker import Row, Worker
from hsdkit.ray.workers import Workers
from hsdkit.results import PageResult
from hsdkit.results_json import page_from_json

#: Pages sent ahead, for each that a worker can have under way: enough that it never waits, and that Ray sees a queue
#: when it decides whether to start another worker.
AHEAD = 3

#: Seconds until an iterator that has no task just now is asked again.
PAUSE = 0.05


def parse_pages(
    config: RunConfig,
    tasks: Iterable[PageTask | None],
    workers: Workers,
    *,
    on_versions: Callable[[dict[str, str]], None] = lambda versions: None,
) -> Iterator[tuple[PageTask, PageResult]]:
    """Parse the pages of any documents on the Ray cluster that this process is connected to.

    As `hsdkit.parallel.parse_pages`, with the same results: tasks are taken only as there is room for them (None: there
    is none just now), a page's failure is its result's `error`, and what every page would fail with is raised. Paths
    must mean the same on every machine of the cluster. `on_versions` is told once, before the first result, what the
    workers run. A worker that dies is replaced by Ray, and its pages are read again; a page whose worker dies each time
    ends with that as its error.
    """
    under_way: dict[int, PageTask] = {}
    feeding = Feeding(iter(tasks), under_way, at_once(config, workers) * workers.most * AHEAD)
    observers = Pipeline(config)  # loads nothing
    told = False
    with _told(), contextlib.closing(_results(config, workers, feeding.feed)) as rows:
        feeding.fill()
        while feeding.wait():
            row = next(rows, None)
            if row is None:
                raise errors.HsdkitError("Ray ended before all pages were read; run again to go on with the others")
            if (task := under_way.pop(row["index"], None)) is None:
                continue  # Ray lost a block with its node and made it again
            _raise_fatal(row)
            if not told:
                on_versions(json.loads(row["versions"]))
                told = True
            result = page_from_json(json.loads(row["page"]))
            observers.tell_observers(str(task.path), result)
            yield task, result
            feeding.fill(done=row["index"])


class Feeding:
    """Keeps as many tasks under way as there is room for."""

    def __init__(self, tasks: Iterator[PageTask | None], under_way: dict[int, PageTask], room: int) -> None:
        self.feed = ray.remote(num_cpus=0, scheduling_strategy=_here())(Feed).remote()
        self._tasks, self._under_way, self._room = tasks, under_way, room
        self._next = 0
        self._ended = False

    def fill(self, done: int | None = None) -> None:
        """Send tasks until there is no room, or none just now."""
        sent = []
        while not self._ended and len(self._under_way) < self._room:
            try:
                task = next(self._tasks)
            except StopIteration:
                self._ended = True
                break
            if task is None:
                break
            self._under_way[self._next] = task
            self._next += 1
            sent.append(pickle.dumps(task))
        # Waited for, so that an error of the feed is ours at once.
        ray.get(self.feed.put.remote(sent, [] if done is None else [done], self._ended))

    def wait(self) -> bool:
        """Wait until something is under way; False when all is done."""
        while not self._under_way and not self._ended:
            time.sleep(PAUSE)
            self.fill()
        return bool(self._under_way)


def _results(config: RunConfig, workers: Workers, feed: Any) -> Generator[Row, None, None]:
    each = at_once(config, workers)
    with DataContext.current(_context()):
        results = ray.data.read_datasource(FedRows(feed), override_num_blocks=1, num_cpus=0).map(
            Worker,
            fn_constructor_args=(Settings.of(config), feed, preparing(config, workers)),
            compute=ActorPoolStrategy(
                min_size=workers.least,
                max_size=workers.most,
                max_tasks_in_flight_per_actor=each,
                max_concurrent_calls_per_actor=each,
                enable_true_multi_threading=True,
            ),
            num_cpus=workers.cpus,
            num_gpus=workers.gpus,
        )
    # Without reading ahead: a result must not wait for the next one.
    for block in results.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
        yield from block.to_pylist()


def _here() -> Any:
    """On the driver's node, whose end is the run's end anyway."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


def _context() -> DataContext:
    """Ray Data as this stream needs it: a row a block, and silent, as progress is shown by whoever runs us."""
    context = DataContext.get_current().copy()
    context.target_max_block_size = 1
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    return context


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What breaks in Ray itself, in one line."""
    try:
        yield
    except ray.exceptions.RayError as e:
        reason = " ".join(str(e).split())[:500]
        raise errors.HsdkitError(f"Ray failed: {type(e).__name__}: {reason}; run again to go on where it was") from e


def _raise_fatal(row: Row) -> None:
    if name := row["error"]:
        kind = getattr(errors, name, errors.HsdkitError)
        raise kind(row["message"])
