"""What reading a document yields: its pages as one text, as JSON, and back."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hsdkit.errors import DocumentError, described
from hsdkit.results import PageResult
from hsdkit.results_json import document_lines, dumps, page_from_json, page_to_json
from hsdkit.totals import Totals


@dataclass(frozen=True, slots=True)
class DocumentResult:
    """All pages of one file, in order. `settings` is the composed configuration, `versions` what made it, the
    file's digest (`input_sha256`) included."""

    source: str
    pages: tuple[PageResult, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    error: str | None = None

    @property
    def markdown(self) -> str:
        return "\n\n".join(p.markdown.strip() for p in self.pages if p.markdown.strip()) + "\n"

    @property
    def ok(self) -> bool:
        return self.error is None and all(p.error is None for p in self.pages)

    def to_json(self) -> str:
        pages = (dumps(page_to_json(p)) for p in self.pages)
        totals = Totals.over(self.pages)
        return "".join(document_lines(self.source, self.settings, self.versions, self.error, totals, pages))

    @classmethod
    def from_json(cls, text: str | bytes) -> DocumentResult:
        """Read what `to_json` and `hsdkit run` (NAME.json) write. Raises `DocumentError` for anything else."""
        try:
            data = json.loads(text)
            pages = tuple(map(page_from_json, data["pages"]))
            return cls(data["source"], pages, data["settings"], data["versions"], data["error"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as e:
            raise DocumentError(f"not a result of hsdkit: {described(e)}") from e

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DocumentResult:
        """Read a NAME.json. Raises `DocumentError` when it cannot be read or is none."""
        try:
            return cls.from_json(Path(path).read_bytes())
        except (OSError, DocumentError) as e:
            raise DocumentError(f"{path}: {e}") from e
