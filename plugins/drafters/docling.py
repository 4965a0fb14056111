"""Drafts by Docling: layout, tables, OCR and reading order by its models, or just the lines of the PDF (`native`).

It runs in an environment of its own (`hsdkit drafter install docling`), in this process, or as a `docling-serve`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from hsdkit_plugins.drafters._docling import convert
from hsdkit_plugins.drafters._docling_words import convert_words
from hsdkit_plugins.drafters._native import command, folder_option

from hsdkit import hookimpl
from hsdkit.components import Component, Environment
from hsdkit.errors import DrafterError
from hsdkit.workers import HeavyDrafter, Library, Server, WorkerOptions

_WORKERS = Path(__file__).parent / "workers"

ENVIRONMENT = Environment(
    name="docling",
    requirements=_WORKERS / "docling.txt",
    module="docling",
    distribution="docling",
    server="docling-serve run",
)


@dataclass(frozen=True)
class DoclingConfig(WorkerOptions):
    """pipeline: `standard` runs docling's models, which it fetches once; `native` takes the PDF's text lines as they
    are, without models: for PDFs only.
    artifacts_path: folder with docling's models; "" for where docling keeps them itself.
    ocr: read scanned parts of a page with docling's OCR.
    formulas: also run the model that writes formulas as LaTeX; slow.
    threads: threads of its models; 0 for docling's own choice.
    """

    pipeline: Literal["standard", "native"] = "standard"
    artifacts_path: str = ""
    ocr: bool = True
    formulas: bool = False
    threads: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.threads < 0:
            raise ValueError(f"threads={self.threads}: must be at least 0 (docling's own choice)")
        self.refuse_with_url("pipeline", "artifacts_path", "threads")

    def options(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "artifacts_path": folder_option(self.artifacts_path),
            "ocr": self.ocr,
            "formulas": self.formulas,
            "threads": self.threads,
        }


def ask(server: Server, file: Path, options: dict[str, Any]) -> Any:
    """The document from a docling-serve (API v1). Raises `DrafterError`."""
    fields = {
        "to_formats": "json",
        "image_export_mode": "placeholder",
        "do_ocr": str(options["ocr"]).lower(),
        "do_formula_enrichment": str(options["formulas"]).lower(),
    }
    answer = server.upload("/v1/convert/file", file, fields)
    if not isinstance(answer, dict):
        raise DrafterError(f"{server.url} answers something else than docling-serve does: {answer!r:.60}")
    document = answer.get("document")
    found = document.get("json_content") if isinstance(document, dict) else None
    if not found:
        raise DrafterError(f"{server.url} could not convert the page: status {answer.get('status')}{_errors(answer)}")
    return found


def _errors(answer: dict[str, Any]) -> str:
    errors = answer.get("errors")
    said = [str(e.get("error_message", e)) if isinstance(e, dict) else str(e) for e in errors or ()]
    return f": {'; '.join(said)[:300]}" if said else ""


def explain(error: str) -> str | None:
    """What to do about missing models, and about pages the native pipeline cannot read."""
    get = (
        f"`{command(ENVIRONMENT, 'docling-tools')} models download -o FOLDER` gets them where there is a network, "
        "drafter.artifacts_path=FOLDER uses them; drafter.pipeline=native needs none"
    )
    if "artifacts_path" in error:
        return f"its models are not in the folder that drafter.artifacts_path names; {get} ({error[:200]})"
    if "LocalEntryNotFoundError" in error or "OfflineModeIsEnabled" in error or "ConnectError" in error:
        return f"its models are not on this machine and cannot be fetched; {get}"
    if "the native pipeline reads PDFs only" in error:
        return (
            "its native pipeline reads the text of PDFs, and this page is an image; drafter.pipeline=standard reads it"
        )
    return None


LIBRARY = Library(
    environment=ENVIRONMENT,
    script=_WORKERS / "docling_worker.py",
    convert=convert,
    ask=ask,
    explain=explain,
    feed="pdf",
    seconds=3.0,
)


def _drafter(config: DoclingConfig) -> HeavyDrafter:
    if config.pipeline == "native":
        return replace(LIBRARY, convert=convert_words, seconds=0.4).drafter(config)
    return LIBRARY.drafter(config)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "Docling's layout, table and OCR models; in an environment of its own"
    return [Component("drafter", "docling", summary, DoclingConfig, _drafter, environment=ENVIRONMENT)]
