"""Ctrl-C and SIGTERM end a run in order: the page under way is given up, what is finished is written.

Python raises KeyboardInterrupt wherever the program happens to be, and libraries swallow it there (imports of compiled
modules do). So the signal is remembered, and `check` raises it again at the next good moment.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """While the block runs, both signals raise KeyboardInterrupt; `received` is the one that came, 0 before."""

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[signal.Signals, Any] = {}

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has come, whether or not something swallowed it."""
        if self.received:
            raise KeyboardInterrupt

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        raise KeyboardInterrupt

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                # Whoever ignores or handles a signal already (nohup, a program around this one) has a reason.
                if (before := signal.getsignal(number)) in (signal.default_int_handler, signal.SIG_DFL):
                    self._before[number] = before
                    signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
