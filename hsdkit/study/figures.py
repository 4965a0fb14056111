"""The figures of one cell, from its record; pure functions. Every table and plot is made of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from hsdkit.study.records import CellRecord, PageRecord, Turn
from hsdkit.study.statistics import Interval, ratio_interval


@dataclass(frozen=True, slots=True)
class Figures:
    """sr_e2e, sr_decode: seconds of plain decoding over the cell's, all pages together (`hsdkit.study.statistics`).
    seconds, decode, draft: mean over pages of the median over rounds. tokens, steps, forwards: means over pages.
    same: share of the pages with the baseline's output, token for token. edit: mean edit distance to its text, 0..1;
    draft_edit: that of the draft, over the pages that had one. metrics: a benchmark's. host_step: mean seconds of a
    pass outside the model. staged: share of the pages whose regions were read first.
    drift: see `CellRecord`.
    """

    pages: int
    sr_e2e: Interval | None
    sr_decode: Interval | None
    seconds: float
    decode: float
    draft: float
    tokens: float
    steps: float
    forwards: float
    tokens_per_step: float
    aal: float
    same: float | None
    edit: float | None
    draft_edit: float | None
    metrics: dict[str, float] = field(default_factory=dict)
    drift: float | None = None
    host_step: float | None = None
    staged: float = 0.0


def figures(record: CellRecord) -> Figures | None:
    """None for a cell without pages."""
    return figures_of(record.pages, record.metrics, record.drift)


def figures_of(
    pages: Sequence[PageRecord], metrics: dict[str, float] | None = None, drift: float | None = None
) -> Figures | None:
    if not pages:
        return None
    steps = sum(p.steps for p in pages)
    passes = sum(p.forwards for p in pages)
    compared = [p for p in pages if p.baseline]
    return Figures(
        pages=len(pages),
        sr_e2e=speedup(compared, lambda t: t.e2e),
        sr_decode=speedup(compared, lambda t: t.decode),
        seconds=_seconds(pages, lambda t: t.e2e),
        decode=_seconds(pages, lambda t: t.decode),
        draft=_seconds(pages, lambda t: t.draft),
        tokens=fmean(p.tokens for p in pages),
        steps=steps / len(pages),
        forwards=fmean(p.forwards for p in pages),
        tokens_per_step=sum(p.emitted for p in pages) / steps if steps else 0.0,
        aal=sum(p.accepted for p in pages) / steps if steps else 0.0,
        same=_mean([float(p.same) for p in pages if p.same is not None]),
        edit=_mean([p.edit for p in pages if p.edit is not None]),
        draft_edit=_mean([p.draft_edit for p in pages if p.draft_edit is not None]),
        metrics=dict(metrics or {}),
        drift=drift,
        host_step=_seconds(pages, lambda t: t.host) * len(pages) / passes if passes else None,
        staged=fmean(p.regions_read > 0 for p in pages),
    )


def speedup(pages: Sequence[PageRecord], seconds: Callable[[Turn], float]) -> Interval | None:
    """How many times longer plain decoding takes for these pages; None without pages."""
    if not pages:
        return None
    return ratio_interval(
        [[seconds(t) for t in p.baseline] for p in pages], [[seconds(t) for t in p.turns] for p in pages]
    )


def prefill_share(page: PageRecord) -> float | None:
    """The part of plain decoding's page latency that is image encoding and prefill: no speculation makes it shorter
    (paper, Table A1). None without a baseline."""
    return median(t.prefill / t.e2e for t in page.baseline) if page.baseline else None


def _seconds(pages: Sequence[PageRecord], seconds: Callable[[Turn], float]) -> float:
    return fmean(median(map(seconds, p.turns)) for p in pages)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
