"""The command line: one small file a command. Nothing heavy is imported before a command needs it."""

import sys


def main() -> None:
    try:
        from hsdkit.cli.app import app

        app()
    except KeyboardInterrupt:  # while this very module was still importing
        sys.exit(130)
