"""Predictions: recorded steps, a model's shape and a machine make costs, seconds and speedups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hsdkit.results import StageResult
from hsdkit.roofline.costs import Cost, Pass, decoder_cost, vision_cost
from hsdkit.roofline.devices import Device, Machine
from hsdkit.roofline.records import PLAIN, PageRecord, Records
from hsdkit.roofline.shape import Shape
from hsdkit.roofline.steps import Work, plain_work, work


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: vision tower, prompts, verification passes. `encode` of a recording holds image preprocessing too, and
    its `decode` is without the host's part."""

    encode: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0

    def __add__(self, other: Times) -> Times:
        return Times(self.encode + other.encode, self.prefill + other.prefill, self.decode + other.decode)

    @property
    def total(self) -> float:
        return self.encode + self.prefill + self.decode


@dataclass(frozen=True, slots=True)
class SideWork:
    """Of one side over all pages: the page stages' work, that of the stages before them, tokens of the page outputs,
    and seconds as recorded: drafting, the host's part of decoding, the phases of both kinds of stages."""

    name: str
    page: Work
    before: Work
    tokens: int
    draft: float
    host: float
    measured_page: Times
    measured_before: Times
    recorded: bool = True

    @property
    def forwards(self) -> int:
        """Verification passes."""
        return len(self.page.passes) + len(self.before.passes)

    def cost(self, shape: Shape, dtype: str) -> Cost:
        """Of all verification passes."""
        passes = Counter((*self.page.passes, *self.before.passes))
        costs = ((decoder_cost(shape.decoder, p, dtype), n) for p, n in passes.items())
        return sum((Cost(n * c.flops, n * c.bytes) for c, n in costs), Cost())

    def prompt_cost(self, shape: Shape, dtype: str) -> Cost:
        """Of all prompts and their images."""
        both = self.page + self.before
        found = sum((decoder_cost(shape.decoder, p, dtype) for p in both.prefills), Cost())
        if shape.vision:
            found += sum((vision_cost(shape.vision, n, dtype) for n in both.images), Cost())
        return found


@dataclass(frozen=True, slots=True)
class Prediction:
    """Of one side on one machine."""

    side: SideWork
    cost: Cost
    prompt_cost: Cost
    page: Times
    before: Times

    @property
    def model(self) -> float:
        """Seconds of all verification passes, Stage 1's prompts not counted."""
        return self.page.decode + self.before.decode

    @property
    def decode(self) -> float:
        """As `hsdkit bench` counts decoding: drafting, verification, the prompts of Stage 1, the host's part."""
        return self.side.draft + self.side.host + self.before.total + self.page.decode

    @property
    def e2e(self) -> float:
        """And the page's own image encoding and prefill; rendering is left out."""
        return self.decode + self.page.encode + self.page.prefill


def sides(records: Records, prompt_scale: float = 1.0) -> list[SideWork]:
    """The baseline, recorded or else what plain decoding of the same pages must do, then every other recorded side.
    Only pages that all recorded sides have."""
    names = records.sides
    common = set.intersection(*(set(records.of(n)) for n in names))
    pages = {n: [p for key, p in records.of(n).items() if key in common] for n in names}
    found = []
    if PLAIN not in names:
        with_page = next((n for n in names if any(s.name == "page" for p in pages[n] for s in p.stages)), names[0])
        found.append(_plain_side(pages[with_page], prompt_scale))
    order = sorted(names, key=lambda n: n != PLAIN)
    return found + [_side(n, pages[n], records.max_rows, prompt_scale) for n in order]


def _side(name: str, pages: Sequence[PageRecord], max_rows: int, scale: float) -> SideWork:
    page, before = _parts(pages)
    return SideWork(
        name,
        _sum(work(s, max_rows, scale) for s in page),
        _sum(work(s, max_rows, scale) for s in before),
        _tokens(page or before),
        sum(p.draft for p in pages),
        sum(s.times.host for s in (*page, *before)),
        _measured(page),
        _measured(before),
    )


def _plain_side(pages: Sequence[PageRecord], scale: float) -> SideWork:
    page, _ = _parts(pages)
    made = _sum(plain_work(s, scale) for s in page)
    return SideWork(PLAIN, made, Work(), _tokens(page), 0.0, 0.0, Times(), Times(), recorded=False)


def _parts(pages: Iterable[PageRecord]) -> tuple[list[StageResult], list[StageResult]]:
    stages = [s for p in pages for s in p.stages]
    return [s for s in stages if s.name == "page"], [s for s in stages if s.name != "page"]


def _sum(works: Iterable[Work]) -> Work:
    found = list(works)
    return Work(
        tuple(p for w in found for p in w.prefills),
        tuple(p for w in found for p in w.passes),
        tuple(n for w in found for n in w.images),
    )


def _tokens(stages: Iterable[StageResult]) -> int:
    return sum(1 + sum(step.emitted for step in q.steps) for s in stages for q in s.sequences)


def _measured(stages: Iterable[StageResult]) -> Times:
    return sum((Times(s.times.encode, s.times.prefill, in_model(s)) for s in stages), Times())


def in_model(stage: StageResult) -> float:
    """Seconds of its verification passes, as recorded."""
    return max(0.0, stage.times.decode - stage.times.host)


def predict(side: SideWork, shape: Shape, machine: Machine, dtype: str) -> Prediction:
    return Prediction(
        side,
        side.cost(shape, dtype),
        side.prompt_cost(shape, dtype),
        _times(side.page, shape, machine, dtype),
        _times(side.before, shape, machine, dtype),
    )


def _times(made: Work, shape: Shape, machine: Machine, dtype: str) -> Times:
    return Times(
        sum(machine.vision_seconds(shape, n, dtype) for n in made.images),
        pass_seconds(made.prefills, shape, machine, dtype),
        pass_seconds(made.passes, shape, machine, dtype),
    )


def pass_seconds(passes: Iterable[Pass], shape: Shape, machine: Machine, dtype: str) -> float:
    """Of all of them together."""
    return sum(n * machine.pass_seconds(shape, p, dtype) for p, n in Counter(passes).items())


def speedup_of_sums(plain: Cost, other: Cost, device: Device, dtype: str) -> float:
    """The paper's roofline (Appendix B): both sides as one sum of work each. The sum over passes, each with its own
    limit, is never faster."""
    return device.seconds(plain, dtype) / device.seconds(other, dtype)
