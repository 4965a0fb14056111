"""PP-StructureV3 of PaddleOCR: layout, OCR, tables and formulas, each read by a model of its own."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hsdkit_plugins.drafters._lines import bounding
from hsdkit_plugins.drafters._native import (
    Findings,
    command,
    folder_option,
    latex,
    no_folder,
    number,
    paragraph,
    table_html,
)

from hsdkit import hookimpl
from hsdkit.components import Component, Environment
from hsdkit.documents import Page
from hsdkit.errors import DrafterError
from hsdkit.regions import Draft, Label, Region
from hsdkit.workers import Library, Server, WorkerOptions

NAME = "ppstructurev3"
_HERE = Path(__file__).parent / "workers"

#: Labels of PP-DocLayout_plus-L and of PP-DocLayoutV2 and V3, which may be put in its place.
_LABELS = {
    "doc_title": Label.TITLE,
    "paragraph_title": Label.HEADING,
    "abstract_title": Label.HEADING,
    "reference_title": Label.HEADING,
    "content_title": Label.HEADING,
    "text": Label.TEXT,
    "vertical_text": Label.TEXT,
    "abstract": Label.TEXT,
    "content": Label.TEXT,
    "table": Label.TABLE,
    "formula": Label.FORMULA,
    "display_formula": Label.FORMULA,
    "image": Label.FIGURE,
    "figure": Label.FIGURE,
    "chart": Label.FIGURE,
    "flowchart": Label.FIGURE,
    "seal": Label.FIGURE,
    "figure_table_chart_title": Label.CAPTION,
    "figure_title": Label.CAPTION,
    "table_title": Label.CAPTION,
    "chart_title": Label.CAPTION,
    "algorithm": Label.CODE,
    "footnote": Label.FOOTNOTE,
    "vision_footnote": Label.FOOTNOTE,
    "reference": Label.REFERENCE,
    "reference_content": Label.REFERENCE,
    "header": Label.HEADER,
    "header_image": Label.HEADER,
    "footer": Label.FOOTER,
    "footer_image": Label.FOOTER,
    "number": Label.PAGE_NUMBER,
}

#: What is not a region of its own: formulas in the running text, which are in its text already.
_PARTS = frozenset({"inline_formula"})

#: Where one reference ends and the next begins: blocks of several come without the white space between.
_NEXT_REFERENCE = re.compile(r"(?<=[^\s\[])(?=\[\d{1,3}\] )")

_FORMULA_NUMBER = re.compile(r"[(（\[]?\s*([\w.\-–]{1,12})\s*[)）\]]?")


@dataclass(frozen=True)
class PPStructureV3Config(WorkerOptions):
    """models: folder with the models, each in a subfolder of its own name (PP-DocLayout_plus-L, ...); without it they
    are looked for where PaddleOCR keeps them, and fetched on first use.
    device: where they run, such as cpu or gpu:0; PaddleOCR's choice without it.
    ocr: `mobile` reads several times faster on a CPU than `server` and somewhat worse.
    lang: language of the OCR models, such as en, korean, arabic; the default reads Chinese, English and Japanese.
    tables, formulas: whether they are read; without that they are regions without text.
    """

    models: str = ""
    device: str = ""
    ocr: Literal["server", "mobile"] = "server"
    lang: str = ""
    tables: bool = True
    formulas: bool = True
    max_megabytes: int = 12_000  # a dozen models, and some GB of growth

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_with_url("models", "device", "ocr", "lang")
        if self.lang and self.ocr == "mobile":
            raise ValueError(f"ocr=mobile: cannot be had together with lang={self.lang}, which chooses the OCR models")

    def options(self) -> dict[str, Any]:
        return {
            "models": folder_option(self.models),
            "device": self.device,
            "ocr": self.ocr,
            "lang": self.lang,
            "tables": self.tables,
            "formulas": self.formulas,
        }


def convert(native: Any, page: Page) -> Draft:
    """Regions from `LayoutParsingResultV2.json["res"]` (or the `prunedResult` of the server), in its own reading order.

    Raises `ValueError` for JSON that is neither.
    """
    if not isinstance(native, dict) or not isinstance(native.get("parsing_res_list"), list):
        raise ValueError("it has no parsing_res_list")
    width, height = number(native.get("width")) or 0, number(native.get("height")) or 0
    found = Findings(page, width if width > 0 else page.width, height if height > 0 else page.height)
    scores = _scores(native)
    numbers: list[int] = []
    for block in found.objects(native["parsing_res_list"]):
        name, content, corners = block.get("block_label"), block.get("block_content"), block.get("block_bbox")
        if not isinstance(name, str) or not isinstance(content, str | None):
            found.malformed += 1
            continue
        if name in _PARTS:
            continue
        if name == "formula_number":
            numbers.append(len(found.regions))
        label, count = _LABELS.get(name, Label.OTHER), len(found.regions)
        found.add(corners, label, _text(label, content or ""), score=scores.get(_key(corners)))
        if len(found.regions) > count:
            found.regions[-1] = replace(found.regions[-1], format=_FORMATS.get(label, "text"))
        elif name == "formula_number":
            numbers.pop()
    found.regions = _with_numbers(found.regions, numbers)
    return found.draft(NAME)


_FORMATS: dict[Label, Literal["html", "latex"]] = {Label.TABLE: "html", Label.FORMULA: "latex"}


def _text(label: Label, content: str) -> str:
    match label:
        case Label.TABLE:
            return table_html(content)
        case Label.FORMULA:
            return latex(content)
        case Label.CODE:
            return content.strip("\n")
        case Label.FIGURE:
            return ""  # what the OCR read inside of a picture
        case Label.REFERENCE:
            return paragraph(_NEXT_REFERENCE.sub(" ", content))
        case _:
            return paragraph(content)


def _scores(native: dict[str, Any]) -> dict[tuple[int, ...], Any]:
    """Confidence of the layout model by box."""
    layout = native.get("layout_det_res")
    boxes = layout.get("boxes") if isinstance(layout, dict) else None
    good = [b for b in boxes if isinstance(b, dict)] if isinstance(boxes, list) else []
    return {_key(b.get("coordinate")): b.get("score") for b in good}


def _key(corners: Any) -> tuple[int, ...]:
    """A box as blocks have it, whose corners are whole pixels; () for what is none."""
    numbers = [number(n) for n in corners] if isinstance(corners, list | tuple) else []
    return tuple(int(n) for n in numbers if n is not None)


def _with_numbers(regions: list[Region], numbers: Iterable[int]) -> list[Region]:
    """The regions with formula numbers, given by index, put into the formulas beside which they stand."""
    gone: set[int] = set()
    for i in numbers:
        tag = _FORMULA_NUMBER.fullmatch(regions[i].text)
        beside = next((k for k, r in enumerate(regions) if r.label is Label.FORMULA and _one_line(r, regions[i])), None)
        if tag and beside is not None and regions[beside].text and r"\tag" not in regions[beside].text:
            formula, box = regions[beside], bounding((regions[beside].box, regions[i].box))
            regions[beside] = replace(formula, box=box, text=rf"{formula.text} \tag{{{tag[1]}}}")
            gone.add(i)
    return [r for i, r in enumerate(regions) if i not in gone]


def _one_line(formula: Region, number: Region) -> bool:
    middle = (number.box.y0 + number.box.y1) / 2
    beside = number.box.x0 >= formula.box.x1 - 2 or number.box.x1 <= formula.box.x0 + 2
    return beside and formula.box.y0 <= middle <= formula.box.y1


def ask(server: Server, file: Path, options: dict[str, Any]) -> Any:
    """From `paddlex --serve --pipeline PP-StructureV3`; models and OCR are what it was started with."""
    answer = server.post(
        "/layout-parsing",
        {
            "file": base64.b64encode(file.read_bytes()).decode(),
            "fileType": 1,  # an image
            # Pages come upright, and boxes must be those of the page as it is.
            "useDocOrientationClassify": False,
            "useDocUnwarping": False,
            "useTextlineOrientation": False,
            "useTableRecognition": options["tables"],
            "useFormulaRecognition": options["formulas"],
            "useChartRecognition": False,
            "useSealRecognition": False,
            "formatBlockContent": False,
            "returnMarkdownImages": False,
            "visualize": False,
        },
    )
    result = answer.get("result") if isinstance(answer, dict) else None
    pages = result.get("layoutParsingResults") if isinstance(result, dict) else None
    if not isinstance(pages, list) or len(pages) != 1 or not isinstance(pages[0], dict):
        said = answer.get("errorMsg") if isinstance(answer, dict) else None
        raise DrafterError(f"{server.url} gave no layoutParsingResults: {said or 'no reason'}")
    return pages[0].get("prunedResult")


_MISSING = re.compile(r"missing models: (.+?)(?: in (.+?))?(?= <- |$)")


def explain(error: str) -> str | None:
    """One line for what is known to go wrong, given `TypeName: message` with its causes."""
    if missing := _MISSING.search(error):
        where = f"in drafter.models={missing[2]}" if missing[2] else "on this machine"
        return (
            f"its models {missing[1]} are not {where} and cannot be fetched from here; where there is a network, "
            f"`{command(ENVIRONMENT, 'paddleocr')} pp_structurev3 -i IMAGE` fetches them into "
            "~/.paddlex/official_models, and drafter.models=FOLDER names a copy of that folder"
        )
    if "ConvertPirAttribute2RuntimeAttribute" in error:
        return "PaddlePaddle 3.3 cannot run its OCR models on a CPU; paddlepaddle==3.2.2 can"
    return no_folder(error)


ENVIRONMENT = Environment(
    NAME, _HERE / "ppstructurev3.txt", "paddleocr", "paddleocr", "paddlex --serve --pipeline PP-StructureV3"
)
LIBRARY = Library(
    environment=ENVIRONMENT,
    script=_HERE / "ppstructurev3_worker.py",
    convert=convert,
    explain=explain,
    ask=ask,
    feed="image",
    seconds=10.0,
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "PP-StructureV3 of PaddleOCR: layout, OCR, tables and formulas (the paper's drafter)"
    return [Component("drafter", NAME, summary, PPStructureV3Config, LIBRARY.drafter, environment=ENVIRONMENT)]
