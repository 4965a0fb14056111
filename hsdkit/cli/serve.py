"""`hsdkit serve`: documents over HTTP, and a page in the browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hsdkit.cli import console
from hsdkit.cli.run import split_arguments
from hsdkit.errors import ConfigError, PluginError
from hsdkit.service.limits import MIB, Limits

HELP = """Parse documents over HTTP, with a page in the browser to drop them on.

[bold]Examples[/]

  hsdkit serve                                     [dim]http://127.0.0.1:8471[/]
  hsdkit serve target=hunyuanocr verifier.tau=0.75 [dim]options as for run[/]
  curl -F file=@report.pdf http://127.0.0.1:8471/v1/parse

Only this machine can reach it unless [bold]--host[/] says otherwise; it
then asks for a token, from HSDKIT_TOKEN or [bold]--token-file[/]. All
requests are listed at /docs."""

_DEFAULT = Limits()

#: Seconds a page may take, unless `page_seconds=` says otherwise.
PAGE_SECONDS = 300

#: Options of a run that a client chooses, or that have no meaning here.
_NOT_HERE = ("input", "output", "pages", "save_drafts")


def serve(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", show_default=False, help="Options of every page, as for hsdkit run."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 for any that is free.", min=0, max=65535)] = 8471,
    token_file: Annotated[
        Path | None, typer.Option(help="File with the token that clients must send.", show_default=False)
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(help="Name of a proxy on this machine that passes its Host header on.", show_default=False),
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let anybody who can reach --host use it without a token.")
    ] = False,
    allow_urls: Annotated[
        bool, typer.Option("--allow-urls", help="Also fetch documents by http(s) address, public ones only.")
    ] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Keep results here beyond the end of the service.", show_default=False)
    ] = None,
    max_mb: Annotated[int, typer.Option(help="Largest upload.", min=1)] = _DEFAULT.body_bytes // MIB,
    max_pages: Annotated[int, typer.Option(help="Most pages of one request.", min=1)] = _DEFAULT.pages,
    queue: Annotated[int, typer.Option(help="Most documents waiting or being parsed.", min=1)] = _DEFAULT.queue,
    document_seconds: Annotated[
        float, typer.Option(help="Longest time for a document, from its first page on.", min=0.1)
    ] = _DEFAULT.document_seconds,
    keep_seconds: Annotated[float, typer.Option(help="How long results are kept.", min=0)] = _DEFAULT.keep_seconds,
    keep_mb: Annotated[int, typer.Option(help="Most disk space of results.", min=1)] = _DEFAULT.keep_bytes // MIB,
    grace_seconds: Annotated[
        float, typer.Option(help="How long a shutdown waits for pages in flight.", min=0)
    ] = _DEFAULT.grace_seconds,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    console.set_up(debug)
    overrides, inputs = split_arguments(arguments or [])
    if inputs:
        raise ConfigError(f"{inputs[0]}: hsdkit serve takes options (KEY=VALUE), documents are sent to it")
    for key in _NOT_HERE:
        if any(o.startswith(f"{key}=") for o in overrides):
            raise ConfigError(f"{key}= has no meaning for hsdkit serve")
    try:
        from hsdkit.service.access import is_loopback
        from hsdkit.service.server import serve as serve_on
    except ModuleNotFoundError as e:
        raise PluginError(f"hsdkit serve needs {e.name}: pip install 'hsdkit[serve]'") from None

    token = _token(token_file)
    if token is None and not is_loopback(host) and not no_token:
        raise ConfigError(
            f"--host {host} can be reached from other machines: set a token (HSDKIT_TOKEN or --token-file), "
            "or say --no-token"
        )
    from hsdkit.config import compose
    from hsdkit.pipeline import Pipeline
    from hsdkit.preparing.pool import fitting_processes

    config = compose([f"preparing={fitting_processes()}", f"page_seconds={PAGE_SECONDS}", *overrides])
    for note in config.notes:
        console.warn(note)
    limits = Limits(
        body_bytes=max_mb * MIB, pages=max_pages, queue=queue, document_seconds=document_seconds,
        keep_seconds=keep_seconds, keep_bytes=keep_mb * MIB, grace_seconds=grace_seconds,
    )  # fmt: skip
    error = serve_on(
        Pipeline(config), host=host, port=port, token=token, limits=limits, folder=folder, urls=allow_urls,
        names=frozenset(n.lower() for n in name or ()),
        started=lambda address: console.console().print(
            f"hsdkit is at [bold]{address}[/], loading {config.target.name}; end it with Ctrl-C", soft_wrap=True
        ),
    )  # fmt: skip
    if error:
        console.error(error)
        raise typer.Exit(1)


serve.__doc__ = HELP


def _token(file: Path | None) -> str | None:
    """Raises `ConfigError` for one that cannot be sent in a header."""
    if file is None:
        where, token = "HSDKIT_TOKEN", os.environ.get("HSDKIT_TOKEN", "").strip()
        if not token:
            return None
    else:
        try:
            where, token = f"--token-file {file}", file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as e:
            raise ConfigError(f"--token-file {file}: cannot be read: {e}") from None
    if not (token.isascii() and token.isprintable()) or not token or " " in token:
        raise ConfigError(f"{where}: a token is letters, digits and signs of ASCII, without spaces")
    return token
