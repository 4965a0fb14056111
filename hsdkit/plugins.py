"""The plugin manager: discovers plugins through the entry-point group "hsdkit", finds and builds their components."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import pluggy

from hsdkit import hookspecs
from hsdkit.components import Component, Kind
from hsdkit.errors import HsdkitError, PluginError
from hsdkit.suggestions import did_you_mean, nearest

GROUP = "hsdkit"
#: Comma-separated entry-point names; when set, only these plugins are loaded.
RESTRICT = "HSDKIT_PLUGINS"


@dataclass(frozen=True, slots=True)
class PluginState:
    """One discovered plugin: which distribution brought it, and why it is broken if it is."""

    name: str
    package: str
    version: str
    error: str | None = None


class Plugins:
    """Loaded plugins and their components. A plugin that fails to import is listed as broken and never stops others."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.states: list[PluginState] = []
        self._components: dict[tuple[str, str], tuple[Component, str]] = {}

    def discover(self) -> None:
        """Load every entry point of the group (or those that `HSDKIT_PLUGINS` names)."""
        wanted = {n.strip() for n in os.environ[RESTRICT].split(",") if n.strip()} if RESTRICT in os.environ else None
        for entry in sorted(entry_points(group=GROUP), key=lambda e: e.name):
            if wanted is None or entry.name in wanted:
                self._load(entry)

    def _load(self, entry: EntryPoint) -> None:
        package, version = (entry.dist.name, entry.dist.version) if entry.dist else ("?", "?")
        error = None
        try:
            self.register(entry.load(), entry.name)
        except (Exception, SystemExit) as e:  # whatever a plugin does wrong is its state, not our failure
            error = _said(e)
        self.states.append(PluginState(entry.name, package, version, error))

    def register(self, plugin: object, name: str) -> None:
        """Register a plugin object or module, as discovery does; for tests and notebooks.

        Raises `PluginError` when it brings a component whose kind and name are taken; nothing of it is kept then.
        """
        self.manager.register(plugin, name)
        try:
            hook = self.manager.subset_hook_caller(
                "hsdkit_components", [p for p in self.manager.get_plugins() if p is not plugin]
            )
            found = [c for components in hook() for c in components]
            for component in found:
                if taken := self._components.get((component.kind, component.name)):
                    raise PluginError(f"{component.kind} {component.name!r} is already provided by plugin {taken[1]!r}")
        except Exception:
            self.manager.unregister(plugin)
            raise
        self._components.update({(c.kind, c.name): (c, name) for c in found})

    def components(self, kind: Kind | None = None) -> Iterator[tuple[Component, str]]:
        """(component, plugin name), sorted by kind and name."""
        return (v for k, v in sorted(self._components.items()) if kind is None or k[0] == kind)

    def component(self, kind: Kind, name: str) -> Component:
        """Raises `PluginError` that names the nearest known component when there is none of that name."""
        if found := self._components.get((kind, name)):
            return found[0]
        known = [c.name for c, _ in self.components(kind)]
        hint = did_you_mean([repr(near) for near in nearest(name, known)])
        broken = "".join(
            f"; plugin {s.name!r} of {s.package} is broken: {s.error}"
            for s in self.states
            if s.error and s.name.replace("_", "-").endswith(name.replace("_", "-"))
        )
        limited = f"; {RESTRICT} limits what is loaded" if RESTRICT in os.environ else ""
        raise PluginError(f"no {kind} named {name!r}:{hint} known: {', '.join(known) or 'none'}{broken}{limited}")

    def build(self, kind: Kind, name: str, config: Any = None, **context: Any) -> Any:
        """Build a component from its typed config (defaults when None). Raises `PluginError` if something it needs is
        not installed, naming what and how to install it."""
        component = self.component(kind, name)
        if component.missing:
            modules = ", ".join(r.module for r in component.missing)
            raise PluginError(f"{kind} {name!r} needs {modules}, not installed: {component.install}")
        try:
            return component.factory(component.config() if config is None else config, **context)
        except HsdkitError:
            raise
        except (Exception, SystemExit) as e:  # a factory may do anything
            plugin = self._components[kind, name][1]
            raise PluginError(f"{kind} {name!r} of plugin {plugin!r} cannot be built: {_said(e)}") from e


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"


@cache
def plugins() -> Plugins:
    """The process-wide plugins, discovered on first use."""
    found = Plugins()
    found.discover()
    return found
