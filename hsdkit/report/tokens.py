"""Who wrote each token: cuts a decoded sequence into runs of tokens with the same origin."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from hsdkit.results import SequenceResult, Step


class Origin(StrEnum):
    """accepted: drafted, and the model agreed. corrected: the model's own token in place of drafted ones it did not
    agree with. model: the model's own token where there was no draft, or none left."""

    ACCEPTED = "accepted"
    CORRECTED = "corrected"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive tokens of one origin. `first` and `last` are step numbers from 1; 0 is the prefill. A run spans
    several steps only where the model wrote undrafted tokens one by one; `seconds` is their sum. `rejected` is what the
    draft has in the place of a correction, where it is known."""

    origin: Origin
    pieces: tuple[str, ...]
    first: int
    last: int
    nodes: int = 0
    accepted: int = 0
    source: str = ""
    seconds: float = 0.0
    rejected: str = ""

    @property
    def caption(self) -> str:
        """One line for the reader of the report."""
        if self.last == 0:
            return "first token, written by the prefill"
        if self.origin is Origin.MODEL and self.nodes:
            return f"step {self.first} · written by the model, all {self.nodes} drafted were accepted before it"
        if self.origin is Origin.MODEL:
            steps = f"step {self.first}" if self.first == self.last else f"steps {self.first} to {self.last}"
            return f"{steps} · written by the model, nothing drafted · {self.seconds * 1e3:.1f} ms"
        what = (
            f"accepted {self.accepted} of {self.nodes} drafted"
            if self.origin is Origin.ACCEPTED
            else f"the model's own, after {self.accepted} accepted of {self.nodes} drafted"
        )
        source = f" · from {self.source}" if self.source else ""
        if self.rejected and self.origin is Origin.CORRECTED:
            source += f" · the draft has: {self.rejected!r}"
        return f"step {self.first} · {what}{source} · {self.seconds * 1e3:.1f} ms"


def runs(sequence: SequenceResult) -> list[Run]:
    """The sequence's pieces as runs, in order; their pieces joined are the sequence's text.

    The first token comes from the prefill; each step emits `accepted` draft tokens, then its bonus token if any.
    """
    pieces = sequence.pieces
    found = [Run(Origin.MODEL, pieces[:1], 0, 0)] if pieces else []
    at = 1
    for number, step in enumerate(sequence.steps, 1):
        found += _runs_of_step(step, number, pieces[at : at + step.emitted])
        at += step.emitted
    return list(_merged(found))


def _runs_of_step(step: Step, number: int, pieces: Sequence[str]) -> list[Run]:
    base = Run(
        Origin.ACCEPTED, (), number, number, step.nodes, step.accepted, step.source, step.seconds, step.rejected or ""
    )
    own = Origin.CORRECTED if step.nodes > step.accepted else Origin.MODEL
    parts = (
        replace(base, pieces=tuple(pieces[: step.accepted])),
        replace(base, origin=own, pieces=tuple(pieces[step.accepted :])),
    )
    return [run for run in parts if run.pieces]


def _merged(found: Iterable[Run]) -> Iterable[Run]:
    """Joins neighbouring undrafted steps: one run instead of one a token."""
    last: Run | None = None
    for run in found:
        undrafted = run.origin is Origin.MODEL and not run.nodes
        if undrafted and last and last.last and last.origin is Origin.MODEL and not last.nodes:
            last = replace(last, pieces=last.pieces + run.pieces, last=run.last, seconds=last.seconds + run.seconds)
            continue
        if last:
            yield last
        last = run
    if last:
        yield last


def shares(sequences: Iterable[SequenceResult]) -> dict[Origin, int]:
    """Tokens of each origin, those that the repetition guard cut off not counted."""
    count = dict.fromkeys(Origin, 0)
    for run in (run for sequence in sequences for run in runs(sequence)):
        count[run.origin] += len(run.pieces)
    return count
