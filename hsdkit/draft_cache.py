"""Drafts of costly drafters, kept on disk by what they depend on: the page, the drafter, its version and settings.

An entry is a file of drafts like any other (`drafter=replay` reads it). What cannot be read is not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hsdkit.documents import Page
from hsdkit.draft_files import SUFFIX, SavedDraft, load_drafts, save_drafts
from hsdkit.errors import DocumentError, HsdkitError
from hsdkit.home import home
from hsdkit.protocols import Drafter
from hsdkit.regions import Draft

log = logging.getLogger(__name__)

#: Most bytes of drafts that are kept; those not used for longest go first.
MOST_BYTES = 500_000_000


class DraftCache:
    """A folder of drafts; several processes may use it at the same time. Nothing it does fails: what it cannot store is
    not stored."""

    def __init__(self, folder: Path | None = None, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder or home() / "drafts"
        self._most = most_bytes
        self._pruned = False
        self._last: tuple[Page, str] | None = None  # a page is asked for several times in a row

    def get(self, page: Page, key: str) -> Draft | None:
        file = self._file(page, key)
        try:
            [saved] = load_drafts(file).values()
            os.utime(file)
        except (HsdkitError, OSError, ValueError):  # not there, cut short, of another format
            return None
        return saved.draft if (saved.width, saved.height) == (page.width, page.height) else None

    def has(self, page: Page, key: str) -> bool:
        return self._file(page, key).is_file()

    def put(self, page: Page, key: str, draft: Draft) -> None:
        file = self._file(page, key)
        part = file.with_name(f".{secrets.token_hex(4)}-{file.name}")  # two processes may write the same entry
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            save_drafts(part, [SavedDraft(page.source, page.number, page.width, page.height, draft)])
            os.replace(part, file)
        except Exception as e:  # no space, no rights, or values in the draft that JSON does not take
            log.debug("draft not cached: %s", e)
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)
        if not self._pruned:  # once a run: looking through the folder takes its time
            self._pruned = True
            self.prune(self._most)

    def size(self) -> tuple[int, int]:
        """(entries, bytes)."""
        entries = self._entries()
        return len(entries), sum(size for _, size, _ in entries)

    def prune(self, most_bytes: int) -> None:
        """Remove the entries that have not been used for longest until at most so many bytes are left."""
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        for _, size, file in entries:
            if total <= most_bytes:
                break
            with contextlib.suppress(OSError):
                file.unlink()
                total -= size

    def _entries(self) -> list[tuple[float, int, Path]]:
        """(time of last use, bytes, file) of each, and of what a killed process had half written."""
        found = []
        for file in self.folder.glob("*/*"):
            with contextlib.suppress(OSError):  # another process has removed it
                stat = file.stat()
                found.append((stat.st_mtime, stat.st_size, file))
        return found

    def _file(self, page: Page, key: str) -> Path:
        if self._last is None or self._last[0] is not page:
            self._last = page, page_digest(page)
        name = hashlib.sha256(f"{self._last[1]} {key}".encode()).hexdigest()
        return self.folder / name[:2] / f"{name[2:]}{SUFFIX}"


def page_digest(page: Page) -> str:
    """Of all that a costly drafter can see of a page: its pixels and, where it is handed the PDF, the text in that."""
    digest = hashlib.sha256(f"{page.width}x{page.height} ".encode())
    digest.update(page.image.tobytes())
    if page.read_pdf is not None:
        try:
            digest.update(repr(page.text_layer).encode("utf-8", "backslashreplace"))
        except DocumentError as e:
            digest.update(str(e).encode())
    return digest.hexdigest()


class CachedDrafter:
    """A drafter that is asked only for pages that are not in the cache. Loads nothing until one is not."""

    def __init__(self, drafter: Drafter, key: str, cache: DraftCache) -> None:
        self.name = drafter.name
        self.drafter, self._key, self._cache = drafter, key, cache

    def draft(self, page: Page) -> Draft:
        if found := self._cache.get(page, self._key):
            return replace(found, notes=(*found.notes, f"draft from the cache; it took {found.seconds:.2f} s to make"))
        draft = self.drafter.draft(page)
        self._cache.put(page, self._key, draft)
        return draft

    def expected_seconds(self, page: Page) -> float:
        """Next to nothing for a page that is in the cache. Raises `AttributeError` if the drafter does not say."""
        expect: Callable[[Page], float] = getattr(self.drafter, "expected_seconds")  # noqa: B009 (no part of Drafter)
        return 0.0 if self._cache.has(page, self._key) else expect(page)

    def __getattr__(self, name: str) -> object:
        """`load` and `close` are those of the drafter, where it has them."""
        return getattr(self.drafter, name)


def cached(drafter: Drafter) -> Drafter:
    """The drafter with its drafts cached if it has a `cache_key`, which says that they cost enough; else as it is. Of a
    drafter that builds on another one, its `base`, the drafts of that one are cached."""
    base = getattr(drafter, "base", None)
    if base is not None and hasattr(base, "draft"):
        with contextlib.suppress(AttributeError):  # one that cannot be exchanged
            drafter.base = cached(base)  # type: ignore[attr-defined]
        return drafter
    try:
        key = getattr(drafter, "cache_key", None)
    except Exception:  # a plugin may raise anything
        log.debug("cache_key of %r failed", drafter, exc_info=True)
        key = None
    return CachedDrafter(drafter, str(key), DraftCache()) if key else drafter
