"""The documents of a sweep: files that are named, or the pages of a benchmark, opened one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from hsdkit.documents import Document, Page
from hsdkit.errors import DocumentError
from hsdkit.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Source:
    """A file, and the numbers of its pages; None for those that the run selects."""

    path: Path
    numbers: tuple[int, ...] | None = None


def open_all(pipeline: Pipeline, sources: Sequence[Source], stack: ExitStack) -> tuple[list[Document], list[str]]:
    """The documents, closed with `stack`, and why others cannot be opened."""
    documents: list[Document] = []
    failures: list[str] = []
    shelf = Shelf(pipeline.open)
    stack.callback(shelf.close)
    for source in sources:
        try:
            if source.numbers is None:
                documents.append(stack.enter_context(pipeline.open(source.path)))
            else:
                documents.append(ShelvedDocument(source.path, source.numbers, shelf))
        except DocumentError as e:
            failures.append(str(e))
    return documents, failures


class Shelf:
    """Holds one open document: a benchmark has more files than a process may have open."""

    def __init__(self, open_: Callable[[Path], Document]) -> None:
        self._open = open_
        self._path: Path | None = None
        self._document: Document | None = None

    def document(self, path: Path) -> Document:
        if self._document is None or path != self._path:
            self.close()
            self._document = self._open(path)
            self._path = path
        return self._document

    def close(self) -> None:
        if self._document is not None:
            self._document.close()
        self._document = None


class ShelvedDocument(Document):
    """Opened when a page is asked for, until a page of another document is. `page` raises what opening raises, too."""

    def __init__(self, path: Path, numbers: tuple[int, ...], shelf: Shelf) -> None:
        self.path, self.name, self.numbers = path, path.name, numbers
        self._shelf = shelf

    def page(self, number: int) -> Page:
        return self._shelf.document(self.path).page(number)

    def __len__(self) -> int:
        return len(self.numbers)

    def close(self) -> None:
        self._shelf.close()
