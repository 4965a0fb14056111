"""What the same pages cost: steps and times of one side, and how much faster it is than the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from hsdkit.results import PageResult
from hsdkit.totals import Totals

#: Upper ends of the shares that pages are grouped by in Table A1 of the paper.
SHARES = (0.2, 0.4, 0.6, 0.8, 1.0)

Pair = tuple[PageResult, PageResult]


def cost(pages: Sequence[PageResult]) -> dict[str, Any]:
    """Sums and means over the pages that were decoded; seconds are of all of them. `forwards` are passes of the model
    after the prefill, a batched one counted once."""
    done = [page for page in pages if page.error is None]
    totals = Totals.over(done)
    return {
        "pages": len(done),
        "aal": totals.aal if totals.steps else None,
        "tokens_per_step": totals.tokens_per_step if totals.steps else None,
        "steps": totals.steps,
        "forwards": sum(stage.forwards for page in done for stage in page.stages),
        "page_tokens": totals.page_tokens,
        "tokens": totals.tokens,
        "seconds_per_page": totals.wall / len(done) if done else None,
        "seconds": totals.seconds,
        "host_seconds": sum(stage.times.host for page in done for stage in page.stages),
        "accepted_lengths": {str(length): n for length, n in sorted(totals.accepted_lengths.items())},
        "finish_reasons": dict(totals.finish_reasons),
    }


def decode_seconds(page: PageResult, drafting: bool = True) -> float:
    """Drafting and verification: all but rendering and the encoding and prefill of the page itself. The encoding and
    prefill of region crops are part of it: they are a price of speculation."""
    spent = sum(s.times.total - (s.times.encode + s.times.prefill) * (s.name == "page") for s in page.stages)
    return spent + (page.draft.seconds if drafting else 0.0)


def prefill_share(page: PageResult) -> float:
    """The part of a page's latency that its image encoding and prefill take."""
    prefill = sum(s.times.encode + s.times.prefill for s in page.stages if s.name == "page")
    return prefill / page.seconds if page.seconds > 0 else 0.0


def both_done(pairs: Sequence[Pair]) -> list[Pair]:
    return [(base, other) for base, other in pairs if base.error is None and other.error is None]


def speedup(pairs: Sequence[Pair]) -> dict[str, Any] | None:
    """Of (baseline, side) pages that both decoded: ratios of all seconds together, and the median of those by page.

    `e2e` is page latency with all that it holds; `decode` leaves out what both pay (rendering, the page's encoding and
    prefill); `decode_without_draft` leaves the drafter's time out as well. `same_text` counts pages with the same
    output. None where there are no such pages.
    """
    pairs = both_done(pairs)
    if not pairs:
        return None
    return {
        "pages": len(pairs),
        "e2e": _ratio([(b.seconds, s.seconds) for b, s in pairs]),
        "e2e_median": _median([(b.seconds, s.seconds) for b, s in pairs]),
        "decode": _ratio([(decode_seconds(b), decode_seconds(s)) for b, s in pairs]),
        "decode_median": _median([(decode_seconds(b), decode_seconds(s)) for b, s in pairs]),
        "decode_without_draft": _ratio([(decode_seconds(b, False), decode_seconds(s, False)) for b, s in pairs]),
        "same_text": sum(b.text == s.text for b, s in pairs),
    }


def by_prefill_share(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Speedups of the pages whose baseline spends up to 20, 40, 60, 80 and 100% of its time on the prefill."""
    pairs, rows, low = both_done(pairs), [], 0.0
    for high in SHARES:
        here = [p for p in pairs if low <= prefill_share(p[0]) < high or (high == 1.0 <= prefill_share(p[0]))]
        if found := speedup(here):
            rows.append({"from": low, "to": high} | found)
        low = high
    return rows


def _ratio(times: Sequence[tuple[float, float]]) -> float | None:
    other = sum(t for _, t in times)
    return sum(t for t, _ in times) / other if other > 0 else None


def _median(times: Sequence[tuple[float, float]]) -> float | None:
    ratios = [base / other for base, other in times if other > 0]
    return median(ratios) if ratios else None
