"""Errors a user can act on. The command line prints them as one line; anything else is a bug and has a traceback."""

from __future__ import annotations


class HsdkitError(Exception):
    """Base of every error whose message is written for the user: what failed, where, and what to do."""


class ConfigError(HsdkitError):
    """An option or value that does not exist, or a combination that cannot work."""


class DocumentError(HsdkitError):
    """A file or page that cannot be read. The message names the file, the page where known, and the cause."""


class PluginError(HsdkitError):
    """A component that is missing, broken, or whose requirements are not installed."""


class DrafterError(HsdkitError):
    """A drafter that could not draft a page; the page is then decoded without a draft."""


class OutputError(HsdkitError):
    """The output folder or a file in it cannot be written."""


class NameTaken(OutputError):
    """There is a folder in the place of an output file: the trouble of that file alone."""


class TargetError(HsdkitError):
    """A checkpoint that cannot be loaded or computes nonsense, or an input it cannot take."""


class BenchmarkError(HsdkitError):
    """Ground truth that cannot be read or is of another format. The message names the file and what to do."""


def described(error: BaseException) -> str:
    """`TypeName: message` on one line, for errors of others."""
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"


def cause(error: BaseException) -> str:
    """What a user is told of any error: the message of one written for the user, else `described`."""
    return str(error) if isinstance(error, HsdkitError) else described(error)
