"""Who may be in a room: many at once, or one alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Gate:
    """`entered()` is shared by all threads but those that want to be `alone`, who wait until the others have left and
    keep later ones out."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._alone = False
        self.queued = 0  # how many wait to be alone

    @contextlib.contextmanager
    def entered(self, *, alone: bool = False) -> Iterator[None]:
        with self._changed:
            self.queued += alone
            self._changed.wait_for(lambda: self._free(alone))
            self.queued -= alone
            self._inside += 1
            self._alone = alone
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                self._alone = False
                self._changed.notify_all()

    def _free(self, alone: bool) -> bool:
        return self._inside == 0 if alone else not (self._alone or self.queued)
