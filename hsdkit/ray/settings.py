"""A run's settings on their way to workers on other machines: the composed configuration, plugins, folder."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any

from hsdkit.config import RunConfig, compose
from hsdkit.pipeline import Pipeline

#: Composed already into all the other keys, or the driver's business.
_LEFT_HERE = ("input", "output", "experiment")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker needs to do exactly what this process would: plain values that travel anywhere."""

    composed: dict[str, Any]
    environment: dict[str, str]
    folder: str

    @classmethod
    def of(cls, config: RunConfig) -> Settings:
        composed = {k: v for k, v in config.composed.items() if k not in _LEFT_HERE}
        environment = {k: v for k, v in os.environ.items() if k.startswith("HSDKIT_")}
        return cls(composed, environment, os.getcwd())

    def pipeline(self) -> Pipeline:
        """A pipeline with these settings; for a process of its own, whose environment and folder it changes. Raises
        `ConfigError` or `PluginError` where a plugin is not installed."""
        os.environ.update(self.environment)
        with contextlib.suppress(OSError):  # relative paths of a folder not seen here are told page by page
            os.chdir(self.folder)
        return Pipeline(compose(self.composed))
