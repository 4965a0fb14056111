"""What each side did on each page, step by step: the record that predictions for other devices and models start from.

Of several rounds the one that took the median time counts, as it was: its steps and its times belong together. Rounds
may differ in their steps, as budgets follow the clock, so they are not mixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median, median_low

from hsdkit.bench.sample import Sample
from hsdkit.results import SequenceResult, StageResult


@dataclass(frozen=True, slots=True)
class PageTrace:
    """Of one side on one page: the median seconds of drafting; the stages of the median round without texts and token
    ids (of an even number of rounds, of the faster one in the middle); and `rounds`, the seconds of decoding
    (`decoding_seconds`) in each round, in order."""

    document: str
    page: int
    side: str
    draft: float
    stages: tuple[StageResult, ...]
    rounds: tuple[float, ...]


def traces(samples: Iterable[Sample]) -> list[PageTrace]:
    """One a page and side, in order of appearance."""
    groups: dict[tuple[str, int, str], list[Sample]] = {}
    for s in samples:
        groups.setdefault((s.document, s.page, s.side), []).append(s)
    return [_trace(key, rounds) for key, rounds in groups.items()]


def decoding_seconds(stages: Iterable[StageResult]) -> float:
    """Of verification, and of the images and prompts of region crops: all but the image and prompt of the page."""
    return sum(s.times.decode if s.name == "page" else s.times.total for s in stages)


def _trace(key: tuple[str, int, str], rounds: Sequence[Sample]) -> PageTrace:
    seconds = [decoding_seconds(s.output.stages) for s in rounds]
    usual = rounds[seconds.index(median_low(seconds))]
    stages = tuple(replace(stage, sequences=tuple(map(_bare, stage.sequences))) for stage in usual.output.stages)
    return PageTrace(*key, median(s.draft for s in rounds), stages, tuple(seconds))


def _bare(sequence: SequenceResult) -> SequenceResult:
    return replace(sequence, tokens=(), text="", pieces=())
