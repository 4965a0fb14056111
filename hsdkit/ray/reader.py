"""Pages read one by one by any number of threads of a worker, which share its pipeline."""

from __future__ import annotations

import logging
import socket

from hsdkit.errors import ConfigError, PluginError, TargetError, described
from hsdkit.parallel import PageParser, PageTask
from hsdkit.pipeline import Pipeline
from hsdkit.preparing.page import Prepared
from hsdkit.results import PageResult

log = logging.getLogger(__name__)


class Reader:
    """Loads the pipeline. Raises `ConfigError`, `PluginError` or `TargetError`, here or later, for what would fail
    every page alike; anything else that goes wrong with a page is its result's `error`. `preparing` is the run's by
    default."""

    def __init__(self, pipeline: Pipeline, preparing: int | None = None) -> None:
        self.pipeline = pipeline
        self._parser = PageParser(pipeline, preparing=preparing)

    def read(self, task: PageTask) -> PageResult:
        if not task.path.exists():
            return self.failed(
                task,
                f"no such file on the worker {socket.gethostname()}: Ray's workers read documents themselves, from "
                "a folder that all machines see",
            )
        try:
            return self._parser.submit(task).result()[1]
        except (ConfigError, PluginError, TargetError):
            raise
        except Exception as e:  # a worker lives on, and its other pages with it
            log.debug("%s, page %d failed", task.path.name, task.number, exc_info=True)
            return self.failed(task, described(e))

    def failed(self, task: PageTask, cause: str) -> PageResult:
        """The result of a page that was not read."""
        error = f"{task.path.name}, page {task.number}: {cause}"
        return self.pipeline.unread(Prepared(task.number, error=error))
