"""Documents named on the command line: an input that names nothing is a failure of its own, told at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from hsdkit.cli import console
from hsdkit.components import KINDS
from hsdkit.config import RunOptions
from hsdkit.documents import NO_INPUT, find_inputs
from hsdkit.errors import ConfigError, DocumentError
from hsdkit.jobs.inputs import Input, read_inputs

#: Added to what is said of an input that is no file: `output = parsed`, `drafter pdftext`, `Output=parsed`.
OPTION_HINT = " (if an option was meant: KEY=VALUE, in small letters, without spaces)"


def all_inputs(inputs: tuple[str, ...], failures: list[str]) -> Iterator[Input]:
    """The documents of all inputs, lists included, one at a time."""
    if not inputs:
        raise ConfigError(NO_INPUT)
    for given in inputs:
        try:
            yield from read_inputs(given)
        except (DocumentError, OSError, ValueError) as e:
            _fail(given, e, failures)


def find_all(inputs: tuple[str, ...], failures: list[str]) -> list[Path]:
    """The files of all inputs."""
    if not inputs:
        raise ConfigError(NO_INPUT)
    found: dict[Path, None] = {}
    for given in inputs:
        try:
            found.update(dict.fromkeys(find_inputs([given])))
        except (DocumentError, OSError, ValueError) as e:
            _fail(given, e, failures)
    return list(found)


def _fail(given: str, error: Exception, failures: list[str]) -> None:
    reason = str(error) if isinstance(error, DocumentError) else f"{given!r:.80}: {error.args[-1]}"
    failures.append(reason)
    console.error(reason + (OPTION_HINT if _meant_as_option(given) else ""))


def _meant_as_option(given: str) -> bool:
    return "=" in given or given.partition(".")[0].lower() in {*KINDS, *(f.name for f in fields(RunOptions))}
