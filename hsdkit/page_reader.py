"""One page read with a verifier: its verdict as the page's result, or the drafter's text in the place of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hsdkit.documents import Page
from hsdkit.errors import DrafterError
from hsdkit.preparing.page import reason
from hsdkit.protocols import Engine, OnText, Target, Verdict, Verifier, is_exact
from hsdkit.regions import Draft, Region
from hsdkit.results import PageResult, final_stage


@dataclass(frozen=True, slots=True)
class PageReader:
    """Reads one page of the file `name`, by whatever attempts `read_page` makes.

    `notes` are those on its draft. `substitute` gives other verifiers with the run's limits, None for one that is the
    run's own or not to be had.
    """

    target: Target
    engine: Engine
    verifier: Verifier
    substitute: Callable[[str], Verifier | None]
    name: str
    notes: tuple[str, ...] = ()
    on_text: OnText | None = None

    def blank(self, page: Page, verifier: Verifier) -> PageResult:
        return PageResult(
            page.number,
            verifier=verifier.name,
            tau=verifier.settings.tau,
            exact=is_exact(verifier),
            width=page.width,
            height=page.height,
            notes=page.notes,
        )

    def read(self, page: Page, draft: Draft, verifier: Verifier) -> PageResult:
        """What the verifier makes of the page. Raises whatever goes wrong."""
        verdict = verifier.verify(page, draft, self.target, self.engine, self.on_text)
        markdown = self.target.clean(verdict.text, verdict.finish_reason)
        silent = () if markdown.strip() else ("the model wrote no text",)
        blank = self.blank(page, verifier)
        return replace(
            blank,
            markdown=markdown,
            text=verdict.text,
            regions=self._named(verdict, page),
            finish_reason=verdict.finish_reason,
            draft=draft,
            stages=verdict.stages,
            notes=(*blank.notes, *self.notes, *verdict.notes, *silent),
        )

    def drafted(self, page: Page, draft: Draft) -> PageResult:
        """The drafter's text in the place of the model's, in Markdown, after a comment that says so. Raises
        `DrafterError` when there is none."""
        text = self.target.separator.join(self.target.page_drafts(draft.regions, page.image))
        markdown = self.target.clean(text)
        if not markdown.strip():
            raise DrafterError("there is no draft of this page whose text could take its place")
        label = f"<!-- hsdkit: page {page.number} is the text of drafter {draft.drafter}, not read by the model -->"
        return replace(
            self.blank(page, self.verifier),
            markdown=f"{label}\n\n{markdown}",
            text=text,
            draft=draft,
            exact=False,
            origin="draft",
            notes=(*page.notes, *self.notes),
        )

    def failed(self, page: Page, draft: Draft, error: Exception) -> PageResult:
        blank = self.blank(page, self.verifier)
        return replace(blank, draft=draft, error=reason(error, self.name, page.number))

    def _named(self, verdict: Verdict, page: Page) -> tuple[Region, ...]:
        """The regions that the output names; where the page itself was not read, boxes would be those in crops."""
        final = final_stage(verdict.stages)
        if final is None or final.name != "page":
            return ()
        return self.target.regions(verdict.text, page.image)
