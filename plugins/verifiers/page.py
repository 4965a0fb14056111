"""`page`: page-level speculation with the drafter's own text (the paper's HSD without Stage 1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hsdkit_plugins.verifiers.common import SpeculativeConfig, page_stage, page_verdict

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.protocols import Engine, OnText, Target, Verdict
from hsdkit.regions import Draft

if TYPE_CHECKING:
    from hsdkit.documents import Page


class PageLevel:
    name = "page"
    uses_draft = True

    def __init__(self, config: SpeculativeConfig) -> None:
        self.settings = config.settings

    def verify(
        self, page: Page, draft: Draft, target: Target, engine: Engine, on_text: OnText | None = None
    ) -> Verdict:
        drafts = [target.render(r) for r in draft.readable]
        return page_verdict(page_stage(page, drafts, target, engine, self.settings, on_text), page, target)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [
        Component(
            kind="verifier",
            name="page",
            summary="page-level speculation with the drafter's text",
            config=SpeculativeConfig,
            factory=PageLevel,
        )
    ]
