"""The toys as an installed plugin, for workers in processes of their own; its verifier also kills them on demand."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toys import (
    ToyDrafter,
    ToyDrafterConfig,
    ToyEngine,
    ToyEngineConfig,
    ToyTarget,
    ToyTargetConfig,
    ToyVerifier,
    ToyVerifierConfig,
)

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.errors import TargetError
from hsdkit.protocols import Verdict

#: Installed by this: a folder that holds it and is searched for modules.
ENTRY_POINTS = "[hsdkit]\nray-toys = ray_toys\n"
METADATA = "Metadata-Version: 2.1\nName: hsdkit-ray-toys\nVersion: 1.0\n"

TOYS_ON_RAY = [f"{kind}=toy_on_ray" for kind in ("drafter", "target", "engine", "verifier")]


@dataclass(frozen=True)
class DeadlyConfig(ToyVerifierConfig):
    """Files whose name begins with `deadly` kill their process each time, with `fragile` the first time, by a mark in
    the folder `marks`; each page read takes `seconds` and leaves its process id there."""

    marks: str = "."
    seconds: float = 0.0


class DeadlyVerifier(ToyVerifier):
    def verify(self, page: Any, draft: Any, target: Any, engine: Any, on_text: Any = None) -> Verdict:
        assert isinstance(self.config, DeadlyConfig)
        mark = Path(self.config.marks) / f"{page.source}-{page.number}"
        if page.source.startswith("deadly") or (page.source.startswith("fragile") and not mark.exists()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.config.seconds)
        with mark.open("a") as file:
            file.write(f"{os.getpid()}\n")
        return super().verify(page, draft, target, engine, on_text)


@dataclass(frozen=True)
class ToyOnRayConfig(ToyEngineConfig):
    loads: bool = True


class ToyOnRay(ToyEngine):
    pages_at_once = 2

    def load(self) -> None:
        assert isinstance(self.config, ToyOnRayConfig)
        if not self.config.loads:
            raise TargetError("toy-checkpoint: no such checkpoint")


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    yield Component("drafter", "toy_on_ray", "drafts one word", ToyDrafterConfig, ToyDrafter)
    yield Component("target", "toy_on_ray", "reads nothing", ToyTargetConfig, ToyTarget)
    yield Component("engine", "toy_on_ray", "runs nothing", ToyOnRayConfig, ToyOnRay)
    yield Component("verifier", "toy_on_ray", "agrees, or kills its process", DeadlyConfig, DeadlyVerifier)


def install(folder: Path) -> None:
    """Make `folder` one that installs this plugin when it is searched for modules (`PYTHONPATH`), this one too."""
    information = folder / "hsdkit_ray_toys-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(METADATA)
    (information / "entry_points.txt").write_text(ENTRY_POINTS)
