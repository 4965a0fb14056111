"""`hsdkit drafter`: the environments that heavy drafters run in, and the drafts they have made."""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hsdkit.cli import console
from hsdkit.cli.console import plain

if TYPE_CHECKING:
    from hsdkit.components import Environment

drafter = typer.Typer(
    name="drafter",
    no_args_is_help=True,
    help="Install the libraries of heavy drafters, each into an environment of its own; look after their drafts.",
)

_NAME = typer.Argument(metavar="NAME", show_default=False, help="A drafter that `hsdkit drafter list` lists.")


@drafter.command()
def install(
    name: Annotated[str, _NAME],
    python: Annotated[str, typer.Option(help="The Python to build on; that of hsdkit if not given.")] = "",
    again: Annotated[bool, typer.Option("--again", help="Make it anew even if it is there.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the result and errors only.")] = False,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    """Make the environment of a drafter from the pinned requirements that come with it.

    A failed or interrupted installation leaves nothing behind, and an older
    environment as it was.

      hsdkit drafter install docling
    """
    from hsdkit.cli.interrupts import Interrupts
    from hsdkit.workers import environments
    from hsdkit.workers.install import install

    console.set_up(debug)
    environment = _environment(name)
    if environments.state(environment) == "ready" and not again:
        place = environments.folder(environment)
        typer.echo(f"{name} is installed in {place} (--again makes it anew)")
        return
    err, start, interrupts = console.console(), time.perf_counter(), Interrupts()
    with err.status(f"installing {plain(name)}") as status:

        def say(line: str) -> None:
            if debug:
                err.print(plain(line), soft_wrap=True)
            elif err.is_terminal and not quiet:
                status.update(f"installing {plain(name)}: {plain(line[:80])}")
            elif not quiet and line.startswith(("making", "Collecting", "Installing")):
                err.print(plain(line[:160]), soft_wrap=True)

        try:
            with interrupts:  # SIGTERM would leave pip running, and what it has made
                place = install(environment, say, base=python, again=again)
        except KeyboardInterrupt:
            raise typer.Exit(128 + (interrupts.received or signal.SIGINT)) from None
    version = environments.installed_version(environment)
    typer.echo(f"installed {name} {version} in {place} ({time.perf_counter() - start:.0f} s): drafter={name}")


@drafter.command()
def remove(name: Annotated[str, _NAME]) -> None:
    """Remove the environment of a drafter."""
    from hsdkit.workers.install import remove

    typer.echo(f"{name} removed" if remove(_environment(name)) else f"{name} has no environment")


@drafter.command("list")
def list_() -> None:
    """List the drafters that have an environment of their own, and where each is."""
    from hsdkit.workers import environments

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "state", "requirements"):
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    for environment in _environments().values():
        table.add_row(plain(environment.name), environment_state(environment), plain(" ".join(environment.pins)))
    out = console.console(sys.stdout)
    out.print(table)
    out.print(f"[dim]kept in {plain(str(environments.root()))} (HSDKIT_HOME)[/]", soft_wrap=True)


@drafter.command()
def cache(clear: Annotated[bool, typer.Option("--clear", help="Remove all drafts from it.")] = False) -> None:
    """Show how many drafts are kept on disk, or remove them. `reuse_drafts=false` makes a run not use them."""
    from hsdkit.draft_cache import MOST_BYTES, DraftCache
    from hsdkit.errors import OutputError

    drafts = DraftCache()
    entries, size = drafts.size()
    if clear:
        drafts.prune(0)
        left, left_size = drafts.size()
        gone = f"{console.count(entries - left, 'draft')}, {(size - left_size) / 1e6:.1f} MB"
        typer.echo(f"removed {gone}, from {drafts.folder}")
        if left:
            raise OutputError(f"{drafts.folder}: {console.count(left, 'draft')} cannot be removed")
    else:
        most = MOST_BYTES / 1e6
        typer.echo(f"{console.count(entries, 'draft')}, {size / 1e6:.1f} MB (at most {most:.0f}), in {drafts.folder}")


def environment_state(environment: Environment) -> str:
    """Where the drafter would run, or how to get it, with rich markup."""
    from hsdkit.workers import environments

    state = environments.state(environment)
    if state == "ready":
        version = environments.installed_version(environment)
        return f"[green]ready[/] {plain(version)} in its own environment"
    if environment.importable:
        return "[green]ready[/] in this process"
    command = f"hsdkit drafter install {plain(environment.name)}"
    if state == "outdated":
        return f"[yellow]outdated:[/] {command}"
    return f"[yellow]not installed:[/] {command}, or drafter.url=URL"


def _environments() -> dict[str, Environment]:
    """By name: several drafters may share one."""
    from hsdkit.plugins import plugins

    found = [c.environment for c, _ in plugins().components("drafter") if c.environment]
    return {environment.name: environment for environment in found}


def _environment(name: str) -> Environment:
    """Raises `PluginError` for an unknown drafter, `ConfigError` for one that needs no environment."""
    from hsdkit.errors import ConfigError
    from hsdkit.plugins import plugins

    component = plugins().component("drafter", name)
    if component.environment is None:
        how = f"install it with: {component.install}" if component.missing else "it is ready as it is"
        known = ", ".join(_environments()) or "none"
        raise ConfigError(f"drafter {name!r} needs no environment of its own; {how} (those that do: {known})")
    return component.environment
