"""How far predictions are off on pages that they know nothing of: each page from the machine as it was measured, its
own steps, and what the recording's other pages took.

What is measured are passes on a quiet machine. In a run there is other work between them, which takes the caches, and
the machine may be busier, by much the same factor for all. So the other pages give one factor for the passes of all
sides, one for prompts, and for each side the seconds that the host spends on a pass: medians, so that a page that
something came into does not make others wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from hsdkit.errors import DocumentError
from hsdkit.roofline.devices import Machine
from hsdkit.roofline.predict import in_model, pass_seconds
from hsdkit.roofline.records import PageRecord, Records
from hsdkit.roofline.shape import Shape
from hsdkit.roofline.steps import Work, work

#: What an error should stay below.
AIM = 0.15


@dataclass(frozen=True, slots=True)
class Both:
    """Seconds as the machine takes them when it is measured (`alone`), and as recorded (`took`)."""

    alone: float
    took: float

    @property
    def ratio(self) -> float:
        return self.took / self.alone


@dataclass(frozen=True, slots=True)
class Decoding:
    """What one side took for one page: verification passes; images and prompts of region crops, which are part of
    decoding, and of all (`prompts`); seconds on the host. `rounds`: the seconds of decoding in each round, of which the
    median one is predicted. `general`: the passes as they follow from the config, where that was asked for."""

    document: str
    page: int
    side: str
    count: int
    passes: Both
    crops: Both
    prompts: Both
    host: float
    rounds: tuple[float, ...] = ()
    general: float | None = None

    @property
    def seconds(self) -> float:
        return self.passes.took + self.host + self.crops.took


@dataclass(frozen=True, slots=True)
class Held:
    """One held-out page: seconds of decoding, `predicted` and as recorded (`measured`); `factor` is the one that the
    other pages give for passes."""

    of: Decoding
    factor: float
    predicted: float

    @property
    def measured(self) -> float:
        return self.of.seconds

    @property
    def error(self) -> float:
        """As a share of the measured seconds."""
        return self.predicted / self.measured - 1

    @property
    def unfitted(self) -> float:
        """The error of the passes without the factor."""
        return 1 / self.of.passes.ratio - 1

    @property
    def from_config(self) -> float | None:
        """The error of the passes as they follow from the config, without a factor."""
        return None if self.of.general is None else self.of.general / self.of.passes.took - 1

    @property
    def noise(self) -> float:
        """The largest distance of a round from the median one, as a share of that; 0 for a single round."""
        return max((abs(r / self.measured - 1) for r in self.of.rounds), default=0.0)

    @property
    def within_rounds(self) -> bool:
        """Whether a round took as much as predicted, or less and another more."""
        return bool(self.of.rounds) and min(self.of.rounds) <= self.predicted <= max(self.of.rounds)


def check(records: Records, shape: Shape, machine: Machine, dtype: str, general: Machine | None = None) -> list[Held]:
    """Every page of every side, each left out in turn. `general`: a machine that is not this model's own, to show how
    its passes compare. Raises `DocumentError` when there are fewer than two pages."""
    found = [d for p in records.pages if (d := _decoding(p, records.max_rows, shape, machine, dtype, general))]
    if len({(d.document, d.page) for d in found}) < 2:
        raise DocumentError("check=true: needs a recording of at least two pages: each is predicted from the others")
    return [_held(d, [o for o in found if (o.document, o.page) != (d.document, d.page)]) for d in found]


def _decoding(
    page: PageRecord, max_rows: int, shape: Shape, machine: Machine, dtype: str, general: Machine | None
) -> Decoding | None:
    """None for a page that needed no pass."""
    made = [work(stage, max_rows) for stage in page.stages]
    passes = [p for w in made for p in w.passes]
    took = sum(map(in_model, page.stages))
    if not passes or took <= 0:
        return None
    prompts = [
        Both(_prompt_seconds(w, shape, machine, dtype), s.times.encode + s.times.prefill)
        for s, w in zip(page.stages, made, strict=True)
    ]
    return Decoding(
        page.document,
        page.page,
        page.side,
        len(passes),
        Both(pass_seconds(passes, shape, machine, dtype), took),
        _sum(b for s, b in zip(page.stages, prompts, strict=True) if s.name != "page"),
        _sum(prompts),
        sum(s.times.host for s in page.stages),
        page.rounds,
        None if general is None else pass_seconds(passes, shape, general, dtype),
    )


def _prompt_seconds(made: Work, shape: Shape, machine: Machine, dtype: str) -> float:
    images = sum(machine.vision_seconds(shape, n, dtype) for n in made.images)
    return images + pass_seconds(made.prefills, shape, machine, dtype)


def _sum(parts: Iterable[Both]) -> Both:
    found = list(parts)
    return Both(sum(b.alone for b in found), sum(b.took for b in found))


def _held(one: Decoding, others: Sequence[Decoding]) -> Held:
    factor = median(o.passes.ratio for o in others)
    reading = median(o.prompts.ratio for o in others) if one.crops.alone else 1.0
    alike = [o for o in others if o.side == one.side] or others
    host = median(o.host / o.count for o in alike)
    return Held(one, factor, factor * one.passes.alone + reading * one.crops.alone + host * one.count)


def mean_error(held: Sequence[Held]) -> float:
    """Of the sizes of the errors."""
    return fmean(abs(h.error) for h in held)
