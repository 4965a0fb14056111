"""`hsdkit serve-command`: the command that starts a server for an engine, printed."""

from __future__ import annotations

from typing import Annotated

import typer

from hsdkit.cli import console


def serve_command(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", show_default=False, help="The target and the engine, as for `hsdkit run`."),
    ] = None,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    """Print the command that starts a vLLM server for a target, on one line.

    vLLM and hsdkit are installed where it runs; clients are pointed at it
    with engine=vllm engine.url=http://HOST:8000.

      hsdkit serve-command target=hunyuanocr
      hsdkit serve-command target=tiny engine.arguments.max_model_len=4096
    """
    from hsdkit.config import compose
    from hsdkit.errors import ConfigError
    from hsdkit.pipeline import Pipeline

    console.set_up(debug)
    pipeline = Pipeline(compose(["engine=vllm", *(overrides or [])]))
    command = getattr(pipeline.engine, "serve_command", None)
    if command is None:
        raise ConfigError(f"engine={pipeline.config.engine.name}: has no server; leave it out, or say engine=vllm")
    typer.echo(command())
