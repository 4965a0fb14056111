"""`autoregressive`: plain greedy decoding of the page, one token a step: what everything is measured against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hsdkit_plugins.verifiers.common import PlainConfig, page_stage, page_verdict

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.protocols import Engine, OnText, Target, Verdict
from hsdkit.regions import Draft

if TYPE_CHECKING:
    from hsdkit.documents import Page


class Autoregressive:
    name = "autoregressive"
    uses_draft = False

    def __init__(self, config: PlainConfig) -> None:
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
            name="autoregressive",
            summary="plain decoding, one token a step: the baseline",
            config=PlainConfig,
            factory=Autoregressive,
        )
    ]
