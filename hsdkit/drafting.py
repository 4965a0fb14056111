"""Running a drafter so that nothing it does hurts the page: failures and garbage become a note and an empty draft."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace
from itertools import accumulate
from typing import get_args

from hsdkit.documents import Page
from hsdkit.errors import cause
from hsdkit.pays import NO_DRAFT
from hsdkit.protocols import Drafter
from hsdkit.regions import Box, Draft, Format, Label, Region

log = logging.getLogger(__name__)

#: No page holds more (a dense newspaper page has some 60,000 characters); such a draft would only cost time.
MAX_REGIONS, MAX_CHARACTERS = 2_000, 300_000


def safe_draft(drafter: Drafter, page: Page) -> tuple[Draft, tuple[str, ...]]:
    """The page's draft and notes on what went wrong. `Draft.seconds` is the wall time measured here."""
    start = time.perf_counter()
    try:
        draft = drafter.draft(page)
        if not isinstance(draft, Draft):
            raise TypeError(f"returned {type(draft).__name__} instead of a Draft")
        clean, notes = sound(draft)
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # a plugin may raise anything: libraries exit, extension modules panic
        name = str(getattr(drafter, "name", type(drafter).__name__))
        log.debug("drafter %s failed", name, exc_info=True)
        clean, notes = Draft(drafter=name), (f"{NO_DRAFT}drafter {name!r} failed: {cause(e)}",)
    return replace(clean, seconds=time.perf_counter() - start), notes


def sound(draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """The draft without the regions no one could use (no box, no text type), in plain values and of bounded length."""
    notes = []
    good = [r for r in map(_region, draft.regions) if r is not None]
    if dropped := len(draft.regions) - len(good):
        notes.append(f"drafter {draft.drafter!r}: {dropped} malformed regions left out")
    ends = accumulate(len(r.text) for r in good)
    kept = tuple(r for r, end in zip(good[:MAX_REGIONS], ends, strict=False) if end <= MAX_CHARACTERS)
    if more := len(good) - len(kept):
        notes.append(
            f"drafter {draft.drafter!r}: its last {more} regions left out: "
            f"a draft has at most {MAX_REGIONS} regions and {MAX_CHARACTERS} characters"
        )
    return replace(draft, regions=kept, drafter=str(draft.drafter), notes=tuple(map(str, draft.notes))), tuple(notes)


def _region(region: Region) -> Region | None:
    """The region in plain values (layout models yield numbers of numpy, which JSON does not take), None when it is
    malformed. What is only a hint, level and score, is dropped where it makes no sense."""
    try:
        b, level, score = region.box, region.level, region.score
        box = Box(float(b.x0), float(b.y0), float(b.x1), float(b.y1))
        finite = all(map(math.isfinite, (box.x0, box.y0, box.x1, box.y1)))
        ordered = box.x0 <= box.x1 and box.y0 <= box.y1
        known = isinstance(region.label, Label) and region.format in get_args(Format)
        if not (finite and ordered and known and isinstance(region.text, str)):
            return None
        return replace(
            region,
            box=box,
            text=region.text.encode("utf-8", "replace").decode("utf-8"),  # without lone surrogates
            level=int(level) if level is not None and 1 <= int(level) <= 6 else None,
            score=float(score) if score is not None and 0 <= float(score) <= 1 else None,
        )
    except (AttributeError, TypeError, ValueError, OverflowError):
        return None


def expected_seconds(drafter: Drafter, page: Page) -> float | None:
    """What the drafter expects to take for the page; None when it does not say."""
    expect = getattr(drafter, "expected_seconds", None)
    if expect is None:
        return None
    try:
        seconds = float(expect(page))
    except Exception:
        log.debug("expected_seconds of %r failed", drafter, exc_info=True)
        return None
    return seconds if math.isfinite(seconds) else None
