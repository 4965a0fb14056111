"""A verifier as a side of the bench that also remembers what its drafts were, and how they fared."""

from __future__ import annotations

from dataclasses import dataclass, field

from hsdkit.bench import VerifierSide
from hsdkit.bench.sample import Output
from hsdkit.documents import Page
from hsdkit.drafting_tally import ByLabel, by_label
from hsdkit.regions import Draft
from hsdkit.results import PageResult


@dataclass(frozen=True)
class StudySide:
    """`drafts` maps (document name, page number) to the last draft as the target would write it, `fates` to how it
    fared by label of the drafted region; finding them out is not in the time measured."""

    side: VerifierSide
    drafts: dict[tuple[str, int], str] = field(default_factory=dict)
    fates: dict[tuple[str, int], ByLabel] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.side.name

    @property
    def uses_draft(self) -> bool:
        return self.side.uses_draft

    def run(self, page: Page, draft: Draft) -> Output:
        output = self.side.run(page, draft)
        key = page.source, page.number
        self.fates[key] = by_label(PageResult(page.number, draft=draft, stages=output.stages))
        if draft.readable:
            target = self.side.target
            written = [text for text in target.page_drafts(draft.regions, page.image) if text]
            self.drafts[key] = target.clean(target.separator.join(written))
        return output
