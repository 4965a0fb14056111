"""What the commands print through: results on stdout, the rest on stderr, libraries silenced unless debugging."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from dataclasses import fields
from typing import IO, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer import BadParameter

#: Wide enough that a table which goes to a file or a pipe is not cut.
_PIPED_WIDTH = 200

#: What would move the cursor, colour the terminal, break a line or turn the direction of text.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class _Untiring(Console):
    """Goes on in silence when whoever read along has gone: what is told on the way may not end the work."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.file.fileno())  # what others print there, and what is left in its buffer
        os.close(nowhere)


def console(stream: IO[str] | None = None) -> Console:
    """A rich console on `stream` (stderr by default); plain and wide when that is no terminal."""
    stream = stream or sys.stderr
    kind = Console if stream is sys.stdout else _Untiring
    return kind(file=stream, width=None if stream.isatty() else _PIPED_WIDTH, highlight=False)


def plain(text: str) -> str:
    """Text from elsewhere (file names, causes) as markup that shows it as it is, on one line."""
    return escape(_CONTROL.sub(lambda found: repr(found[0])[1:-1], text))


def error(message: str) -> None:
    console().print(f"[bold red]error:[/] {plain(message)}", soft_wrap=True)


def warn(message: str) -> None:
    console().print(f"[yellow]note:[/] {plain(message)}", soft_wrap=True)


def count(n: int, what: str) -> str:
    """`1 page`, `2 pages`."""
    return f"{n} {what}{'s' * (n != 1)}"


def duration(seconds: float) -> str:
    """`12 s`, `3 min 20 s`, `5 h 12 min`."""
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def is_usage_error(e: Exception) -> bool:
    """Whether the argument parser raised it, which then explains it itself."""
    click_exception = next(c for c in BadParameter.__mro__ if c.__name__ == "ClickException")
    return isinstance(e, click_exception)


def explain_dashes(e: Any) -> None:
    """Says of `--output parsed` that it is written `output=parsed`; leaves every other error as it is."""
    from hsdkit.components import KINDS
    from hsdkit.config import RunOptions

    name = (getattr(e, "option_name", None) or "").lstrip("-").replace("-", "_")
    if name.partition(".")[0] in {*KINDS, *(f.name for f in fields(RunOptions))}:
        e.message = f"{e.message}: options of a run are KEY=VALUE, such as {name}=..."


def set_up(debug: bool) -> None:
    """Debugging shows hsdkit's log with tracebacks, and what the libraries say; otherwise they are silent."""
    if debug:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
        logging.getLogger("hsdkit").addHandler(handler)
        logging.getLogger("hsdkit").setLevel(logging.DEBUG)
        return
    # Read by these libraries when they are imported, which has not happened yet.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("HF_HUB_VERBOSITY", "error")  # the hub's retries; what they end in is our error
    warnings.simplefilter("ignore")


DebugOption = typer.Option("--debug", help="Show tracebacks, and what the model libraries log.")
