"""A whole run on a Ray cluster: the same job, the same files, with pages read by Ray's workers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from hsdkit.config import RunConfig, compose
from hsdkit.jobs import Job, Progress, read_inputs, work
from hsdkit.parallel import PageTask
from hsdkit.ray.cluster import connected
from hsdkit.ray.workers import Workers, plan_workers
from hsdkit.results import PageResult


@dataclass(frozen=True, slots=True)
class OnRay:
    """Where, and with what workers; see `hsdkit.ray.cluster.connected` and `plan_workers` for what None stands for."""

    address: str | None = None
    workers: str | None = None
    cpus: float | None = None
    gpus: float | None = None

    def parse_pages(
        self,
        config: RunConfig,
        tasks: Iterable[PageTask | None],
        *,
        on_workers: Callable[[Workers], None] = lambda workers: None,
        on_versions: Callable[[dict[str, str]], None] = lambda versions: None,
    ) -> Iterator[tuple[PageTask, PageResult]]:
        """`hsdkit.ray.stream.parse_pages` on this cluster, connected to for as long as it takes; `on_workers` is told
        what there will be."""
        with connected(self.address) as nodes:
            from hsdkit.ray.stream import parse_pages

            workers = plan_workers(nodes, count=self.workers, cpus=self.cpus, gpus=self.gpus)
            on_workers(workers)
            yield from parse_pages(config, tasks, workers, on_versions=on_versions)


def parse(
    inputs: Iterable[str],
    overrides: Iterable[str] | Mapping[str, Any] = (),
    *,
    address: str | None = None,
    workers: str | None = None,
    cpus: float | None = None,
    gpus: float | None = None,
    retry_failed: bool = False,
) -> Progress:
    """`hsdkit run --ray` from Python: parse files, folders, globs and `@LIST`s into the output folder.

        from hsdkit import ray
        progress = ray.parse(["scans/"], ["drafter=pdftext", "output=parsed"], workers="2-16")
        print(progress.pages, progress.failed)

    Uses the connection of a program that has called `ray.init`. What the folder holds of earlier runs is kept and not
    done again. Raises `HsdkitError` for what no page could be parsed with; a page that fails is counted.
    """
    config = compose(overrides)
    found = chain.from_iterable(map(read_inputs, inputs))
    with Job.open(Path(config.output), config, found, retry_failed=retry_failed) as job:
        on_versions = partial(setattr, job, "versions")
        work(job, partial(OnRay(address, workers, cpus, gpus).parse_pages, config, on_versions=on_versions))
        return job.progress
