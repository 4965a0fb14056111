"""MinerU 4: `basic` is its pipeline of layout, OCR, table and formula models; `flash` needs no models at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from hsdkit_plugins.drafters._native import (
    Findings,
    command,
    folder_option,
    latex,
    list_text,
    no_folder,
    paragraph,
    table_html,
)

from hsdkit import hookimpl
from hsdkit.components import Component, Environment
from hsdkit.documents import Page
from hsdkit.errors import DrafterError
from hsdkit.regions import Draft, Format, Label, Region
from hsdkit.workers import Library, Server, WorkerOptions

NAME = "mineru"
_HERE = Path(__file__).parent / "workers"

_TEXTS = {
    "doc_title": Label.TITLE,
    "paragraph_title": Label.HEADING,
    "text": Label.TEXT,
    "ref_text": Label.REFERENCE,
    "header": Label.HEADER,
    "footer": Label.FOOTER,
    "page_number": Label.PAGE_NUMBER,
    "aside_text": Label.OTHER,
    "page_footnote": Label.FOOTNOTE,
}
_VISUALS = frozenset({"image", "chart", "table", "code"})

_CELL_FORMULA = re.compile(r"<eq>((?:(?!<eq>).)*?)</eq>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class MinerUConfig(WorkerOptions):
    """tier: `basic` reads the page with layout, OCR, table and formula models; `flash` has no models and reads only
    the text of PDFs, in a second or two; `standard` adds a vision-language model, as large as many targets.
    ocr: `ocr` reads text from the image always, `txt` takes the PDF's own, `auto` decides by page (`txt` with
    tier=flash).
    models: folder with the models (MinerU-4_models_onnx, ...); without it they are looked for where MinerU keeps them,
    and fetched on first use.
    device: where PyTorch models run, such as cpu or cuda:0; MinerU's choice without it.
    """

    tier: Literal["flash", "basic", "standard"] = "basic"
    ocr: Literal["auto", "txt", "ocr"] = "auto"
    models: str = ""
    device: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_with_url("models", "device")

    def options(self) -> dict[str, Any]:
        models = folder_option(self.models)
        # With "auto" flash, too, would fetch the OCR models for the first scan it meets.
        ocr = "txt" if self.tier == "flash" and self.ocr == "auto" else self.ocr
        return {"tier": self.tier, "ocr": ocr, "models": models, "device": self.device}


def convert(native: Any, page: Page) -> Draft:
    """Regions from MinerU's Middle JSON 2.0 of one page, in its own reading order.

    Raises `ValueError` for JSON that is no such thing.
    """
    pages = native.get("pages") if isinstance(native, dict) else None
    if not isinstance(pages, list) or len(pages) != 1 or not isinstance(pages[0], dict):
        raise ValueError("it has no pages, or not one: Middle JSON 2.0 of one page is expected")
    found = Findings(page, 1.0, 1.0)  # boxes are parts of the page
    for block in found.objects(pages[0].get("blocks")):
        _add(found, block)
    found.regions = [r for r in found.regions if not _is_speck(r)]
    draft = found.draft(NAME)
    if not draft.readable and _tier(native) == "flash":
        draft = replace(
            draft, notes=(*draft.notes, "mineru: tier=flash reads only the text of PDFs; this page has none")
        )
    return draft


def _tier(native: dict[str, Any]) -> Any:
    extensions = native.get("extensions")
    own = extensions.get("mineru") if isinstance(extensions, dict) else None
    return own.get("tier") if isinstance(own, dict) else None


def _add(found: Findings, block: dict[str, Any]) -> None:
    kind, corners, content = block.get("type"), block.get("bbox"), block.get("content")
    if not isinstance(kind, str):
        found.malformed += 1
    elif kind in _VISUALS:
        for part in sorted(found.objects(content), key=_index):
            _add_part(found, part, corners)
    elif kind == "equation":
        found.add(corners, Label.FORMULA, latex(content) if isinstance(content, str) else None, "latex")
    elif kind == "list":
        _add_list(found, block)
    elif kind == "index":
        found.add(corners, Label.TEXT, paragraph("\n".join(text for _, text in _items(found, content))))
    else:
        level = block.get("level") if kind in ("doc_title", "paragraph_title") else None
        found.add(corners, _TEXTS.get(kind, Label.OTHER), paragraph(_spans(found, content)), level=level)


def _index(part: dict[str, Any]) -> int:
    """Where a part of a figure or table is read; captions may come before it."""
    index = part.get("index")
    return index if isinstance(index, int) else 0


def _add_part(found: Findings, part: dict[str, Any], whole: Any) -> None:
    """A body, caption or footnote. Those without a box of their own have that of the whole."""
    kind, content = str(part.get("type")), part.get("content")
    corners = part.get("bbox", whole)
    if kind in ("image_body", "chart_body"):
        found.add(corners, Label.FIGURE)
    elif kind == "table_body":
        found.add(corners, Label.TABLE, *_table(content))
    elif kind == "code_body":
        found.add(corners, Label.CODE, content.strip("\n") if isinstance(content, str) else None)
    elif kind == "algorithm_body":
        found.add(corners, Label.CODE, _spans(found, content).strip("\n"))
    else:
        label = Label.FOOTNOTE if kind.endswith("_footnote") else Label.CAPTION
        found.add(corners, label, paragraph(_spans(found, content)))


def _add_list(found: Findings, block: dict[str, Any]) -> None:
    """A list as one region; references as one each where they have boxes."""
    if block.get("sub_type") != "ref_text":
        found.add(block.get("bbox"), Label.LIST, list_text(_items(found, block.get("content"))))
        return
    entries = list(found.objects(block.get("content")))
    if all(found.box(entry.get("bbox")) for entry in entries):
        for entry in entries:
            found.add(entry.get("bbox"), Label.REFERENCE, paragraph(_spans(found, entry.get("content"))))
    else:
        lines = [_spans(found, entry.get("content")) for entry in entries]
        found.add(block.get("bbox"), Label.REFERENCE, paragraph("\n".join(lines)))


def _items(found: Findings, content: Any, depth: int = 0) -> Iterator[tuple[int, str]]:
    """The entries of a list or table of contents as (depth, text)."""
    for child in found.objects(content):
        if child.get("type") in ("list", "index"):
            if depth < 5:
                yield from _items(found, child.get("content"), depth + 1)
        else:
            yield depth, _spans(found, child.get("content"))


def _spans(found: Findings, content: Any) -> str:
    """Running text with LaTeX between dollar signs; links as their text."""
    if isinstance(content, str):
        return content
    return "".join(_span(found, span) for span in found.objects(content))


def _span(found: Findings, span: dict[str, Any]) -> str:
    content = span.get("content")
    if span.get("type") == "hyperlink":
        inner = content if isinstance(content, list) else []
        return "".join(s["content"] for s in inner if isinstance(s, dict) and isinstance(s.get("content"), str))
    if not isinstance(content, str):
        found.malformed += 1
        return ""
    return f"${content.strip()}$" if span.get("type") == "equation_inline" else content


def _table(content: Any) -> tuple[str | None, Format]:
    """As HTML; what tier=flash could not take apart comes as plain rows."""
    if not isinstance(content, str):
        return None, "html"
    if table := table_html(_CELL_FORMULA.sub(lambda m: f"${m[1].strip()}$", content)):
        return table, "html"
    return "\n".join(row.strip() for row in content.splitlines() if row.strip()), "text"


def _is_speck(region: Region) -> bool:
    """An accent or a dot that stands apart, as PDFs set them."""
    text = region.text.strip()
    return region.format == "text" and 0 < len(text) <= 2 and not any(ch.isalnum() for ch in text)


def ask(server: Server, file: Path, options: dict[str, Any]) -> Any:
    """From `mineru-api`: one request that waits for the result."""
    query = {
        "tier": options["tier"],
        "ocr_mode": options["ocr"],
        "output_formats": "middle_json",
        "wait_timeout": str(min(3600, max(1, round(server.seconds)))),
    }
    answer = server.upload(f"/v1/file_parse?{urlencode(query)}", file)
    files = answer.get("files") if isinstance(answer, dict) else None
    first = files[0] if isinstance(files, list) and files and isinstance(files[0], dict) else {}
    content = first.get("content")
    native = content.get("middle_json") if isinstance(content, dict) else None
    if native is None:
        status = answer.get("status") if isinstance(answer, dict) else None
        raise DrafterError(f"{server.url} gave no result: status {status!r}, {first.get('error') or 'no reason'}")
    return native


_MISSING = re.compile(r"missing models: (\S+) in (.+?)(?= <- |$)")


def explain(error: str) -> str | None:
    """One line for what is known to go wrong, given `TypeName: message` with its causes."""
    if missing := _MISSING.search(error):
        return (
            f"its models {missing[1]} are not in {missing[2]} and cannot be fetched from here; where there is a "
            f"network, `{command(ENVIRONMENT, 'mineru-models-download')} --tier basic` fetches them into "
            "~/.mineru/models, and "
            "drafter.models=FOLDER names a copy of it; drafter.tier=flash needs none, but reads only the text of PDFs"
        )
    return no_folder(error)


ENVIRONMENT = Environment(NAME, _HERE / "mineru.txt", "mineru.parser", "mineru", "mineru-api --tier basic")
LIBRARY = Library(
    environment=ENVIRONMENT,
    script=_HERE / "mineru_worker.py",
    convert=convert,
    explain=explain,
    ask=ask,
    feed="pdf",
    seconds=6.0,
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "MinerU 4: layout, OCR, tables and formulas; tier=flash without models"
    return [Component("drafter", NAME, summary, MinerUConfig, LIBRARY.drafter, environment=ENVIRONMENT)]
