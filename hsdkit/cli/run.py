"""`hsdkit run`: documents in, NAME.md and NAME.json out."""

from __future__ import annotations

import os
import re
from typing import Annotated

import typer

from hsdkit.cli import console
from hsdkit.cli.run_ray import on_ray

_OVERRIDE = re.compile(r"[a-z_]+(\.\w+)*=", re.ASCII)

HELP = """Parse documents: PDF, PNG, JPEG, WebP, BMP, TIFF; files, folders, globs, lists.

Writes NAME.md and NAME.json for each into the output folder. Run again, it
goes on where it stopped: pages of unchanged files are kept if the settings
are the same.

[bold]Examples[/]

  hsdkit run report.pdf                            [dim]the default: exact[/]
  hsdkit run scans/ 'more/*.png' output=parsed     [dim]a folder and a glob[/]
  hsdkit run @files.txt output=parsed              [dim]a list: paths or JSON lines[/]
  hsdkit run scans/ --retry-failed                 [dim]what failed, once more[/]
  hsdkit run report.pdf pages=1-3,7 --stream       [dim]text as it is written[/]
  hsdkit run a.pdf drafter=pdftext verifier.n=4    [dim]components, options[/]
  hsdkit run report.pdf experiment=paper --report  [dim]the published setting[/]
  hsdkit run a.pdf target=hunyuanocr               [dim]another model[/]
  hsdkit run @files.txt --ray                      [dim]on a Ray cluster[/]
  hsdkit run verifier=page --show-config           [dim]all options, as YAML[/]

[bold]Exit code[/]  0: all parsed, now or before; 1: some failed, the rest is
written (failures.jsonl lists what failed); 2: usage;
130: Ctrl-C (143: SIGTERM), with what was done."""


def run(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE|FILE|@LIST",
            show_default=False,
            help="Options as KEY=VALUE (--show-config lists them all), and the documents to parse.",
        ),
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print the text to stdout as it is written.")] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Also write NAME.html: pages, drafts, what was accepted, timeline.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Parse pages that failed in an earlier run once more.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Keep nothing of earlier runs: parse every page.")] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="[=ADDRESS]",
            show_default=False,
            help="Let workers of a Ray cluster read the pages: at ADDRESS, of this machine, or started for it.",
        ),
    ] = None,
    ray_workers: Annotated[
        str | None,
        typer.Option(metavar="N|MIN-MAX", show_default=False, help="How many workers; by default 1 to what fits."),
    ] = None,
    ray_cpus: Annotated[float | None, typer.Option(min=0, show_default=False, help="CPU cores of each worker.")] = None,
    ray_gpus: Annotated[float | None, typer.Option(min=0, show_default=False, help="GPUs of each worker.")] = None,
    show_config: Annotated[
        bool, typer.Option("--show-config", help="Print the composed configuration as YAML and exit.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    from hsdkit.config import compose

    console.set_up(debug)
    overrides, inputs = split_arguments(arguments or [])
    config = compose(overrides, inputs=inputs)
    if show_config:
        typer.echo(config.to_yaml(), nl=False)
        return
    for note in config.notes:
        console.warn(note)

    from hsdkit.cli.batch import RunFlags, run_batch

    parser = on_ray(ray, ray_workers, ray_cpus, ray_gpus, stream=stream)
    raise typer.Exit(run_batch(config, RunFlags(stream, report, quiet, retry_failed, fresh), parser))


run.__doc__ = HELP


def split_arguments(arguments: list[str]) -> tuple[list[str], list[str]]:
    """(overrides, inputs). What looks like an override but is there as a file is an input."""
    overrides = [a for a in arguments if _OVERRIDE.match(a) and not os.path.exists(a)]
    return overrides, [a for a in arguments if a not in overrides]
