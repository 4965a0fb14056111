"""The command line for tests: in process, and in a process of its own that knows the toys."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from toys import TOY
from typer.testing import CliRunner

from hsdkit.cli.app import app
from hsdkit.document_result import DocumentResult


def hsdkit(*arguments: str) -> Any:
    """The command in this process; a traceback fails the test."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def run(*arguments: str) -> Any:
    """`hsdkit run` with toys."""
    return hsdkit("run", *TOY, *arguments)


def load(path: str) -> DocumentResult:
    return DocumentResult.load(path)


def shell(*arguments: str, before: str = "", env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own that knows the toys and runs the code `before` first."""
    code = f"import toys; toys.register_toys()\n{before}\nfrom hsdkit.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent), **(env or {})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
