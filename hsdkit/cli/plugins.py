"""`hsdkit plugins`: what is installed, where it comes from, and what is missing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hsdkit.cli import console
from hsdkit.cli.console import plain
from hsdkit.components import ALL_KINDS, Component
from hsdkit.hub import must_be_fetched

if TYPE_CHECKING:
    from hsdkit.plugins import Plugins, PluginState


def plugins(
    kind: Annotated[
        str | None, typer.Argument(help=f"Only this kind: {', '.join(ALL_KINDS)}.", show_default=False)
    ] = None,
) -> None:
    """List the components that can be chosen, with the package that brings each and what it lacks.

    Any installed package can add components (entry-point group "hsdkit").
    HSDKIT_PLUGINS=NAME,... loads only the plugins, or the plugins of the
    packages, of those names.

      hsdkit plugins            [dim]everything[/]
      hsdkit plugins drafter    [dim]drafters only: choose one with drafter=NAME[/]
    """
    from hsdkit.plugins import RESTRICT
    from hsdkit.plugins import plugins as discovered

    if kind is not None and kind not in ALL_KINDS:
        raise typer.BadParameter(f"{kind!r} is none of {', '.join(ALL_KINDS)}")
    found = discovered()
    for note in found.notes:
        console.warn(note)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("kind", "name", "package", "version", "state", "summary"):
        table.add_column(column, overflow="fold", no_wrap=column in ("kind", "name"))
    bringing = set()
    for component, plugin in found.components():
        bringing.add(plugin.name)
        if kind in (None, component.kind):
            summary = readiness(component), plain(component.summary)
            table.add_row(component.kind, plain(component.name), *_package(plugin), *summary)
    for state in found.states:
        if kind is None and not state.error and state.name not in bringing:
            table.add_row("observer", plain(state.name), *_package(state), "[green]ready[/]", "brings no component")
    out = console.console(sys.stdout)
    out.print(table)
    for line in broken(found):
        out.print(line, soft_wrap=True)
    if found.left_out:
        out.print(f"[dim]not loaded, {RESTRICT} does not name them:[/] {plain(', '.join(found.left_out))}")


def _package(state: PluginState) -> tuple[str, str]:
    return (plain(state.package), plain(state.version)) if state.package else ("registered in process", "")


def broken(found: Plugins) -> list[str]:
    """A line for each plugin that cannot be used, with its reason, in rich markup."""
    return [f"[red]broken:[/] {plain(f'{s.origin}: {s.error}')}" for s in found.states if s.error]


def _fetches(component: Component) -> bool:
    """Whether it is a target whose default checkpoint, a model of the hub, is not on this machine."""
    model, revision = (getattr(component.config, option, None) for option in ("model", "revision"))
    return component.kind == "target" and isinstance(model, str) and must_be_fetched(model, revision)


def readiness(component: Component) -> str:
    """`ready`, or how it is and what to install for the rest, or what to install, with rich markup."""
    if component.missing:
        modules = ", ".join(r.module for r in component.missing)
        return f"[yellow]needs {plain(modules)}:[/] {plain(component.install)}"
    if component.environment:
        from hsdkit.cli.drafter import environment_state

        return environment_state(component.environment)
    partly = [r for r in component.requires if not r.installed]
    without = "".join(plain(f' {r.without}; else needs {r.module}: pip install "{r.install}"') for r in partly)
    return f"[green]ready[/]{without}{', weights are fetched on first use' * _fetches(component)}"
