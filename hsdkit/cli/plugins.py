"""`hsdkit plugins`: what is installed, where it comes from, and what is missing."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.table import Table

from hsdkit.cli import console
from hsdkit.cli.console import plain
from hsdkit.components import KINDS, Component


def plugins(
    kind: Annotated[str | None, typer.Argument(help=f"Only this kind: {', '.join(KINDS)}.", show_default=False)] = None,
) -> None:
    """List the components that can be chosen, with the package that brings each and what it lacks.

    Any installed package can add components (entry-point group "hsdkit"); HSDKIT_PLUGINS=NAME,... loads only those.

      hsdkit plugins            [dim]everything[/]
      hsdkit plugins drafter    [dim]drafters only: choose one with drafter=NAME[/]
    """
    from hsdkit.plugins import plugins as discovered

    if kind is not None and kind not in KINDS:
        raise typer.BadParameter(f"{kind!r} is none of {', '.join(KINDS)}")
    found = discovered()
    states = {state.name: state for state in found.states}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("kind", "name", "package", "state", "summary"):
        table.add_column(column, overflow="fold", no_wrap=column in ("kind", "name"))
    for component, plugin in found.components():
        if kind in (None, component.kind):
            state = states.get(plugin)
            package = f"{state.package} {state.version}" if state else "registered in process"
            table.add_row(component.kind, component.name, package, readiness(component), plain(component.summary))
    out = console.console(sys.stdout)
    out.print(table)
    for state in found.states:
        if state.error:
            out.print(
                f"[red]broken:[/] {plain(f'plugin {state.name} of {state.package} {state.version}: {state.error}')}"
            )


def readiness(component: Component) -> str:
    """`ready`, or what to install, with rich markup."""
    if not component.missing:
        return "[green]ready[/]"
    modules = ", ".join(r.module for r in component.missing)
    return f"[yellow]needs {plain(modules)}:[/] {plain(component.install)}"
