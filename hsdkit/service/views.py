"""A page as clients and the browser page see it: what was read, where, and who wrote each token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hsdkit.regions import OMITTED, Region
from hsdkit.report import safe_html
from hsdkit.report.tokens import Run, runs, shares
from hsdkit.report.writer import small_jpeg
from hsdkit.results import PageResult, final_stage
from hsdkit.totals import Totals

if TYPE_CHECKING:
    from PIL.Image import Image

#: Longest side of a page image in pixels, and its JPEG quality: about 150 kB a page.
_MOST_SIDE, _QUALITY = 1200, 78

#: Most characters of a region's text: it is a hint, the draft itself is in the result.
_HINT = 300


def page_view(page: PageResult) -> dict[str, Any]:
    """A page as JSON: what clients are told (`schemas.ParsedPage`), then what only the browser page draws. `html` is
    safe (`report.safe_html`); all else is text."""
    last = final_stage(page.stages)
    sequences = last.sequences if last else ()
    totals = Totals.of(page)
    return {
        "number": page.number,
        "error": page.error,
        "origin": page.origin,
        "saved_by": page.saved_by,
        "finish_reason": page.finish_reason,
        "markdown": page.markdown,
        "width": page.width,
        "height": page.height,
        "seconds": round(page.seconds, 4),
        "tokens": page.page_tokens,
        "steps": totals.steps,
        "tokens_per_step": round(totals.tokens_per_step, 3),
        "aal": round(totals.aal, 3),
        "tau": page.tau,
        "exact": page.exact,
        "verifier": page.verifier,
        "notes": [*page.notes, *page.draft.notes],
        "regions": [_region(r) for r in page.regions],
        "html": str(safe_html.render(page.markdown)),
        "drafter": page.draft.drafter,
        "drafted": [_region(r) for r in page.draft.regions],
        "runs": [_run(run) for sequence in sequences for run in runs(sequence)] or _plain(sequences),
        "shares": {origin.value: n for origin, n in shares(sequences).items()},
    }


def _region(region: Region) -> dict[str, Any]:
    box = region.box
    return {
        "box": [round(v, 1) for v in (box.x0, box.y0, box.x1, box.y1)],
        "label": region.label.value,
        "text": region.text[:_HINT],
        "left_out": region.label in OMITTED or not region.text.strip(),
    }


def _run(run: Run) -> dict[str, Any]:
    return {"origin": run.origin.value, "text": "".join(run.pieces), "tokens": len(run.pieces), "caption": run.caption}


def _plain(sequences: Any) -> list[dict[str, Any]]:
    """Of a sequence whose tokens have no texts of their own."""
    return [{"origin": "model", "text": s.text, "tokens": len(s.tokens), "caption": ""} for s in sequences if s.text]


def jpeg(image: Image) -> bytes:
    """The page's image, small enough for a browser."""
    return small_jpeg(image, _MOST_SIDE, _QUALITY)
