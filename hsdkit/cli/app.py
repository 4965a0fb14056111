"""The `hsdkit` command: its subcommands, `--version`, and how errors end."""

from __future__ import annotations

import logging
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hsdkit.cli import console
from hsdkit.cli.bench import bench
from hsdkit.cli.compare import compare
from hsdkit.cli.doctor import doctor
from hsdkit.cli.draft import draft
from hsdkit.cli.drafter import drafter
from hsdkit.cli.eval import evaluate
from hsdkit.cli.plugins import plugins
from hsdkit.cli.report import report
from hsdkit.cli.run import run
from hsdkit.cli.run_ray import RunCommand
from hsdkit.cli.serve import serve
from hsdkit.cli.serve_command import serve_command
from hsdkit.cli.sweep import sweep
from hsdkit.cli.whatif import whatif
from hsdkit.errors import ConfigError, HsdkitError

log = logging.getLogger(__name__)


class Commands(TyperGroup):
    """Errors written for the user are one line and exit code 2 (usage) or 1; a traceback is shown with --debug only."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except HsdkitError as e:
            log.debug("failed", exc_info=True)
            console.error(str(e))
            raise typer.Exit(2 if isinstance(e, ConfigError) else 1) from None
        except (typer.Exit, typer.Abort, EOFError, BrokenPipeError):
            raise
        except Exception as e:  # a bug is one line too, whatever it raises
            if console.is_usage_error(e):
                console.explain_dashes(e)
                raise
            log.debug("failed", exc_info=True)
            console.error(f"unexpected {type(e).__name__}: {e} (this is a bug in hsdkit; --debug shows where)")
            raise typer.Exit(1) from None


app = typer.Typer(
    cls=Commands,
    help="Decodes document-parsing vision-language models in fewer passes: by default to exactly the same text.\n\n"
    "A light drafter reads the page first; the model checks many drafted tokens in one pass and is always the arbiter.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="First steps:  [cyan]hsdkit run report.pdf[/]   [cyan]hsdkit doctor[/]   [cyan]hsdkit plugins[/]",
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"hsdkit {version('hsdkit')}")
        raise typer.Exit


@app.callback()
def hsdkit(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


# In the order of `hsdkit --help`: to parse, to measure, to look after the installation.
app.command(cls=RunCommand)(run)
app.command()(serve)
app.command("serve-command")(serve_command)
app.command()(draft)
app.command()(bench)
app.command("eval")(evaluate)
app.command()(sweep)
app.command()(report)
app.command()(compare)
app.command()(whatif)
app.command()(plugins)
app.command()(doctor)
app.add_typer(drafter)
