"""How many tokens' keys and values there is room for."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from hsdkit_plugins.engines.hf_model import HFModel

from hsdkit.decoding.cache import RaggedCache

#: Of the free memory; the rest is for what passes compute with, prompts, and others on the machine.
SHARE = 0.5


def affordable_tokens(model: HFModel) -> int:
    """Tokens whose keys and values fit into that share of the memory that is free now, where the model is; no bound
    where that is not known."""
    free = _free_bytes(model.device)
    return sys.maxsize if free is None else max(1, int(SHARE * free) // token_bytes(model))


@torch.inference_mode()
def token_bytes(model: HFModel) -> int:
    """Bytes of one token's keys and values: a pass over one token shows what the model keeps, whatever its
    architecture."""
    cache = RaggedCache()
    cache.begin_prompt([1], 1)
    token = torch.zeros((1, 1), dtype=torch.int64)
    model.verify(token, token, None, cache)
    return cache.token_bytes


def _free_bytes(device: torch.device) -> int | None:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    found = [n for n in (_available(), _left_of_group()) if n is not None]
    return min(found, default=None)


def _available() -> int | None:
    """What Linux says is available."""
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _left_of_group() -> int | None:
    """What a container's limit leaves (control groups, either version)."""
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        most, now = (_read(Path("/sys/fs/cgroup") / name).strip() for name in (limit, used))
        if most.isdigit() and now.isdigit():
            return max(0, int(most) - int(now))
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
