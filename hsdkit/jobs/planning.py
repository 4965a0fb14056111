"""What is in an input file: its content's digest, its pages, and which of them are wanted."""

from __future__ import annotations

import time
from pathlib import Path
from sqlite3 import Row

from hsdkit.config import RunConfig
from hsdkit.documents import file_status, open_document, parse_pages
from hsdkit.errors import ConfigError, DocumentError
from hsdkit.files import file_digest
from hsdkit.jobs.store import Contents
from hsdkit.parallel import FEW_PAGES
from hsdkit.preparing.local import Recipe
from hsdkit.preparing.process import Bounds, ProcessPreparer

#: A file changed so shortly before it was hashed (ns) may have been changed again without a new time.
_TOO_FRESH = 2_000_000_000


def contents(path: Path, known: Row, counter: PageCounter, password: str | None) -> Contents:
    """The file as it is now. `known` is its row in the job's file: what has the size and time of the last change it had
    is neither read nor opened. Raises `DocumentError` when it cannot be."""
    status = file_status(path)
    same = (status.st_size, status.st_mtime_ns) == (known["size"], known["mtime"])
    if same and known["sha256"] and known["count"] and known["hashed"] - known["mtime"] > _TOO_FRESH:
        return Contents(status.st_size, status.st_mtime_ns, known["hashed"], known["sha256"], known["count"])
    hashed = time.time_ns()
    digest = file_digest(path)
    count = known["count"] if digest and digest == known["sha256"] else None
    return Contents(status.st_size, status.st_mtime_ns, hashed, digest, count or counter.count(path, password))


class PageCounter:
    """Opens files to count their pages; those of all but small jobs in a process apart (`preparing`), as a file that
    crashes or hangs its reader would else end the job."""

    def __init__(self, config: RunConfig, documents: int) -> None:
        apart = documents > FEW_PAGES if config.preparing == "auto" else int(config.preparing) > 0
        self._config, self._apart = config, apart
        self._preparer: ProcessPreparer | None = None

    def count(self, path: Path, password: str | None) -> int:
        """Raises `DocumentError` when the file cannot be opened."""
        if not self._apart:
            with open_document(path, password=self._config.password if password is None else password) as document:
                return document.count
        if self._preparer is None:
            c = self._config
            recipe = Recipe.to_count(c.password, c.max_pixels)
            self._preparer = ProcessPreparer(recipe, Bounds(c.page_memory, c.prepare_seconds))
        return self._preparer.count(path, password)

    def close(self) -> None:
        if self._preparer is not None:
            self._preparer.close()


def wanted(path: Path, count: int, own: str | None, of_the_run: str | None) -> tuple[int, ...]:
    """The numbers of the pages to parse. Raises `DocumentError` for pages that are not there, or when what the
    document's own line in a list asks for cannot be understood; `ConfigError` when what the run asks for cannot be."""
    try:
        return parse_pages(own or of_the_run, count, path.name)
    except ConfigError as e:
        if own is None:
            raise
        raise DocumentError(f"{path.name}: {e}") from None
