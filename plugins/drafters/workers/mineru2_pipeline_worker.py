"""Runs MinerU 2's `pipeline` in its own environment; returns its `middle.json` of a one-page PDF or image."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version as installed
from pathlib import Path
from typing import Any

#: Packages whose errors say that a hub cannot be reached.
HUBS = ("huggingface_hub", "httpx", "requests")


def version() -> str:
    return installed("mineru")


class NoImages:
    """Takes the pictures that MinerU cuts out of pages, and keeps none."""

    def write(self, path: str, data: bytes) -> None:
        pass


def load(options: dict[str, Any]) -> Callable[[str], Any]:
    if "mineru.utils.config_reader" in sys.modules and options["models"]:
        raise RuntimeError("mineru was in use before its models folder could be set")
    os.environ["MINERU_LOG_LEVEL"] = "ERROR"
    if options["device"]:
        os.environ["MINERU_DEVICE_MODE"] = options["device"]
    home = _use_models_of(options["models"]) if options["models"] else None

    if home:
        _check(options["models"])

    from mineru.backend.pipeline.model_json_to_middle_json import result_to_middle_json
    from mineru.backend.pipeline.pipeline_analyze import ModelSingleton, doc_analyze
    from mineru.cli.common import read_fn

    try:
        # The very models that a page will ask for, which are kept; those of a language come with its first page.
        ModelSingleton().get_model(lang=None, formula_enable=options["formulas"], table_enable=options["tables"])
    except Exception as e:
        if _is_about_models(e):
            where = f" in {options['models']}" if options["models"] else ""
            raise FileNotFoundError(f"missing models: opendatalab/PDF-Extract-Kit-1.0{where}") from e
        raise

    def read(path: str, home: Any = home) -> Any:  # the settings live as long as the reader
        results, images, pdfs, langs, ocr = doc_analyze(
            [read_fn(Path(path))],
            [options["lang"]],
            parse_method=options["ocr"],
            formula_enable=options["formulas"],
            table_enable=options["tables"],
        )
        return result_to_middle_json(results[0], images[0], pdfs[0], NoImages(), langs[0], ocr[0], options["formulas"])

    return read


def _use_models_of(folder: str) -> tempfile.TemporaryDirectory[str]:
    """A settings file that names the folder, which MinerU reads when it is imported; returns what keeps it there."""
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"no models folder {folder}")
    home = tempfile.TemporaryDirectory(prefix="hsdkit-mineru-")
    settings = Path(home.name) / "mineru.json"
    settings.write_text(json.dumps({"models-dir": {"pipeline": folder}}), encoding="utf-8")
    os.environ |= {"MINERU_TOOLS_CONFIG_JSON": str(settings), "MINERU_MODEL_SOURCE": "local"}
    return home


def _check(folder: str) -> None:
    """Say at once what is not in the folder; a library further down would go for a model of its own."""
    from mineru.utils.enum_class import ModelPath

    needed = (ModelPath.doclayout_yolo, ModelPath.pytorch_paddle, ModelPath.layout_reader)
    if missing := [path for path in needed if not os.path.exists(os.path.join(folder, path))]:
        raise FileNotFoundError(f"missing models: {', '.join(missing)} in {folder}")


def _is_about_models(error: BaseException | None) -> bool:
    """Whether a file is not there, or a hub not to be reached, somewhere in the causes."""
    while error is not None:
        if isinstance(error, OSError) or type(error).__module__.split(".")[0] in HUBS:
            return True
        error = error.__cause__ or error.__context__
    return False
