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


class _Anew(str):
    __slots__ = ()


#: Told as a piece of text, an empty one to most, when the page is read again: what was told of it so far is void.
ANEW = _Anew()


class Listener:
    """Hands a page's text on as it grows. Whoever gets it may raise to give the page up: that is no failure of the
    page, and it is not tried again."""

    def __init__(self, on_text: OnText) -> None:
        self._on_text = on_text
        self._told = False
        self.gave_up = False

    def begin(self) -> None:
        """Another attempt at the page begins."""
        if self._told:
            self(0, ANEW)
            self._told = False

    def __call__(self, row: int, text: str) -> None:
        self._told = True
        try:
            self._on_text(row, text)
        except Exception:
            self.gave_up = True
            raise


def blank_result(number: int, page: Page | None, verifier: Verifier) -> PageResult:
    """What is known of a page's result before it is read; without the page where that could not be had."""
    blank = PageResult(number, verifier=verifier.name, tau=verifier.settings.tau, exact=is_exact(verifier))
    return blank if page is None else replace(blank, width=page.width, height=page.height, notes=page.notes)


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
    listener: Listener | None = None

    @property
    def given_up(self) -> bool:
        """Whether who listens wants no more of this page."""
        return self.listener is not None and self.listener.gave_up

    def read(self, page: Page, draft: Draft, verifier: Verifier) -> PageResult:
        """What the verifier makes of the page. Raises whatever goes wrong."""
        if self.listener is not None:
            self.listener.begin()
        verdict = verifier.verify(page, draft, self.target, self.engine, self.listener)
        markdown = self.target.clean(verdict.text, verdict.finish_reason)
        silent = () if markdown.strip() else ("the model wrote no text",)
        blank = blank_result(page.number, page, verifier)
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
            blank_result(page.number, page, self.verifier),
            markdown=f"{label}\n\n{markdown}",
            text=text,
            draft=draft,
            exact=False,
            origin="draft",
            notes=(*page.notes, *self.notes),
        )

    def failed(self, page: Page, draft: Draft, error: Exception) -> PageResult:
        blank = blank_result(page.number, page, self.verifier)
        return replace(blank, draft=draft, error=reason(error, self.name, page.number))

    def _named(self, verdict: Verdict, page: Page) -> tuple[Region, ...]:
        """The regions that the output names; where the page itself was not read, boxes would be those in crops."""
        final = final_stage(verdict.stages)
        if final is None or final.name != "page":
            return ()
        return self.target.regions(verdict.text, page.image)
