"""A verifier as a side of the bench that also remembers what its drafts were."""

from __future__ import annotations

from dataclasses import dataclass, field

from hsdkit.bench import VerifierSide
from hsdkit.bench.sample import Output
from hsdkit.documents import Page
from hsdkit.regions import Draft


@dataclass(frozen=True)
class StudySide:
    """`drafts` maps (document name, page number) to the last draft as the target would write it; making that text is
    not in the time measured."""

    side: VerifierSide
    drafts: dict[tuple[str, int], str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.side.name

    @property
    def uses_draft(self) -> bool:
        return self.side.uses_draft

    def run(self, page: Page, draft: Draft) -> Output:
        output = self.side.run(page, draft)
        if draft.readable:
            target = self.side.target
            written = [text for text in target.page_drafts(draft.regions, page.image) if text]
            self.drafts[page.source, page.number] = target.clean(target.separator.join(written))
        return output
