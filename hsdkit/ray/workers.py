"""How many workers a run has on a Ray cluster, and what each of them is given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hsdkit.errors import ConfigError

#: Cores of a worker without a GPU, where a node has that many: decoding on a CPU gains little from more.
MOST_CORES = 4


@dataclass(frozen=True, slots=True)
class Workers:
    """Ray keeps between `least` and `most` workers, each with `cpus` cores and `gpus` GPUs of its own."""

    least: int
    most: int
    cpus: float
    gpus: float = 0.0

    def __str__(self) -> str:
        count = str(self.most) if self.least == self.most else f"{self.least} to {self.most}"
        has = f"{self.cpus:g} CPU core{'s' * (self.cpus != 1)}"
        has += f" and {self.gpus:g} GPU{'s' * (self.gpus != 1)}" if self.gpus else ""
        return f"{count} worker{'s' * (self.most != 1)} with {has} each"


def plan_workers(
    nodes: list[Mapping[str, float]], *, count: str | None = None, cpus: float | None = None, gpus: float | None = None
) -> Workers:
    """Workers for a cluster whose nodes have these resources (`CPU`, `GPU`).

    Where nothing is said: a GPU each if there is one, else up to 4 cores each; from one worker to as many as fit now.
    `count` is a number or a range such as "2-16", which may be more than fit now on a cluster that grows. Raises
    `ConfigError` for a worker that fits no node.
    """
    if gpus is None:
        gpus = 1.0 if any(n.get("GPU", 0) >= 1 for n in nodes) else 0.0
    able = [n for n in nodes if n.get("GPU", 0) >= gpus]
    if cpus is None:
        cpus = max((min(MOST_CORES, _share(n, gpus)) for n in able), default=1.0)
    fit = sum(_fitting(n, cpus, gpus) for n in able)
    least, most = _range(count) if count else (1, fit)
    if not fit and not count:
        raise ConfigError(
            f"no node of the Ray cluster has {cpus:g} CPU cores and {gpus:g} GPUs; ask for less with --ray-cpus and "
            "--ray-gpus, or, if the cluster grows, say with --ray-workers how many may be started"
        )
    return Workers(least, most, cpus, gpus)


def _share(node: Mapping[str, float], gpus: float) -> float:
    """A node's cores divided among its workers."""
    workers = node["GPU"] // gpus if gpus else 1
    return max(1.0, node.get("CPU", 0) // workers)


def _fitting(node: Mapping[str, float], cpus: float, gpus: float) -> int:
    each = ((node.get("CPU", 0), cpus), (node.get("GPU", 0), gpus))
    return int(min((has // needs for has, needs in each if needs), default=0))


def _range(count: str) -> tuple[int, int]:
    match = re.fullmatch(r"([0-9]+)(?:-([0-9]+))?", count.strip())
    least, most = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= least <= most:
        raise ConfigError(f"--ray-workers={count}: is neither a number of workers nor a range; write for example 2-16")
    return least, most
