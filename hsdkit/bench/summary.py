"""From samples to figures: ratios page by page and round by round, their median and spread; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
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
    """One side. Seconds are means over pages of the median over rounds, counts are means over pages and rounds.

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
        e2e=_seconds(own, lambda s: s.e2e),
        decode=_seconds(own, lambda s: s.decode),
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
    """Seconds by phase. `host` is the part of `decode` outside the model; `other` is time between the stages."""
    found = {"render": _seconds(own, lambda s: s.render), "draft": _seconds(own, lambda s: s.draft)}
    for phase in ("encode", "prefill", "decode", "host"):
        found[phase] = _seconds(own, partial(_phase, name=phase))
    return found | {"other": _seconds(own, lambda s: max(0.0, s.output.verify - _phase(s, "total")))}


def _phase(sample: Sample, name: str) -> float:
    return sum(getattr(stage.times, name) for stage in sample.output.stages)


def _seconds(own: Iterable[Sample], seconds: Callable[[Sample], float]) -> float:
    """The mean over pages of the median over rounds: one disturbed round does not move it."""
    pages: dict[tuple[str, int], list[float]] = {}
    for s in own:
        pages.setdefault((s.document, s.page), []).append(seconds(s))
    return fmean(median(rounds) for rounds in pages.values())


def _ratios(reference: Iterable[Sample], own: Iterable[Sample], seconds: Callable[[Sample], float]) -> Spread:
    base = {(s.document, s.page, s.round): seconds(s) for s in reference}
    return Spread.of([base[s.document, s.page, s.round] / seconds(s) for s in own])
