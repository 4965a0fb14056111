"""`prompt_lookup`: speculation from what the model itself has written so far on the page; no drafter is run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hsdkit_plugins.verifiers.common import SpeculativeConfig, WholePage

from hsdkit import hookimpl
from hsdkit.components import Component


@dataclass(frozen=True)
class PromptLookupConfig(SpeculativeConfig):
    """Options of `prompt_lookup`: those of all speculation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.self_lookup:
            raise ValueError("self_lookup=false: prompt_lookup has nothing else; use verifier=autoregressive")


class PromptLookup(WholePage):
    name = "prompt_lookup"


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
