"""A report that costs nothing else: whatever goes wrong with it is told."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hsdkit.errors import described
from hsdkit.report.writer import ReportWriter
from hsdkit.results import PageResult

if TYPE_CHECKING:
    from PIL.Image import Image

log = logging.getLogger(__name__)


class GuardedReport:
    """NAME.html as pages arrive. The first failure goes to `fail`; nothing more is written then."""

    def __init__(
        self,
        path: Path,
        source: str,
        settings: Mapping[str, Any],
        versions: Mapping[str, str],
        fail: Callable[[str], None],
    ) -> None:
        self.path = path
        self._fail = fail
        self._writer: ReportWriter | None = None
        self._guarded(lambda: setattr(self, "_writer", ReportWriter(path, source, settings, versions)))

    def add(self, result: PageResult, image: Image | None) -> None:
        if writer := self._writer:
            self._guarded(lambda: writer.add(result, image))

    def close(self, error: str | None) -> None:
        if writer := self._writer:
            self._guarded(lambda: writer.close(error))

    def _guarded(self, write: Callable[[], None]) -> None:
        try:
            write()
        except Exception as e:  # a report shows results, it may not cost one
            log.debug("report %s failed", self.path, exc_info=True)
            self._writer = None
            self._fail(f"{self.path}: the report could not be written: {described(e)}")
