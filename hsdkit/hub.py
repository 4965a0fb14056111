"""What is a model of the Hugging Face hub, and whether it is in its cache on this machine. Nothing here goes to the
network."""

from __future__ import annotations

import re
from pathlib import Path

#: OWNER/NAME.
_ID = re.compile(r"\w[\w.-]*/[\w.-]+", re.ASCII)


def is_hub_id(model: str) -> bool:
    """Whether that names a model of the hub, and no folder here."""
    return bool(_ID.fullmatch(model)) and not Path(model).is_dir()


def is_cached(model: str, revision: str | None = None) -> bool:
    """Whether weights of that commit (any commit, for a branch, a tag or None) are there. They may be incomplete: who
    loads them fetches the rest."""
    from huggingface_hub.constants import HF_HUB_CACHE

    snapshots = Path(HF_HUB_CACHE, f"models--{model.replace('/', '--')}", "snapshots")
    commit = revision if re.fullmatch("[0-9a-f]{40}", revision or "") else "*"
    return any(snapshots.glob(f"{commit}/*.safetensors"))


def must_be_fetched(model: str, revision: str | None = None) -> bool:
    """Whether `model` is one of the hub whose weights are not in the cache."""
    return is_hub_id(model) and not is_cached(model, revision)
