"""From samples to figures: ratios page by page and round by round, their median and spread; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

from hsdkit.bench.sample import Difference, Sample


@dataclass(frozen=True, slots=True)
class Spread:
    """Of paired ratios: median, quartiles, extremes, how many."""

    median: float
    low: float
    high: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, _, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
        return cls(median(values), low, high, min(values), max(values), len(values))


@dataclass(frozen=True, slots=True)
class Summary:
    """One side. Seconds and counts are means over pages and rounds.

    `e2e`, `decode`: see `Sample`. `speedups` maps a reference side to (end to end, decoding) ratios, reference
    over this side, one ratio a page and round. `differing` pages have an output unlike the baseline's in some round.
    """

    side: str
    e2e: float
    decode: float
    phases: dict[str, float]
    tokens: float
    tokens_per_step: float
    aal: float
    forwards: float
    speedups: dict[str, tuple[Spread, Spread]]
    pages: int
    differing: tuple[tuple[str, int, Difference], ...]


def summarise(samples: Iterable[Sample], references: Sequence[str]) -> list[Summary]:
    """One summary a side, in order of appearance. `references` name sides that the others are compared with."""
    by_side: dict[str, list[Sample]] = {}
    for sample in samples:
        by_side.setdefault(sample.side, []).append(sample)
    return [
        _summary(side, own, {r: by_side[r] for r in references if r != side and r in by_side})
        for side, own in by_side.items()
    ]


def _summary(side: str, own: Sequence[Sample], references: dict[str, list[Sample]]) -> Summary:
    steps = [step for s in own for stage in s.output.stages for q in stage.sequences for step in q.steps]
    accepted = sum(step.accepted for step in steps)
    differing = {(s.document, s.page): s.difference for s in reversed(own) if s.difference}
    return Summary(
        side=side,
        e2e=fmean(s.e2e for s in own),
        decode=fmean(s.decode for s in own),
        phases=_phases(own),
        tokens=fmean(len(s.output.tokens) for s in own),
        tokens_per_step=sum(step.emitted for step in steps) / len(steps) if steps else 0.0,
        aal=accepted / len(steps) if steps else 0.0,
        forwards=fmean(sum(stage.forwards for stage in s.output.stages) for s in own),
        speedups={
            name: (_ratios(other, own, lambda s: s.e2e), _ratios(other, own, lambda s: s.decode))
            for name, other in references.items()
        },
        pages=len({(s.document, s.page) for s in own}),
        differing=tuple((d, p, found) for (d, p), found in sorted(differing.items())),
    )


def _phases(own: Sequence[Sample]) -> dict[str, float]:
    """Mean seconds by phase. `host` is the part of `decode` outside the model; `other` is time between the stages."""
    times = [[stage.times for stage in s.output.stages] for s in own]
    found = {"render": fmean(s.render for s in own), "draft": fmean(s.draft for s in own)}
    for phase in ("encode", "prefill", "decode", "host"):
        found[phase] = fmean(sum(getattr(t, phase) for t in stages) for stages in times)
    inside = fmean(sum(t.total for t in stages) for stages in times)
    return found | {"other": max(0.0, fmean(s.output.verify for s in own) - inside)}


def _ratios(reference: Iterable[Sample], own: Iterable[Sample], seconds: Callable[[Sample], float]) -> Spread:
    base = {(s.document, s.page, s.round): seconds(s) for s in reference}
    return Spread.of([base[s.document, s.page, s.round] / seconds(s) for s in own])
