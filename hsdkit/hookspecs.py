"""What a plugin can provide, and the events it can observe. Implement any of these with `@hsdkit.hookimpl`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from hsdkit.components import Component
    from hsdkit.results import PageResult

PROJECT = "hsdkit"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

#: Version of the hooks below and of what passes through them (`Component`, `hsdkit.protocols`). It rises when a plugin
#: written for the version before would no longer work. A plugin says which one it was written for with a module
#: constant, `HSDKIT_HOOKSPEC = 1`; one that says nothing was written for version 1.
HOOKSPEC = 1
HOOKSPEC_NAME = "HSDKIT_HOOKSPEC"


@hookspec
def hsdkit_components() -> Iterable[Component]:  # type: ignore[empty-body]
    """The components this plugin brings. Must be cheap: nothing heavy may be imported to answer."""


@hookspec
def hsdkit_page_finished(source: str, result: PageResult) -> None:
    """Called after each page, failed or not, in page order."""
