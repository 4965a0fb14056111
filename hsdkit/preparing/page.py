"""One page opened, rendered and drafted: what a task asks for, and what comes of it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hsdkit.documents import Document, Page, Pages, open_document
from hsdkit.drafting import expected_seconds, safe_draft
from hsdkit.errors import ConfigError, HsdkitError, PluginError, described
from hsdkit.pays import NEGLIGIBLE, PlainCost, reason_to_skip
from hsdkit.protocols import Drafter
from hsdkit.regions import Draft

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PageTask:
    """One page to parse: `number` counts from 1 in the file `path`. `key` is the caller's own name for it; `rotate` and
    `password` take the place of the run's for this page."""

    path: Path
    number: int
    key: int | str = ""
    rotate: int | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True)
class Opening:
    """How a run opens its documents."""

    dpi: float
    password: str | None
    rotate: int
    max_pixels: int

    def open(
        self,
        path: str | os.PathLike[str],
        *,
        pages: Pages = None,
        rotate: int | None = None,
        password: str | None = None,
    ) -> Document:
        """The document, or these `pages` of it; `rotate` and `password` in the place of the run's. Raises
        `DocumentError`."""
        return open_document(
            path,
            pages=pages,
            dpi=self.dpi,
            password=self.password if password is None else password,
            rotate=self.rotate if rotate is None else rotate,
            max_pixels=self.max_pixels,
        )


@dataclass(frozen=True)
class Prepared:
    """A page ready to be decoded. `page` is None where it could not be read; `error` then says why. `notes` are on the
    draft, `characters` how many are printed on the page where that was asked, `seconds` what all this took."""

    number: int
    page: Page | None = None
    draft: Draft = field(default_factory=Draft)
    notes: tuple[str, ...] = ()
    characters: float | None = None
    error: str | None = None
    seconds: float = 0.0


#: What plain decoding costs; asked only where a drafter is dear enough for it to matter, as it may have to be measured.
#: None: drafts are made whatever they cost.
AskCost = Callable[[], PlainCost]


def prepare(
    document: Document,
    number: int,
    drafter: Drafter | None,
    cost: AskCost | None,
    seen: Callable[[Page], None] | None = None,
) -> Prepared:
    """The page and its draft (none without a drafter); `seen` is called with the page before it is drafted. Whatever
    goes wrong with it is its `error`; raises `ConfigError` or `PluginError` for what would fail every page alike."""
    start = time.perf_counter()
    page: Page | None = None
    try:
        page = document.page(number)
        if seen is not None:
            seen(page)
        draft, notes, characters = drafted(page, drafter, cost)
        return Prepared(number, page, draft, notes, characters, None, time.perf_counter() - start)
    except (ConfigError, PluginError):
        raise
    except Exception as e:  # whatever else happens on one page is that page's result
        log.debug("%s, page %d failed", document.name, number, exc_info=True)
        error = reason(e, document.name, number)
        return Prepared(number, page, error=error, seconds=time.perf_counter() - start)


def drafted(page: Page, drafter: Drafter | None, cost: AskCost | None) -> tuple[Draft, tuple[str, ...], float | None]:
    """The page's draft, notes on it, and how many characters are printed on the page (None when nobody would act on
    it). Empty without a drafter, and where drafting would not pay."""
    if drafter is None:
        return Draft(), (), None
    expected = expected_seconds(drafter, page) if cost is not None else None
    characters: float | None = None
    if cost is not None and expected is not None and expected > NEGLIGIBLE:
        from hsdkit.ink import characters_on

        characters = characters_on(page.image)
        known = cost()
        if why := reason_to_skip(expected, known.seconds(characters), known.experience.speedup):
            return Draft(), (why,), characters
    return *safe_draft(drafter, page), characters


def reason(error: Exception, name: str, number: int) -> str:
    """The error of a page of the file `name`, as its result has it."""
    where = f"{name}, page {number}"
    if isinstance(error, HsdkitError):
        return str(error) if str(error).startswith(name) else f"{where}: {error}"
    return f"{where}: {described(error)}"
