"""The library imported into this process: no time limit and no bound on memory, for those who installed it here."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hsdkit.components import Environment
from hsdkit.errors import DrafterError, PluginError
from hsdkit.workers.serve import describe, import_script


class InProcess:
    """Runs the same worker script as the environment does. Same interface as `Supervisor`."""

    where = "this process"

    def __init__(
        self, environment: Environment, script: Path, options: Mapping[str, Any], explain: Callable[[str], str | None]
    ) -> None:
        self._name, self._script, self._options, self._explain = environment.name, script, options, explain
        self._read: Callable[[str], Any] | None = None
        self.version = _version(environment.distribution)

    def load(self) -> None:
        """Raises `PluginError` when the library cannot be imported or loaded."""
        if self._read is None:
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    self._read = import_script(str(self._script)).load(dict(self._options))
            except KeyboardInterrupt:
                raise
            except BaseException as e:  # libraries exit, and extension modules panic with errors that are no Exception
                said = describe(e)
                raise PluginError(self._explain(said) or f"cannot be loaded: {said}") from e

    def read(self, path: Path) -> Any:
        """Raises `DrafterError` with the library's own error."""
        self.load()
        assert self._read is not None
        try:
            with contextlib.redirect_stdout(sys.stderr):  # standard output is for results
                return self._read(str(path))
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            said = describe(e)
            raise DrafterError(self._explain(said) or said) from e

    def close(self) -> None:
        self._read = None

    def take_notes(self) -> tuple[str, ...]:
        return ()


def _version(distribution: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
