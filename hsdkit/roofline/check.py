"""How far predictions are off on pages that they know nothing of: each page from the shape of the model, the machine as
it was measured, and what the recording's other pages took.

Passes in a run take longer than the same passes one after another (what comes between them empties the caches, and the
machine may be busier), by much the same factor for all. So the other pages give one factor for the passes of all sides,
and for each side the seconds that the host spends on a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from hsdkit.errors import DocumentError
from hsdkit.roofline.devices import Machine
from hsdkit.roofline.predict import in_model, pass_seconds
from hsdkit.roofline.records import Records
from hsdkit.roofline.shape import Shape
from hsdkit.roofline.steps import work


@dataclass(frozen=True, slots=True)
class Decoding:
    """What one side's verification of one page took: passes; seconds in the model as its parts predict them (`parts`)
    and as recorded (`model`); seconds on the host."""

    document: str
    page: int
    side: str
    passes: int
    parts: float
    model: float
    host: float


@dataclass(frozen=True, slots=True)
class Held:
    """One held-out page: seconds of decoding, `predicted` and as recorded (`measured`); `factor` is the one of the
    other pages."""

    of: Decoding
    factor: float
    predicted: float

    @property
    def measured(self) -> float:
        return self.of.model + self.of.host

    @property
    def error(self) -> float:
        """As a share of the measured seconds."""
        return self.predicted / self.measured - 1

    @property
    def unfitted(self) -> float:
        """The error of the passes without the factor."""
        return self.of.parts / self.of.model - 1


def check(records: Records, shape: Shape, machine: Machine, dtype: str) -> list[Held]:
    """Every page of every side, each left out in turn. Raises `DocumentError` when there are fewer than two pages."""
    found = decodings(records, shape, machine, dtype)
    if len({(d.document, d.page) for d in found}) < 2:
        raise DocumentError("check=true: needs a recording of at least two pages: each is predicted from the others")
    return [_held(d, [o for o in found if (o.document, o.page) != (d.document, d.page)]) for d in found]


def decodings(records: Records, shape: Shape, machine: Machine, dtype: str) -> list[Decoding]:
    """Of pages that needed a pass."""
    found = []
    for page in records.pages:
        made = [work(stage, records.max_rows) for stage in page.stages]
        passes = [p for w in made for p in w.passes]
        model = sum(map(in_model, page.stages))
        if passes and model > 0:
            parts = pass_seconds(passes, shape, machine, dtype)
            host = sum(s.times.host for s in page.stages)
            found.append(Decoding(page.document, page.page, page.side, len(passes), parts, model, host))
    return found


def _held(one: Decoding, others: Sequence[Decoding]) -> Held:
    factor = sum(o.model for o in others) / sum(o.parts for o in others)
    alike = [o for o in others if o.side == one.side] or others
    host = sum(o.host for o in alike) / sum(o.passes for o in alike)
    return Held(one, factor, factor * one.parts + host * one.passes)


def mean_error(held: Sequence[Held]) -> float:
    """Of the sizes of the errors."""
    return fmean(abs(h.error) for h in held)
