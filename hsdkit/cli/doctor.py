"""`hsdkit doctor`: what this machine has, what each component needs, and whether a setup really loads."""

from __future__ import annotations

import os
import platform
import sys
import time
from typing import Annotated

import typer
from rich.console import Console

from hsdkit.cli import console
from hsdkit.cli.console import plain
from hsdkit.cli.plugins import broken, readiness


def doctor(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", show_default=False, help="The setup to check, as for `hsdkit run`."),
    ] = None,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    """Check the installation, then build the setup and load its model. Exit code 1 if that cannot be done.

    hsdkit doctor                                          [dim]the default setup[/]
    hsdkit doctor drafter=rapidocr target.model=/models/q  [dim]this one[/]
    """
    from hsdkit.plugins import plugins as discovered

    console.set_up(debug)
    out = console.console(sys.stdout)
    _machine(out)
    found = discovered()
    for component, _ in found.components():
        out.print(f"{component.kind:9} {component.name:16} {readiness(component)}", soft_wrap=True)
    for line in broken(found):
        out.print(line, soft_wrap=True)
    for note in found.notes:
        console.warn(note)
    if not _loads(out, overrides or []):
        raise typer.Exit(1)


def _machine(out: Console) -> None:
    from hsdkit.versions import PACKAGES, package_version, usable_cores

    facts = {"python": f"{platform.python_version()} on {platform.system()} {platform.machine()}"}
    facts |= {name: package_version(name) or "[red]not installed[/]" for name in PACKAGES}
    facts["processor"] = f"{usable_cores()} cores"
    if memory := _memory():
        facts["memory"] = f"{memory / 2**30:.1f} GiB"
    try:
        import torch

        facts["threads"] = f"{torch.get_num_threads()} (torch)"
        gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        facts["devices"] = ", ".join([*gpus, "cpu"])
    except Exception as e:  # a broken torch is what a doctor is for
        facts["devices"] = f"[red]torch cannot be imported: {plain(str(e))}[/]"
    for name, fact in facts.items():
        out.print(f"{name:26} {fact}", soft_wrap=True)


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _loads(out: Console, overrides: list[str]) -> bool:
    from hsdkit.config import compose
    from hsdkit.errors import ConfigError, cause
    from hsdkit.pipeline import Pipeline

    config = compose(overrides)
    names = ", ".join(f"{k}={getattr(config, k).name}" for k in ("drafter", "target", "verifier", "engine"))
    start = time.perf_counter()
    try:
        pipeline = Pipeline(config)
        pipeline.load()
        made = pipeline.versions()
    except ConfigError:
        raise
    except Exception as e:  # plugins and libraries raise anything; which, is what a doctor is to say
        out.print(f"[bold red]cannot run[/] {names}: {plain(cause(e))}", soft_wrap=True)
        return False
    model = f"{made.get('dtype', '')} on {made.get('device', '')}"
    out.print(f"[bold green]can run[/] {names}: loaded in {time.perf_counter() - start:.1f} s, {model}", soft_wrap=True)
    return True
