"""One page of an evaluation: what each side wrote, what was measured of it; as one line of JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hsdkit.benchmarks import Item, Measured
from hsdkit.drafting_tally import ByLabel, by_label
from hsdkit.results import PageResult
from hsdkit.results_json import page_from_json, page_to_json


@dataclass(frozen=True, slots=True)
class SideRecord:
    """What one verifier made of a page. `measured` is None where the benchmark could not measure it (`problem`);
    `figures` are the benchmark's of this page alone, those with a slash in their name (single tests) left out.
    `kept_fates` is there where the page no longer holds what they follow from."""

    page: PageResult
    measured: Measured | None
    problem: str | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    kept_fates: ByLabel | None = field(default=None, compare=False)

    @property
    def fates(self) -> ByLabel:
        """How the page's drafts fared, by label of the drafted region."""
        return by_label(self.page) if self.kept_fates is None else self.kept_fates

    def light(self) -> SideRecord:
        return replace(self, page=_light(self.page), kept_fates=self.fates)

    @property
    def error(self) -> str | None:
        """Why the page counts as empty, or as nothing."""
        return self.page.error or self.problem


@dataclass(frozen=True, slots=True)
class Record:
    """One page of the benchmark with all its sides."""

    key: str
    document: str
    page: int
    groups: Mapping[str, tuple[str, ...]]
    sides: Mapping[str, SideRecord]

    @classmethod
    def of(cls, item: Item, sides: Mapping[str, SideRecord]) -> Record:
        return cls(item.key, str(item.document), item.page, dict(item.groups), dict(sides))

    @property
    def error(self) -> str | None:
        return next((side.error for side in self.sides.values() if side.error), None)

    def light(self) -> Record:
        """The same without what figures do not need, so that thousands can be held: drafted regions, regions that
        outputs name, texts of single tokens."""
        return replace(self, sides={name: side.light() for name, side in self.sides.items()})

    def to_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "document": self.document,
            "page": self.page,
            "groups": {group: list(values) for group, values in self.groups.items()},
            "error": self.error,
            "sides": {
                name: {
                    "measured": side.measured,
                    "problem": side.problem,
                    "figures": dict(side.figures),
                    "page": page_to_json(side.page),
                }
                for name, side in self.sides.items()
            },
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        groups = {group: tuple(values) for group, values in data["groups"].items()}
        sides = {
            name: SideRecord(page_from_json(side["page"]), side["measured"], side["problem"], side.get("figures", {}))
            for name, side in data["sides"].items()
        }
        return cls(data["key"], data["document"], data["page"], groups, sides)


def _light(page: PageResult) -> PageResult:
    stages = tuple(
        replace(stage, sequences=tuple(replace(sequence, pieces=()) for sequence in stage.sequences))
        for stage in page.stages
    )
    return replace(page, stages=stages, draft=replace(page.draft, regions=()), regions=())
