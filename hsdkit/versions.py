"""What made a result: package versions, the model's checkpoint, dtype and device."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from hsdkit.protocols import Target

PACKAGES = ("hsdkit", "torch", "transformers")


def package_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def usable_cores() -> int:
    """Cores of this machine that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def machine() -> dict[str, Any]:
    """Where a measurement ran: times of other machines do not compare."""
    import torch

    return {
        "platform": platform.platform(),
        "processor": platform.processor(),
        "cpus": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
    }


def versions(target: Target | None, facts: Mapping[str, str] | None = None) -> dict[str, str]:
    """Versions by name. Loads the target's model, whose checkpoint, revision, dtype and device are part of it; None
    leaves the model out. `facts` take its place: an engine that has a model of its own says them."""
    found: dict[str, Any] = {"python": platform.python_version()} | {p: package_version(p) for p in PACKAGES}
    model = dict(facts) if facts is not None else _model(target.model) if target is not None else {}
    return {k: str(v) for k, v in (found | model).items() if v not in (None, "")}


def _model(model: Any) -> dict[str, Any]:
    config = getattr(model, "config", None)
    return {
        "model": getattr(config, "_name_or_path", None),
        "model_revision": getattr(config, "_commit_hash", None),
        "dtype": str(getattr(model, "dtype", "")).removeprefix("torch."),
        "device": getattr(model, "device", None),
    }
