"""Document-parsing vision-language models, several times faster, saying exactly the same."""

from hsdkit.hookspecs import hookimpl

__all__ = ["hookimpl"]
