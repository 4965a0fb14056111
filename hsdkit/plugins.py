"""The plugin manager: discovers plugins through the entry-point group "hsdkit", finds and builds their components."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any

import pluggy

from hsdkit import hookspecs
from hsdkit.components import ALL_KINDS, Component, Environment, Kind, Requirement
from hsdkit.errors import HsdkitError, PluginError, described
from hsdkit.suggestions import did_you_mean, nearest

GROUP = "hsdkit"
#: Comma-separated names of plugins (entry points) or of packages; when set, only these plugins are loaded.
RESTRICT = "HSDKIT_PLUGINS"


@dataclass(frozen=True, slots=True)
class PluginState:
    """One plugin: which distribution brought it ("" for one registered in process), and why it is broken if it is."""

    name: str
    package: str = ""
    version: str = ""
    error: str | None = None

    @property
    def origin(self) -> str:
        """`plugin NAME of PACKAGE VERSION`."""
        return f"plugin {self.name!r}" + (f" of {self.package} {self.version}".rstrip() if self.package else "")


class Plugins:
    """Loaded plugins and their components. A plugin that cannot be used is listed as broken and never stops others.

    `left_out` are installed plugins that `HSDKIT_PLUGINS` does not name; `notes` say what it names in vain.
    """

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.states: list[PluginState] = []
        self.left_out: tuple[str, ...] = ()
        self.notes: tuple[str, ...] = ()
        self._components: dict[tuple[str, str], tuple[Component, PluginState]] = {}

    def discover(self) -> None:
        """Load every entry point of the group (or those that `HSDKIT_PLUGINS` names). Our own come first, so that
        another package can take none of their names."""
        entries = sorted(entry_points(group=GROUP), key=lambda e: (_origin(e)[0] != hookspecs.PROJECT, e.name))
        if RESTRICT in os.environ:
            entries = self._restricted(entries, os.environ[RESTRICT])
        for entry in entries:
            self._load(entry)

    def _restricted(self, entries: list[EntryPoint], names: str) -> list[EntryPoint]:
        wanted = {_normal(name): name.strip() for name in names.split(",") if name.strip()}
        chosen = [e for e in entries if wanted.keys() & _names(e)]
        packages = ", ".join(sorted({_origin(e)[0] for e in entries} - {""}))
        known = [n for e in entries for n in (e.name, _origin(e)[0])]
        self.left_out = tuple(e.name for e in entries if e not in chosen)
        self.notes = tuple(
            f"{RESTRICT} names {given!r}, which is no installed plugin nor a package of plugins:"
            + (
                did_you_mean([repr(n) for n in nearest(given, known)])
                or f" installed are those of {packages or 'none'}"
            )
            for name, given in wanted.items()
            if not any(name in _names(e) for e in entries)
        )
        return chosen

    def _load(self, entry: EntryPoint) -> None:
        state = PluginState(entry.name, *_origin(entry))
        try:
            with contextlib.redirect_stdout(sys.stderr):  # standard output is for results
                self._register(entry.load(), state)
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # whatever a plugin does wrong, exits and panics too, is its state, not our failure
            self.states.append(PluginState(state.name, state.package, state.version, _cause(e)))
        else:
            self.states.append(state)

    def register(self, plugin: object, name: str) -> None:
        """Register a plugin object or module, as discovery does; for tests and notebooks.

        Raises `PluginError` when it was written for another version of the hooks, or brings what is no component or has
        a kind and name that are taken; nothing of it is kept then.
        """
        self._register(plugin, PluginState(name))

    def _register(self, plugin: object, state: PluginState) -> None:
        _check_version(plugin)
        try:
            self.manager.register(plugin, state.name)
            found = self._found(plugin)
        except BaseException:
            if self.manager.get_name(plugin) == state.name:
                self.manager.unregister(plugin)
            raise
        self._components.update({(c.kind, c.name): (c, state) for c in found})

    def _found(self, plugin: object) -> list[Component]:
        """The components of a registered plugin, checked."""
        for hook in vars(self.manager.hook).values():
            if not hook.has_spec() and any(i.plugin is plugin and not i.optionalhook for i in hook.get_hookimpls()):
                raise PluginError(f"implements {hook.name}, no hook of version {hookspecs.HOOKSPEC}")
        others = [p for p in self.manager.get_plugins() if p is not plugin]
        answers = self.manager.subset_hook_caller("hsdkit_components", others)()
        found = [component for components in answers for component in components]
        mine: set[tuple[str, str]] = set()
        for component in found:
            _check(component)
            key = component.kind, component.name
            if key in self._components or key in mine:
                by = self._components[key][1].origin if key in self._components else "this very plugin"
                raise PluginError(f"{component.kind} {component.name!r} is already provided by {by}")
            mine.add(key)
        return found

    def components(self, kind: Kind | None = None) -> Iterator[tuple[Component, PluginState]]:
        """(component, the plugin that brought it), sorted by kind and name."""
        return (v for k, v in sorted(self._components.items()) if kind is None or k[0] == kind)

    def installed(self, kind: Kind, name: str) -> bool:
        """Whether a component comes from an installed plugin, which other processes have, too."""
        return (found := self._components.get((kind, name))) is not None and bool(found[1].package)

    def observers(self) -> list[tuple[Callable[..., Any], str]]:
        """The `hsdkit_page_finished` of each plugin that has one, to be called by keywords, with the plugin's name."""
        every = self.manager.get_plugins()
        found = [impl.plugin for impl in self.manager.hook.hsdkit_page_finished.get_hookimpls()]
        return [
            (
                self.manager.subset_hook_caller("hsdkit_page_finished", every - {plugin}),
                self.manager.get_name(plugin) or "",
            )
            for plugin in found
        ]

    def component(self, kind: Kind, name: str) -> Component:
        """Raises `PluginError` that names the nearest known component when there is none of that name."""
        if found := self._components.get((kind, name)):
            return found[0]
        known = [c.name for c, _ in self.components(kind)]
        hint = did_you_mean([repr(near) for near in nearest(name, known)])
        limited = f"; {RESTRICT} limits what is loaded" if RESTRICT in os.environ else ""
        limited += "".join(f"; {note}" for note in self.notes)
        raise PluginError(
            f"no {kind} named {name!r}:{hint} known: {', '.join(known) or 'none'}{self._broken(name)}{limited}"
        )

    def _broken(self, name: str) -> str:
        """What to say of broken plugins to somebody who misses a component: all of it where one may have brought it."""
        broken = [s for s in self.states if s.error]
        wanted = _normal(name)
        suspects = [
            s for s in broken if wanted in (_normal(s.name), _normal(s.package), _normal(s.name).partition("-")[2])
        ]
        if suspects or not broken:
            return "".join(f"; {s.origin} is broken: {s.error}" for s in suspects)
        return f"; broken plugins (`hsdkit plugins` says why): {', '.join(s.name for s in broken)}"

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
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # a factory may do anything
            plugin = self._components[kind, name][1]
            raise PluginError(f"{kind} {name!r} of plugin {plugin.name!r} cannot be built: {described(e)}") from e


def _check_version(plugin: object) -> None:
    ours, theirs = hookspecs.HOOKSPEC, getattr(plugin, hookspecs.HOOKSPEC_NAME, 1)
    if theirs != ours:
        old = "hsdkit" if isinstance(theirs, int) and theirs > ours else "the plugin"
        raise PluginError(
            f"was written for version {theirs!r} of the plugin hooks, this hsdkit has version {ours}: upgrade {old}"
        )


def _check(component: Any) -> None:
    """Raises `PluginError` for what would break those who list components. Options are looked at when they are asked
    for."""
    known = isinstance(component, Component) and component.kind in ALL_KINDS and _is_name(component.name)
    if not known or not isinstance(component.summary, str):
        raise PluginError(f"hsdkit_components gave {component!r:.80}, which is no Component of a known kind")
    environment = component.environment
    whose = f"{component.kind} {component.name!r}"
    if not all(isinstance(r, Requirement) for r in component.requires):
        raise PluginError(f"{whose} requires {component.requires!r:.80}, which are no Requirements")
    if environment is None:
        return
    if not isinstance(environment, Environment) or not _is_name(environment.name):
        raise PluginError(f"{whose} has an environment that is none, or none with a plain name: {environment!r:.80}")
    try:
        if not environment.pins:
            raise PluginError(f"{whose}: its requirements {environment.requirements} name nothing")
    except (OSError, ValueError) as e:  # a file that the package was built without
        raise PluginError(f"{whose}: its requirements cannot be read: {e}") from e


def _is_name(name: object) -> bool:
    return isinstance(name, str) and re.fullmatch(r"\w[\w.-]*", name) is not None


def _origin(entry: EntryPoint) -> tuple[str, str]:
    """Name and version of the distribution an entry point comes from."""
    return _name_and_version(entry.dist) if entry.dist else ("", "")


@cache  # reading a distribution's metadata takes a millisecond, and hsdkit itself has dozens of entry points
def _name_and_version(distribution: Distribution) -> tuple[str, str]:
    metadata = distribution.metadata
    return metadata["Name"] or "", metadata["Version"] or ""


def _names(entry: EntryPoint) -> set[str]:
    """What `HSDKIT_PLUGINS` may call it."""
    return {_normal(entry.name), _normal(_origin(entry)[0])}


def _normal(name: str) -> str:
    return re.sub(r"[-_.\s]+", "-", name.strip().lower())


def _cause(error: BaseException) -> str:
    if isinstance(error, PluginError):
        return str(error)
    ours = isinstance(error, ImportError) and (error.name or "").partition(".")[0] == hookspecs.PROJECT
    return described(error) + ("; it needs another version of hsdkit" if ours else "")


@cache
def plugins() -> Plugins:
    """The process-wide plugins, discovered on first use."""
    found = Plugins()
    found.discover()
    return found
