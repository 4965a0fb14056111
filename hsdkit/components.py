"""What a component is: the description a plugin hands over so that config, CLI and pipeline can offer and build it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

Kind = Literal["drafter", "target", "verifier", "engine", "benchmark"]
#: What a run is made of.
KINDS: tuple[Kind, ...] = ("drafter", "target", "verifier", "engine")
#: All that plugins can bring: the parts of a run, and what `hsdkit eval` measures it by.
ALL_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A module a component imports when it is used, and the extra of which distribution brings it. `without` says how
    the component can be used where the module is not installed; "" for not at all."""

    module: str
    install: str
    without: str = ""

    @property
    def installed(self) -> bool:
        try:
            return importlib.util.find_spec(self.module) is not None
        except (ImportError, ValueError):
            return False


@dataclass(frozen=True, slots=True)
class Environment:
    """A Python environment of its own, for a library that does not fit beside hsdkit: `hsdkit drafter install NAME`.

    `requirements` is a file of pinned requirements that ships with the plugin, `module` what the library is imported
    as, `distribution` the package whose version says which library drafted, `server` the command that serves it.
    """

    name: str
    requirements: Path
    module: str
    distribution: str
    server: str = ""

    @property
    def pins(self) -> tuple[str, ...]:
        """The pinned requirements, without comments."""
        lines = (line.partition("#")[0].strip() for line in self.requirements.read_text(encoding="utf-8").splitlines())
        return tuple(line for line in lines if line)

    @property
    def importable(self) -> bool:
        """Whether the library can be imported into this very process."""
        return Requirement(self.module, self.distribution).installed


@dataclass(frozen=True, slots=True)
class Component:
    """One drafter, target, verifier, engine or benchmark.

    `config` is a dataclass type whose fields (all with defaults) are the component's options: their names, types and
    defaults become `drafter.NAME=VALUE` on the command line; it raises `ValueError("NAME=VALUE: why")` for a value that
    makes no sense. `factory` builds the component from an instance of it: `factory(config)`, for an engine
    `factory(config, target)`. It may import heavy modules; the module that holds the description may not.
    `environment` is where its library can be installed apart from hsdkit.
    """

    kind: Kind
    name: str
    summary: str
    config: type
    factory: Callable[..., Any]
    requires: tuple[Requirement, ...] = ()
    environment: Environment | None = None

    @property
    def missing(self) -> tuple[Requirement, ...]:
        """What it cannot be used without."""
        return tuple(r for r in self.requires if not r.without and not r.installed)

    @property
    def install(self) -> str:
        """The command that installs what is missing; "" when nothing is."""
        wanted = dict.fromkeys(f'"{r.install}"' for r in self.missing)
        return f"pip install {' '.join(wanted)}" if wanted else ""
