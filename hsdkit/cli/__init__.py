"""The command line: one small file a command. Nothing heavy is imported before a command needs it."""

import os
import sys


def main() -> None:
    try:
        _have_streams()
        from hsdkit.cli.app import app

        app()
    except KeyboardInterrupt:  # while this very module was still importing
        sys.exit(130)


def _have_streams() -> None:
    """Whatever they are, printing to them may not end a run: they may be closed, or not take every letter."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
