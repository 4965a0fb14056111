"""For pipelines of Ray Data of your own: documents to pages, pages to results, in rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hsdkit.config import compose
from hsdkit.documents import open_document
from hsdkit.errors import DocumentError
from hsdkit.parallel import PageTask
from hsdkit.pipeline import Pipeline
from hsdkit.ray.reader import Reader
from hsdkit.results_json import dumps, page_to_json

Row = dict[str, Any]


def pages(row: Row) -> list[Row]:
    """For `Dataset.flat_map`: a row with the `path` of a document becomes a row a page, with its number as `page`.

    A file that cannot be opened stays one row, of page 1, which `PageParser` then says what is wrong with."""
    try:
        with open_document(row["path"]) as document:
            numbers = document.numbers
    except DocumentError:
        numbers = (1,)
    return [row | {"page": number} for number in numbers]


class PageParser:
    """For `Dataset.map`: parses the page `page` (from 1) of the file `path`.

        paths = ray.data.from_items([{"path": str(p)} for p in Path("scans").glob("*.pdf")])
        parsed = paths.flat_map(pages).map(PageParser, fn_constructor_args=(["drafter=pdftext"],), concurrency=2)

    Adds to the row `markdown`, `error` (None unless the page failed) and `result`, the page as in NAME.json. Each actor
    loads one model; `overrides` are those of `hsdkit run`. Paths are those of the machine an actor runs on. Raises
    `ConfigError`, `PluginError` or `TargetError` for what would fail every page alike, which ends the Ray job.
    """

    def __init__(self, overrides: Iterable[str] | Mapping[str, Any] = ()) -> None:
        self._reader = Reader(Pipeline(compose(overrides)))

    def __call__(self, row: Row) -> Row:
        page = self._reader.read(PageTask(Path(row["path"]), int(row["page"])))
        return row | {"markdown": page.markdown, "error": page.error, "result": dumps(page_to_json(page))}
