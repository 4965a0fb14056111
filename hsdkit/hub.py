"""Whether a model of the Hugging Face hub is in its cache on this machine. Nothing here goes to the network."""

from __future__ import annotations

import re
from pathlib import Path

#: OWNER/NAME, as hub ids are.
_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def is_cached(model: str, revision: str | None = None) -> bool:
    """Whether weights of that commit (any commit, for a branch, a tag or None) are there. They may be incomplete: who
    loads them fetches the rest."""
    from huggingface_hub.constants import HF_HUB_CACHE

    snapshots = Path(HF_HUB_CACHE, f"models--{model.replace('/', '--')}", "snapshots")
    commit = revision if re.fullmatch("[0-9a-f]{40}", revision or "") else "*"
    return any(snapshots.glob(f"{commit}/*.safetensors"))


def must_be_fetched(model: str, revision: str | None = None) -> bool:
    """Whether `model` is a hub id, and no folder, whose weights are not in the cache."""
    return bool(_ID.fullmatch(model)) and not Path(model).is_dir() and not is_cached(model, revision)
