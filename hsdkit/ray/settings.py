"""A run's settings on their way to workers on other machines: the composed configuration, plugins, folder."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any

from hsdkit.config import RunConfig, compose
from hsdkit.errors import PluginError
from hsdkit.home import VARIABLE as HOME
from hsdkit.pipeline import Pipeline
from hsdkit.plugins import RESTRICT
from hsdkit.versions import package_version

#: Variables of the environment that say what hsdkit is there.
_VARIABLES = (RESTRICT, HOME)

#: Composed already into all the other keys, or the driver's business.
_LEFT_HERE = ("input", "output", "experiment")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker needs to do exactly what this process would: plain values that travel anywhere."""

    composed: dict[str, Any]
    environment: dict[str, str]
    folder: str
    version: str | None

    @classmethod
    def of(cls, config: RunConfig) -> Settings:
        composed = {k: v for k, v in config.composed.items() if k not in _LEFT_HERE}
        environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
        return cls(composed, environment, os.getcwd(), package_version("hsdkit"))

    def pipeline(self) -> Pipeline:
        """A pipeline with these settings; for a process of its own, whose environment and folder it changes. Raises
        `ConfigError` or `PluginError` where a plugin is not installed, or another version of hsdkit."""
        if (version := package_version("hsdkit")) != self.version:
            raise PluginError(f"hsdkit {version} is installed there, and {self.version} here: install the same version")
        os.environ.update(self.environment)
        with contextlib.suppress(OSError):  # relative paths of a folder not seen here are told page by page
            os.chdir(self.folder)
        return Pipeline(compose(self.composed))
