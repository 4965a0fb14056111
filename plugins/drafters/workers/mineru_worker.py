"""Runs MinerU 4 in its own environment; returns its Middle JSON of a one-page PDF or image."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.metadata import version as installed
from typing import Any


def version() -> str:
    return installed("mineru")


def load(options: dict[str, Any]) -> Callable[[str], Any]:
    _set("MINERU_LOG_LEVEL", "error")
    if options["device"]:
        _set("MINERU_DEVICE_MODE", options["device"])
    if options["models"]:
        if not os.path.isdir(options["models"]):
            raise FileNotFoundError(f"no models folder {options['models']}")
        _set("MINERU_MODEL_BASE_DIR", options["models"])
        _set("MINERU_MODEL_SOURCE", "local")
    from mineru import MinerUParser

    if options["tier"] != "flash":
        _fetch(options["tier"])
    elif options["ocr"] == "ocr":
        _fetch("basic")  # whose OCR it is
    parser = MinerUParser(tier=options["tier"], parse_mode=options["ocr"], image_analysis=False)

    def read(path: str) -> Any:
        return parser.parse(path).to_dict()

    return read


def _set(name: str, value: str) -> None:
    """MinerU reads its settings when its config is first imported."""
    if "mineru.config" in sys.modules and os.environ.get(name) != value:
        raise RuntimeError(f"mineru was in use before {name} could be set")
    os.environ[name] = value


def _fetch(tier: str) -> None:
    """Have the tier's models, so that what is missing shows before the first page; it may download them."""
    from mineru.model.download import download_model_repo
    from mineru.model.registry import model_repos_for_tier
    from mineru.parser.tier import ensure_tier_runtime_dependencies

    ensure_tier_runtime_dependencies(tier)
    for repo in model_repos_for_tier(tier):
        try:
            download_model_repo(repo, reuse_ready=True)
        except Exception as e:
            raise FileNotFoundError(f"missing models: {repo.name} in {repo.local_dir().parent}") from e
