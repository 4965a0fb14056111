"""What a component is: the description a plugin hands over so that config, CLI and pipeline can offer and build it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

Kind = Literal["drafter", "target", "verifier", "engine"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Requirement:
    """A module a component imports when it is used, and the extra of which distribution brings it."""

    module: str
    install: str

    @property
    def installed(self) -> bool:
        try:
            return importlib.util.find_spec(self.module) is not None
        except (ImportError, ValueError):
            return False


@dataclass(frozen=True, slots=True)
class Component:
    """One drafter, target, verifier or engine.

    `config` is a dataclass type whose fields (all with defaults) are the component's options: their names, types and
    defaults become `drafter.NAME=VALUE` on the command line; it raises `ValueError("NAME=VALUE: why")` for a value that
    makes no sense. `factory` builds the component from an instance of it: `factory(config)`, for an engine
    `factory(config, target)`. It may import heavy modules; the module that holds the description may not.
    """

    kind: Kind
    name: str
    summary: str
    config: type
    factory: Callable[..., Any]
    requires: tuple[Requirement, ...] = ()

    @property
    def missing(self) -> tuple[Requirement, ...]:
        return tuple(r for r in self.requires if not r.installed)

    @property
    def install(self) -> str:
        """The command that installs what is missing; "" when nothing is."""
        wanted = dict.fromkeys(f'"{r.install}"' for r in self.missing)
        return f"pip install {' '.join(wanted)}" if wanted else ""
