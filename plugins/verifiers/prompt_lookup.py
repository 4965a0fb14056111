"""`prompt_lookup`: speculation from what the model itself has written so far on the page; no drafter is run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hsdkit_plugins.verifiers.common import SpeculativeConfig, page_stage, page_verdict

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.protocols import Engine, OnText, Target, Verdict
from hsdkit.regions import Draft

if TYPE_CHECKING:
    from hsdkit.documents import Page


@dataclass(frozen=True)
class PromptLookupConfig(SpeculativeConfig):
    """Options of `prompt_lookup`: those of all speculation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.self_lookup:
            raise ValueError("self_lookup=false: prompt_lookup has nothing else; use verifier=autoregressive")


class PromptLookup:
    name = "prompt_lookup"
    uses_draft = False

    def __init__(self, config: PromptLookupConfig) -> None:
        self.settings = config.settings

    def verify(
        self, page: Page, draft: Draft, target: Target, engine: Engine, on_text: OnText | None = None
    ) -> Verdict:
        return page_verdict(page_stage(page, (), target, engine, self.settings, on_text), page, target)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [
        Component(
            kind="verifier",
            name="prompt_lookup",
            summary="speculation from the model's own output; no drafter",
            config=PromptLookupConfig,
            factory=PromptLookup,
        )
    ]
