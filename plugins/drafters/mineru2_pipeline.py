"""MinerU 2 with `-b pipeline`, the drafter of the paper's MinerU rows; today's MinerU is `drafter=mineru`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hsdkit_plugins.drafters._native import (
    Findings,
    command,
    folder_option,
    latex,
    list_text,
    no_folder,
    number,
    paragraph,
    table_html,
)

from hsdkit import hookimpl
from hsdkit.components import Component, Environment
from hsdkit.documents import Page
from hsdkit.errors import DrafterError
from hsdkit.regions import Box, Draft, Label
from hsdkit.workers import Library, Server, WorkerOptions

NAME = "mineru2_pipeline"
_HERE = Path(__file__).parent / "workers"

_PARTS = {
    "image_body": Label.FIGURE,
    "table_body": Label.TABLE,
    "image_caption": Label.CAPTION,
    "table_caption": Label.CAPTION,
    "image_footnote": Label.FOOTNOTE,
    "table_footnote": Label.FOOTNOTE,
}

_REFERENCE = re.compile(r"\[\d{1,3}\]\s*")


@dataclass(frozen=True)
class MinerU2Config(WorkerOptions):
    """ocr: `ocr` reads text from the image always, `txt` takes the PDF's own, `auto` decides by page.
    lang: language that the OCR reads, such as ch (English too), en, korean, japan, latin, arabic or cyrillic.
    models: folder of opendatalab/PDF-Extract-Kit-1.0 (it holds a folder `models`); without it the models are looked
    for in the cache of huggingface_hub, and fetched on first use.
    device: where they run, such as cpu or cuda:0; MinerU's choice without it.
    tables, formulas: whether they are read; without that they are regions without text.
    """

    ocr: Literal["auto", "txt", "ocr"] = "auto"
    lang: str = "ch"
    models: str = ""
    device: str = ""
    tables: bool = True
    formulas: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_with_url("models", "device")

    def options(self) -> dict[str, Any]:
        return {
            "ocr": self.ocr,
            "lang": self.lang,
            "models": folder_option(self.models),
            "device": self.device,
            "tables": self.tables,
            "formulas": self.formulas,
        }


def convert(native: Any, page: Page) -> Draft:
    """Regions from the `middle.json` of MinerU 2's pipeline for one page, in its own reading order.

    Raises `ValueError` for JSON that is no such thing.
    """
    pages = native.get("pdf_info") if isinstance(native, dict) else None
    if not isinstance(pages, list) or len(pages) != 1 or not isinstance(pages[0], dict):
        raise ValueError("it has no pdf_info, or not of one page")
    info = pages[0]
    size = info.get("page_size")
    width, height = map(number, size) if isinstance(size, list) and len(size) == 2 else (None, None)
    if not width or not height or width < 0 or height < 0:
        raise ValueError("its page has no page_size")
    found = Findings(page, width, height)
    blocks = list(found.objects(info.get("para_blocks")))
    for block, lines in zip(blocks, _lines_where_they_stand(found, blocks), strict=True):
        _add(found, block, lines)
    for block in found.objects(info.get("discarded_blocks")):
        _add_discarded(found, block)
    return found.draft(NAME)


Line = dict[str, Any]


def _lines_where_they_stand(found: Findings, blocks: list[dict[str, Any]]) -> list[list[Line]]:
    """The lines of each block. MinerU gives those of a paragraph that goes on in the next column to its first block
    and empties the others; here they go back, because a region's text must be what stands in its box."""
    lines = [list(found.objects(b.get("lines"))) for b in blocks]
    for k, block in enumerate(blocks):
        box = found.box(block.get("bbox"))
        if not block.get("lines_deleted") or box is None:
            continue
        for others in lines[:k]:
            moved = [line for line in others if _within(found.box(line.get("bbox")), box)]
            lines[k] += moved
            others[:] = [line for line in others if line not in moved]
    return lines


def _within(line: Box | None, box: Box) -> bool:
    if line is None:
        return False
    x, y = (line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2
    return box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1


def _add(found: Findings, block: dict[str, Any], lines: list[Line]) -> None:
    kind, corners = block.get("type"), block.get("bbox")
    if kind in ("image", "table"):
        for part in found.objects(block.get("blocks")):
            _add_part(found, part)
    elif kind == "title":
        found.add(corners, Label.HEADING, _paragraph(found, lines), level=block.get("level"))
    elif kind == "interline_equation":
        found.add(corners, Label.FORMULA, _formula(found, lines), "latex")
    elif kind == "list":
        _add_list(found, corners, lines)
    elif isinstance(kind, str):
        found.add(corners, Label.TEXT if kind in ("text", "index") else Label.OTHER, _paragraph(found, lines))
    else:
        found.malformed += 1


def _add_part(found: Findings, part: dict[str, Any]) -> None:
    """A figure or table itself, its caption or footnote."""
    label, lines = _PARTS.get(str(part.get("type")), Label.OTHER), list(found.objects(part.get("lines")))
    if label is Label.FIGURE:
        found.add(part.get("bbox"), label)
    elif label is Label.TABLE:
        said = [span.get("html") for line in lines for span in found.objects(line.get("spans"))]
        found.add(part.get("bbox"), label, table_html("".join(s for s in said if isinstance(s, str))), "html")
    else:
        found.add(part.get("bbox"), label, _paragraph(found, lines))


def _add_list(found: Findings, corners: Any, lines: list[Line]) -> None:
    """A list, or references, which come as lists: these are one region each."""
    items: list[list[Line]] = []
    for line in lines:
        if items and not line.get("is_list_start_line"):
            items[-1].append(line)
        else:
            items.append([line])
    texts = [_paragraph(found, item) for item in items]
    if texts and sum(bool(_REFERENCE.match(t)) for t in texts) > len(texts) / 2:
        for item, text in zip(items, texts, strict=True):
            found.add(_bounds(item), Label.REFERENCE, text)
    else:
        found.add(corners, Label.LIST, list_text((0, text) for text in texts))


def _bounds(lines: list[Line]) -> list[float] | None:
    """The box around lines, as corners; `None` where one has none."""
    boxes = [line.get("bbox") for line in lines]
    good = [b for b in boxes if isinstance(b, list) and len(b) == 4 and all(number(n) is not None for n in b)]
    if len(good) < len(boxes):
        return None
    x0s, y0s, x1s, y1s = zip(*good, strict=True)
    return [min(x0s), min(y0s), max(x1s), max(y1s)]


def _add_discarded(found: Findings, block: dict[str, Any]) -> None:
    """What MinerU leaves out: headers, footers, page numbers; it does not say which."""
    text, box = _paragraph(found, list(found.objects(block.get("lines")))), found.box(block.get("bbox"))
    above = box is not None and (box.y0 + box.y1) / 2 < found.page.height / 2
    label = Label.HEADER if above else Label.FOOTER
    found.add(block.get("bbox"), Label.PAGE_NUMBER if text.isdecimal() else label, text)


def _paragraph(found: Findings, lines: Iterable[Line]) -> str:
    return paragraph("\n".join(_spans(found, line) for line in lines))


def _formula(found: Findings, lines: Iterable[Line]) -> str:
    spans = [s.get("content") for line in lines for s in found.objects(line.get("spans"))]
    return latex(" ".join(s for s in spans if isinstance(s, str)))


def _spans(found: Findings, line: Line) -> str:
    """A line's text; formulas in it between dollar signs."""
    said = []
    for span in found.objects(line.get("spans")):
        content = span.get("content", "")
        if not isinstance(content, str):
            found.malformed += 1
        elif content.strip():
            formula = span.get("type") in ("inline_equation", "interline_equation")
            said.append(f"${content.strip()}$" if formula else content.strip())
    return " ".join(said)


def ask(server: Server, file: Path, options: dict[str, Any]) -> Any:
    """From the `mineru-api` of MinerU 2."""
    fields: dict[str, str | list[str]] = {
        "backend": "pipeline",
        "parse_method": options["ocr"],
        "lang_list": options["lang"],
        "table_enable": str(options["tables"]).lower(),
        "formula_enable": str(options["formulas"]).lower(),
        "return_md": "false",
        "return_middle_json": "true",
    }
    answer = server.upload("/file_parse", file, fields)
    results = answer.get("results") if isinstance(answer, dict) else None
    first = next(iter(results.values()), None) if isinstance(results, dict) else None
    said = first.get("middle_json") if isinstance(first, dict) else None
    if said is None:
        error = answer.get("error") if isinstance(answer, dict) else None
        raise DrafterError(f"{server.url} gave no middle_json: {error or 'no reason'}")
    try:
        return json.loads(said) if isinstance(said, str) else said
    except ValueError as e:
        raise DrafterError(f"{server.url} gave a middle_json that is not JSON: {e}") from e


_MISSING = re.compile(r"missing models: (.+?)(?: in (.+?))?(?= <- |$)")


def explain(error: str) -> str | None:
    """One line for what is known to go wrong, given `TypeName: message` with its causes."""
    if missing := _MISSING.search(error):
        where = f"in drafter.models={missing[2]}" if missing[2] else "on this machine"
        return (
            f"its models ({missing[1]}) are not {where} and cannot be fetched from here; where there is a network, "
            f"`{command(ENVIRONMENT, 'mineru-models-download')} -s huggingface -m pipeline` fetches them, "
            "and drafter.models=FOLDER names a copy of opendatalab/PDF-Extract-Kit-1.0"
        )
    return no_folder(error)


ENVIRONMENT = Environment(NAME, _HERE / "mineru2_pipeline.txt", "mineru.backend.pipeline", "mineru", "mineru-api")
LIBRARY = Library(
    environment=ENVIRONMENT,
    script=_HERE / "mineru2_pipeline_worker.py",
    convert=convert,
    explain=explain,
    ask=ask,
    feed="pdf",
    seconds=10.0,
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "MinerU 2 `-b pipeline`, as in the paper; its models, its middle.json"
    return [Component("drafter", NAME, summary, MinerU2Config, LIBRARY.drafter, environment=ENVIRONMENT)]
