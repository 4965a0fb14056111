"""How much one worker takes on, from the settings and the cores and GPUs it has."""

from __future__ import annotations

from hsdkit.config import RunConfig
from hsdkit.page_parser import AHEAD
from hsdkit.preparing.pool import fitting_processes
from hsdkit.ray.workers import Workers

#: Pages that a worker with a GPU decodes at once where the settings leave it to the engine, which may do less.
ON_A_GPU = 32


def preparing(config: RunConfig, workers: Workers) -> int:
    """Processes of a worker that prepare pages: at least one, so that a hostile file costs its page, not the worker."""
    if config.preparing != "auto":
        return int(config.preparing)
    return fitting_processes(int(workers.cpus))


def at_once(config: RunConfig, workers: Workers) -> int:
    """Pages that a worker is handed at a time: those it decodes, and those on their way to be."""
    decoded = (ON_A_GPU if workers.gpus else 1) if config.concurrency == "auto" else int(config.concurrency)
    return decoded + AHEAD * preparing(config, workers)
