"""Pages on a Ray cluster: a whole run with `hsdkit run --ray` or `parse`, or rows of a Ray Data pipeline of your own
with `pages` and `PageParser`. What is public is named here; Ray is imported when it is used."""

from __future__ import annotations

from hsdkit.ray.parser import PageParser, pages
from hsdkit.ray.run import parse

__all__ = ["PageParser", "pages", "parse"]
