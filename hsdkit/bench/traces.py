"""What each side did on each page, step by step: the record that predictions for other devices and models start from.

Of several rounds with the same steps, each step counts with its fastest run: on a shared machine others only ever add.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from hsdkit.bench.sample import Sample
from hsdkit.results import SequenceResult, StageResult, StageTimes, Step


@dataclass(frozen=True, slots=True)
class PageTrace:
    """Of one side on one page: the median seconds of drafting, and its stages without texts and token ids, their times
    the least of the rounds."""

    document: str
    page: int
    side: str
    draft: float
    stages: tuple[StageResult, ...]


def traces(samples: Iterable[Sample]) -> list[PageTrace]:
    """One a page and side, in order of appearance."""
    groups: dict[tuple[str, int, str], list[Sample]] = {}
    for s in samples:
        groups.setdefault((s.document, s.page, s.side), []).append(s)
    return [
        PageTrace(*key, median(s.draft for s in rounds), _stages([s.output.stages for s in rounds]))
        for key, rounds in groups.items()
    ]


def _stages(rounds: Sequence[tuple[StageResult, ...]]) -> tuple[StageResult, ...]:
    """The first round's, with the times of all rounds that took the same steps (budgets may follow the clock)."""
    first = rounds[0]
    alike = [other for other in rounds if list(map(_shape, other)) == list(map(_shape, first))]
    return tuple(_stage([other[i] for other in alike]) for i in range(len(first)))


def _shape(stage: StageResult) -> list[list[tuple[int, int]]]:
    return [[(step.nodes, step.accepted) for step in q.steps] for q in stage.sequences]


def _stage(rounds: Sequence[StageResult]) -> StageResult:
    first = rounds[0]
    times = StageTimes(*(min(getattr(r.times, n) for r in rounds) for n in ("encode", "prefill", "decode", "host")))
    sequences = tuple(_sequence([r.sequences[i] for r in rounds]) for i in range(len(first.sequences)))
    return replace(first, times=times, sequences=sequences)


def _sequence(rounds: Sequence[SequenceResult]) -> SequenceResult:
    columns = zip(*(q.steps for q in rounds), strict=True)
    steps: tuple[Step, ...] = tuple(replace(same[0], seconds=min(s.seconds for s in same)) for same in columns)
    return replace(rounds[0], tokens=(), text="", pieces=(), steps=steps)
