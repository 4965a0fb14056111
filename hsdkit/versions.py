"""What made a result: package versions, the model's checkpoint, dtype and device."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hsdkit.documents import SUFFIXES
from hsdkit.protocols import Target

#: Of larger checkpoint files the digest takes so many pieces of so many bytes, evenly spread: there are gigabytes, and
#: training changes whole tensors, though perhaps none at the ends.
_PIECES, _PIECE = 64, 1 << 16

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
        "processor": processor(),
        "cpus": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
    }


def processor() -> str:
    """The name of this machine's processor, "" where it is not told; `platform` knows none on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return named or platform.processor()


def versions(target: Target | None, facts: Mapping[str, str] | None = None) -> dict[str, str]:
    """Versions by name. Loads the target's model, whose checkpoint, revision, dtype and device are part of it; None
    leaves the model out. `facts` take its place: an engine that has a model of its own says them."""
    found: dict[str, Any] = {"python": platform.python_version()} | {p: package_version(p) for p in PACKAGES}
    model = dict(facts) if facts is not None else _model(target.model) if target is not None else {}
    return {k: str(v) for k, v in (found | model).items() if v not in (None, "")}


def _model(model: Any) -> dict[str, Any]:
    config = getattr(model, "config", None)
    name = getattr(config, "_name_or_path", None)
    return {
        "model": name,
        "model_revision": getattr(config, "_commit_hash", None),
        "model_digest": checkpoint_digest(name) if name else None,
        "dtype": str(getattr(model, "dtype", "")).removeprefix("torch."),
        "device": getattr(model, "device", None),
    }


def checkpoint_digest(name: str) -> str:
    """What tells a checkpoint in a folder from another one there, as its revision does on a hub; "" for other names."""
    folder = Path(name)
    return folder_digest(folder, sampled=True)[:16] if (folder / "config.json").is_file() else ""


def folder_digest(folder: Path, sampled: bool = False) -> str:
    """SHA-256 of the files at the top of a folder, documents left out: names, sizes, and content (`sampled`: of large
    files some pieces). "" when it cannot be read."""
    digest = hashlib.sha256()
    try:
        for path in sorted(p for p in folder.iterdir() if p.is_file() and p.suffix.lower() not in SUFFIXES):
            size = path.stat().st_size
            digest.update(f"{path.name}\0{size}\0".encode("utf-8", "surrogateescape"))
            with path.open("rb") as file:
                if sampled and size > _PIECES * _PIECE:
                    for i in range(_PIECES):
                        file.seek(i * (size - _PIECE) // (_PIECES - 1))
                        digest.update(file.read(_PIECE))
                else:
                    while piece := file.read(1 << 20):
                        digest.update(piece)
    except OSError:
        return ""
    return digest.hexdigest()
