"""Drafts from the files that `hsdkit run ... save_drafts=true` wrote: for studies and tests."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.documents import Page
from hsdkit.draft_files import load_drafts
from hsdkit.errors import ConfigError, DrafterError
from hsdkit.regions import Box, Draft


@dataclass(frozen=True)
class ReplayConfig:
    """path: a NAME.drafts.json, or a folder of them."""

    path: str = ""


class Replay:
    """Boxes are scaled when the page has another size than when its draft was saved. The time is that of the replay."""

    name = "replay"

    def __init__(self, config: ReplayConfig) -> None:
        if not config.path:
            raise ConfigError("drafter=replay needs a file or folder of drafts: drafter.path=PATH")
        self.path = config.path
        self._drafts = load_drafts(config.path)

    def draft(self, page: Page) -> Draft:
        start = time.perf_counter()
        saved = self._drafts.get((page.source, page.number))
        if saved is None:
            raise DrafterError(f"{page.source}, page {page.number}: no draft of it in {self.path}")
        x, y = page.width / saved.width, page.height / saved.height
        regions = tuple(
            replace(r, box=Box(r.box.x0 * x, r.box.y0 * y, r.box.x1 * x, r.box.y1 * y)) for r in saved.draft.regions
        )
        return Draft(regions, saved.draft.drafter, time.perf_counter() - start, saved.draft.notes)

    def expected_seconds(self, page: Page) -> float:
        return 0.0


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [Component("drafter", "replay", "drafts saved earlier (save_drafts=true)", ReplayConfig, Replay)]
