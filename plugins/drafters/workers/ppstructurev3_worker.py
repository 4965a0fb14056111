"""Runs PP-StructureV3 in PaddleOCR's own environment; returns `LayoutParsingResultV2.json["res"]` of a page image."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version as installed
from typing import Any

#: Models by what they are for, as PaddleX 3.7 has them in PP-StructureV3; the OCR models depend on the language.
LAYOUT = ("PP-DocLayout_plus-L", "PP-DocBlockLayout")
OCR = {
    "server": ("PP-OCRv5_server_det", "PP-OCRv5_server_rec"),
    "mobile": ("PP-OCRv5_mobile_det", "PP-OCRv5_mobile_rec"),
}
TABLES = (
    "PP-LCNet_x1_0_table_cls",
    "SLANeXt_wired",
    "SLANet_plus",
    "RT-DETR-L_wired_table_cell_det",
    "RT-DETR-L_wireless_table_cell_det",
    "PP-LCNet_x1_0_doc_ori",
)
FORMULAS = ("PP-FormulaNet_plus-L",)


def version() -> str:
    return installed("paddleocr")


def load(options: dict[str, Any]) -> Callable[[str], Any]:
    home = _use_models_of(options["models"]) if options["models"] else None
    from paddleocr import PPStructureV3

    settings = {
        "device": options["device"] or None,
        "lang": options["lang"] or None,
        "use_table_recognition": options["tables"],
        "use_formula_recognition": options["formulas"],
        # Pages come upright, and boxes must be those of the page as it is.
        "use_doc_orientation_classify": False,
        "use_doc_unwarping": False,
        "use_textline_orientation": False,
        "use_seal_recognition": False,
        "use_chart_recognition": False,
    }
    if not options["lang"]:
        detection, recognition = OCR[options["ocr"]]
        settings |= {"text_detection_model_name": detection, "text_recognition_model_name": recognition}
    try:
        pipeline = PPStructureV3(**settings)
    except Exception as e:
        if missing := _missing(options):
            where = f" in {options['models']}" if home else ""
            raise FileNotFoundError(f"missing models: {', '.join(missing)}{where}") from e
        raise

    def read(path: str, home: Any = home) -> Any:  # the folder of links lives as long as the reader
        results = list(pipeline.predict(path, use_table_orientation_classify=options["tables"]))
        if len(results) != 1:
            raise ValueError(f"PP-StructureV3 gave {len(results)} results for one page")
        return results[0].json["res"]

    return read


def _use_models_of(folder: str) -> tempfile.TemporaryDirectory[str]:
    """PaddleX looks for models in `official_models` of its home: a temporary home whose folder of that name is a link.
    Returns what keeps it alive."""
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"no models folder {folder}")
    if "paddlex" in sys.modules:
        raise RuntimeError("paddlex was imported before its models folder could be set")
    inner = os.path.join(folder, "official_models")
    home = tempfile.TemporaryDirectory(prefix="hsdkit-paddlex-")
    os.symlink(inner if os.path.isdir(inner) else folder, os.path.join(home.name, "official_models"))
    os.environ["PADDLE_PDX_CACHE_HOME"] = home.name
    return home


def _missing(options: dict[str, Any]) -> list[str]:
    """The models that are needed and not there, by name."""
    from paddlex.utils.cache import CACHE_DIR

    needed = [*LAYOUT, *(() if options["lang"] else OCR[options["ocr"]])]
    needed += TABLES if options["tables"] else ()
    needed += FORMULAS if options["formulas"] else ()
    folder = os.path.join(CACHE_DIR, "official_models")
    return [name for name in needed if not os.path.isdir(os.path.join(folder, name))]
