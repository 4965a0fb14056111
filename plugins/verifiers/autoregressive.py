"""`autoregressive`: plain greedy decoding of the page, one token a step: what everything is measured against."""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.verifiers.common import PlainConfig, WholePage

from hsdkit import hookimpl
from hsdkit.components import Component


class Autoregressive(WholePage):
    name = "autoregressive"


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
