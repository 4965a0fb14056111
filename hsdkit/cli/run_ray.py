"""`hsdkit run --ray`: the same run, with pages read by the workers of a Ray cluster."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from hsdkit.errors import ConfigError

if TYPE_CHECKING:
    from hsdkit.cli.batch import Parser
    from hsdkit.cli.display import Display
    from hsdkit.jobs import Job, Parse
    from hsdkit.parallel import PageTask
    from hsdkit.pipeline import Pipeline
    from hsdkit.ray.workers import Workers
    from hsdkit.results import PageResult


class RunCommand(TyperCommand):
    """Takes `--ray` with and without `=ADDRESS`; what follows it after a space is a document."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [f"{a}=" if a == "--ray" and i < end else a for i, a in enumerate(args)])


def on_ray(
    address: str | None, workers: str | None, cpus: float | None, gpus: float | None, *, stream: bool
) -> Callable[[Pipeline], Parser] | None:
    """The parser of a run on the cluster at `address` ("": the one of this machine, or one of its own); None without
    Ray. Raises `ConfigError` for options that mean nothing then."""
    if address is None:
        for name, value in (("workers", workers), ("cpus", cpus), ("gpus", gpus)):
            if value is not None:
                raise ConfigError(f"--ray-{name} says what workers of a Ray cluster get: add --ray or --ray=ADDRESS")
        return None
    if stream:
        raise ConfigError("--stream with --ray: text is written on other machines; choose one of them")

    from hsdkit.ray.run import OnRay

    cluster = OnRay(address or None, workers, cpus, gpus)

    def for_pipeline(pipeline: Pipeline) -> Parser:
        def parser(job: Job, display: Display, check: Callable[[], None]) -> Parse:
            def on_workers(workers: Workers) -> None:
                display.status(f"{pipeline.config.target.name} on Ray: {workers}")

            def on_versions(versions: dict[str, str]) -> None:
                job.versions = versions
                display.moved(job.progress)

            def parse(tasks: Iterator[PageTask]) -> Iterator[tuple[PageTask, PageResult]]:
                display.status("connecting to Ray")
                with contextlib.redirect_stdout(sys.stderr):  # what Ray says; standard output is for results
                    yield from cluster.parse_pages(
                        pipeline.config, tasks, on_workers=on_workers, on_versions=on_versions
                    )

            return parse

        return parser

    return for_pipeline
