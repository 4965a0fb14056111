"""Running a drafter so that nothing it does hurts the page: failures and garbage become a note and an empty draft."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace

from hsdkit.documents import Page
from hsdkit.errors import HsdkitError
from hsdkit.protocols import Drafter
from hsdkit.regions import Box, Draft, Label, Region

log = logging.getLogger(__name__)


def safe_draft(drafter: Drafter, page: Page) -> tuple[Draft, tuple[str, ...]]:
    """The page's draft and notes on what went wrong. `Draft.seconds` is the wall time measured here."""
    start = time.perf_counter()
    try:
        draft = drafter.draft(page)
        if not isinstance(draft, Draft):
            raise TypeError(f"returned {type(draft).__name__} instead of a Draft")
        clean, notes = _sound(draft)
    except Exception as e:  # a plugin may raise anything
        log.debug("drafter %s failed", drafter.name, exc_info=True)
        reason = str(e) if isinstance(e, HsdkitError) else f"{type(e).__name__}: {e}"
        clean, notes = Draft(drafter=drafter.name), (f"no draft: drafter {drafter.name!r} failed: {reason}",)
    return replace(clean, seconds=time.perf_counter() - start), notes


def _sound(draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """The draft without the regions no one could use (no box, no text type), in plain values."""
    good = tuple(_plain(r) for r in draft.regions if _is_sound(r))
    dropped = len(draft.regions) - len(good)
    notes = (f"drafter {draft.drafter!r}: {dropped} malformed regions left out",) if dropped else ()
    return replace(draft, regions=good, notes=tuple(map(str, draft.notes))), notes


def _plain(region: Region) -> Region:
    """Layout models yield numbers of numpy, which JSON does not take."""
    b, level, score = region.box, region.level, region.score
    return replace(
        region,
        box=Box(float(b.x0), float(b.y0), float(b.x1), float(b.y1)),
        level=None if level is None else int(level),
        score=None if score is None else float(score),
    )


def _is_sound(region: Region) -> bool:
    return (
        isinstance(region, Region)
        and isinstance(region.text, str)
        and isinstance(region.label, Label)
        and all(math.isfinite(v) for v in (region.box.x0, region.box.y0, region.box.x1, region.box.y1))
        and region.box.x0 <= region.box.x1
        and region.box.y0 <= region.box.y1
    )


def expected_seconds(drafter: Drafter, page: Page) -> float | None:
    """What the drafter expects to take for the page; None when it does not say."""
    expect = getattr(drafter, "expected_seconds", None)
    if expect is None:
        return None
    try:
        seconds = float(expect(page))
    except Exception:
        log.debug("drafter %s: expected_seconds failed", drafter.name, exc_info=True)
        return None
    return seconds if math.isfinite(seconds) else None
