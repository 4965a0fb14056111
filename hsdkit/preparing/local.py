"""Pages prepared in this process, whichever it is: one at a time, with the last few documents kept open."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hsdkit.documents import Document, Page
from hsdkit.draft_cache import cached
from hsdkit.errors import ConfigError, DocumentError
from hsdkit.plugins import Plugins
from hsdkit.preparing.page import AskCost, Opening, PageTask, Prepared, prepare, reason
from hsdkit.protocols import Drafter

#: Documents kept open: tasks may alternate between a few files.
MOST_OPEN = 3


class Preparer(Protocol):
    """Prepares one page at a time. `prepare` raises `ConfigError` or `PluginError` for what would fail every page."""

    def prepare(self, task: PageTask, cost: AskCost | None) -> Prepared: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """What preparing takes, as plain values that can go to another process: how documents are opened, and the drafter's
    name (None for no drafts), options, and whether its drafts are kept on disk."""

    opening: Opening
    drafter: str | None = None
    options: Any = None
    reuse_drafts: bool = False

    @classmethod
    def to_count(cls, password: str | None, max_pixels: int) -> Recipe:
        """To open documents and no more: nothing is rendered, so that any resolution will do."""
        return cls(Opening(72, password, 0, max_pixels))

    def build(self, registry: Plugins) -> Drafter | None:
        """The drafter. Raises `PluginError`."""
        if self.drafter is None:
            return None
        return build_drafter(registry, self.drafter, self.options, self.reuse_drafts)


def build_drafter(registry: Plugins, name: str, options: Any, reuse_drafts: bool) -> Drafter:
    """Raises `PluginError`."""
    drafter: Drafter = registry.build("drafter", name, options)
    return cached(drafter) if reuse_drafts else drafter


class Local:
    """`Preparer` in this process; from several threads one page at a time, as drafters are for one thread."""

    def __init__(self, opening: Opening, drafter: Drafter | None) -> None:
        self._documents = OpenDocuments(opening)
        self._drafter = drafter
        self._turn = threading.Lock()

    def prepare(self, task: PageTask, cost: AskCost | None, seen: Callable[[Page], None] | None = None) -> Prepared:
        """`seen` is called with the page before it is drafted."""
        with self._turn:
            try:
                document = self._documents.get(task)
            except ConfigError:
                raise
            except DocumentError as e:
                return Prepared(task.number, error=str(e))
            except Exception as e:  # whatever a file does to its reader
                return Prepared(task.number, error=reason(e, task.path.name, task.number))
            return prepare(document, task.number, self._drafter, cost, seen)

    def close(self) -> None:
        with self._turn:
            self._documents.close()


class OpenDocuments:
    """The documents of the last tasks, kept open."""

    def __init__(self, opening: Opening, most: int = MOST_OPEN) -> None:
        self._opening, self._most = opening, most
        self._open: OrderedDict[tuple[object, ...], Document] = OrderedDict()

    def get(self, task: PageTask) -> Document:
        """Raises `DocumentError`."""
        key = (task.path, task.rotate, task.password, *_version(task))
        if key in self._open:
            self._open.move_to_end(key)
            return self._open[key]
        while len(self._open) >= self._most:
            self._open.popitem(last=False)[1].close()
        self._open[key] = self._opening.open(task.path, rotate=task.rotate, password=task.password)
        return self._open[key]

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


def _version(task: PageTask) -> tuple[int, ...]:
    """What tells a file from another one that has been put in its place."""
    with contextlib.suppress(OSError):
        stat = os.stat(task.path)
        return stat.st_ino, stat.st_mtime_ns, stat.st_size
    return ()
