"""A job's results on disk: a page as it is finished, the document at the end, the report when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from hsdkit.files import write_whole
from hsdkit.report import ReportWriter
from hsdkit.results import PageResult
from hsdkit.results_json import document_lines, dumps, page_from_json, page_to_json
from hsdkit.service.job import Job
from hsdkit.service.views import page_view
from hsdkit.writing import markdown_of


def save_page(job: Job, page: PageResult) -> int:
    """How many bytes it takes, with its image. Raises `OutputError`."""
    write_whole(job.file(page.number, ".json"), [dumps(page_to_json(page))])
    write_whole(job.file(page.number, ".view.json"), [dumps(page_view(page))])
    files = (job.file(page.number, suffix) for suffix in (".json", ".view.json", ".jpg"))
    return sum(file.stat().st_size for file in files if file.exists())


def save_document(job: Job, settings: dict[str, Any], versions: dict[str, str], error: str | None) -> None:
    """The Markdown and the JSON, in page order, in memory of one page. Raises `OutputError`."""
    pages = document_lines(job.source, settings, versions, error, job.totals, _pages(job))
    write_whole(job.json, pages)
    write_whole(job.markdown, markdown_of(_pages(job)))


def report(job: Job) -> Path:
    """The visual report, written when it is first asked for. Raises `FileNotFoundError` where there is no result, and
    `OutputError` or another `OSError` where it cannot be written."""
    path = job.folder / "report.html"
    with job.writing:
        if path.exists():
            return path
        made = json.loads(_head(job.json))
        draft = path.with_suffix(".part")
        try:
            with ReportWriter(draft, job.source, made["settings"], made["versions"]) as writer:
                for text in _pages(job):
                    page = page_from_json(json.loads(text))
                    picture = job.file(page.number, ".jpg")
                    writer.add(page, Image.open(picture) if picture.exists() else None)
                writer.close(job.error)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        job.weigh()
    return path


def _head(path: Path) -> str:
    """What a document's JSON says before its pages: they start on a line of their own (`document_lines`)."""
    with path.open(encoding="utf-8") as file:
        return file.readline().rstrip().removesuffix(',"pages":[') + "}"


def _pages(job: Job) -> Iterator[str]:
    return (job.file(number, ".json").read_text(encoding="utf-8") for number in sorted(job.finished))
