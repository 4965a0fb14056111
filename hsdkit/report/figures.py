"""The numbers behind the report's drawings: the timeline, the histogram of accepted lengths, the strip of steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hsdkit.results import PageResult, StageResult, Step

#: Upper ends of the histogram's classes of accepted length; the last class is open.
_EDGES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True, slots=True)
class Bar:
    """One phase on the timeline, in seconds. `host` is the part of a decoding phase spent outside the model."""

    phase: str
    start: float
    seconds: float
    host: float = 0.0


@dataclass(frozen=True, slots=True)
class Lane:
    name: str
    bars: tuple[Bar, ...]

    @property
    def seconds(self) -> float:
        return sum(b.seconds for b in self.bars)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Lanes one under the other on a common axis from 0 to `end`. `rest` is page time no phase accounts for;
    `overlapped`: the phases add up to more than the page took, so some ran side by side and are drawn in sequence."""

    lanes: tuple[Lane, ...]
    end: float
    rest: float
    overlapped: bool
    ticks: tuple[float, ...]


STAGE_NAMES = {"regions": "Stage 1 · regions", "page": "Stage 2 · page"}


def timeline(page: PageResult) -> Timeline:
    at = 0.0
    lanes: list[Lane] = []
    if page.draft.seconds:
        lanes.append(Lane("Draft", (Bar("draft", 0.0, page.draft.seconds),)))
        at = page.draft.seconds
    alone = len(page.stages) == 1
    for stage in page.stages:
        bars = []
        for phase in ("encode", "prefill", "decode"):
            seconds = getattr(stage.times, phase)
            bars.append(Bar(phase, at, seconds, stage.times.host if phase == "decode" else 0.0))
            at += seconds
        lanes.append(Lane("Page" if alone and stage.name == "page" else STAGE_NAMES[stage.name], tuple(bars)))
    end = max(at, page.seconds)
    overlapped = at > page.seconds * 1.02
    return Timeline(tuple(lanes), end, 0.0 if overlapped else max(0.0, page.seconds - at), overlapped, ticks(end))


def ticks(end: float) -> tuple[float, ...]:
    """Four to nine round axis marks in (0, end)."""
    if end <= 0:
        return ()
    step = next(s * 10.0**e for e in range(-6, 7) for s in (1, 2, 5) if end / (s * 10.0**e) <= 9)
    return tuple(i * step for i in range(1, int(end / step) + 1) if i * step < end * 0.97)


@dataclass(frozen=True, slots=True)
class Column:
    """Steps whose accepted length lies in a class, by stage."""

    label: str
    regions: int = 0
    page: int = 0

    @property
    def total(self) -> int:
        return self.regions + self.page


def histogram(stages: Iterable[StageResult]) -> tuple[Column, ...]:
    """Steps by accepted length, up to the last class that holds any; empty without steps."""
    lows = (0, *(e + 1 for e in _EDGES))
    labels = [f"{a}" if a == b else f"{a}–{b}" for a, b in zip(lows, _EDGES, strict=False)] + [f"{lows[-1]}+"]
    counts = {"regions": [0] * len(labels), "page": [0] * len(labels)}
    for stage in stages:
        for sequence in stage.sequences:
            for step in sequence.steps:
                counts[stage.name][sum(step.accepted > e for e in _EDGES)] += 1
    columns = [Column(n, r, p) for n, r, p in zip(labels, counts["regions"], counts["page"], strict=True)]
    while columns and not columns[-1].total:
        columns.pop()
    return tuple(columns)


@dataclass(frozen=True, slots=True)
class Strip:
    """Accepted length of each step in order, as SVG path data in a box `width` x 40; `missed` marks drafts of which
    nothing was accepted, `plain` steps without a draft."""

    width: int
    most: int
    hit: str
    missed: str
    plain: str


#: A page of more steps is drawn with several steps a bar (their mean), so that the drawing stays small.
_MOST_BARS = 600
#: Room for that many bars at least, so that a short page does not get fat ones.
_FEWEST_BARS = 120


def strip(steps: Sequence[Step]) -> Strip:
    per_bar = -(-len(steps) // _MOST_BARS) or 1
    groups = [steps[i : i + per_bar] for i in range(0, len(steps), per_bar)]
    means = [sum(s.accepted for s in g) / len(g) for g in groups]
    most = max(means, default=0.0) or 1.0
    paths: dict[str, list[str]] = {"hit": [], "missed": [], "plain": []}
    for x, (group, mean) in enumerate(zip(groups, means, strict=True)):
        kind = "hit" if mean else "missed" if any(s.nodes for s in group) else "plain"
        height = 2 + 38 * mean / most if mean else 2
        paths[kind].append(f"M{x}.5 40v-{height:.1f}")
    return Strip(max(_FEWEST_BARS, len(groups)), round(most), *("".join(paths[k]) for k in ("hit", "missed", "plain")))
