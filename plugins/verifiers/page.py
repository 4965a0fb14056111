"""`page`: page-level speculation with the drafter's own text (the paper's HSD without Stage 1)."""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.verifiers.common import SpeculativeConfig, WholePage

from hsdkit import hookimpl
from hsdkit.components import Component


class PageLevel(WholePage):
    name = "page"
    uses_draft = True


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
