"""How drafts fared, by the label of the drafted region that the output is of: sums over steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from hsdkit.placing import Placing
from hsdkit.rejections import End, ends
from hsdkit.results import PageResult, SequenceResult

#: Stands for a label where the drafter had no such region.
NO_REGION = "no region"


@dataclass(frozen=True, slots=True)
class Fates:
    """Sums over steps: `tokens` are those that the steps emitted, `accepted` those of them that a draft had right,
    `ends` how the drafts of the steps ended."""

    steps: int = 0
    tokens: int = 0
    accepted: int = 0
    ends: Counter[End] = field(default_factory=Counter)

    def __add__(self, other: Fates) -> Fates:
        return Fates(
            self.steps + other.steps,
            self.tokens + other.tokens,
            self.accepted + other.accepted,
            self.ends + other.ends,
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Fates:
        ends = Counter({End(name): int(n) for name, n in data["ends"].items()})
        return cls(int(data["steps"]), int(data["tokens"]), int(data["accepted"]), ends)

    def to_json(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "tokens": self.tokens,
            "accepted": self.accepted,
            "aal": self.accepted / self.steps if self.steps else None,
            "accepted_share": self.accepted / self.tokens if self.tokens else None,
            "ends": {end.value: self.ends[end] for end in End if self.ends[end]},
        }


#: Fates by label of the region; labels are those of `hsdkit.regions.Label`, and `NO_REGION`.
ByLabel = Mapping[str, Fates]


def by_label(page: PageResult) -> ByLabel:
    """The steps of all stages of a page. A step counts where its first token was written: in Stage 1 to the region of
    the crop, else to the region that this line of the output is of (`Placing`)."""
    found: dict[str, Fates] = {}
    regions = page.draft.regions
    for stage in page.stages:
        for number, sequence in enumerate(stage.sequences):
            known = stage.region_index[number] if number < len(stage.region_index) else None
            placing = Placing(sequence.text, regions) if known is None else None
            starts = _starts(sequence)
            for step, at, end in ends(sequence):
                index = placing.region(starts[min(at, len(starts) - 1)]) if placing is not None else known
                label = regions[index].label.value if index is not None and index < len(regions) else NO_REGION
                one = Fates(1, step.emitted, step.accepted, Counter([end]))
                found[label] = found.get(label, Fates()) + one
    return found


def together(pages: Iterable[ByLabel]) -> dict[str, Fates]:
    """The sums of pages, the label with most tokens first."""
    found: dict[str, Fates] = {}
    for page in pages:
        for label, fates in page.items():
            found[label] = found.get(label, Fates()) + fates
    return dict(sorted(found.items(), key=lambda item: (-item[1].tokens, item[0])))


def _starts(sequence: SequenceResult) -> list[int]:
    """Where each token begins in the text."""
    return [0, *accumulate(map(len, sequence.pieces))]
