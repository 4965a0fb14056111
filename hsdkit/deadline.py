"""A page's time: an engine that ends what it decodes when the time is over, and how verifiers share it out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hsdkit.protocols import Decoded, DecodeRequest, DecodeSettings, Engine, OnText


class EngineUntil:
    """An engine for one page: all that it decodes ends by `deadline` (of `time.monotonic()`) at the latest.

    Verifiers use it as the engine itself; what else an engine has (`decode_with`, measurements) is there too.
    """

    def __init__(self, engine: Engine, deadline: float) -> None:
        self._engine = engine
        self.deadline = deadline

    def decode(
        self, requests: Sequence[DecodeRequest], settings: DecodeSettings, on_text: OnText | None = None
    ) -> Decoded:
        return self._engine.decode(requests, self._limited(settings), on_text)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        return self._limiting(found) if name == "decode_with" else found

    def _limiting(self, decode: Callable[..., Decoded]) -> Callable[..., Decoded]:
        def limited(requests: Sequence[DecodeRequest], settings: DecodeSettings, *rest: Any, **more: Any) -> Decoded:
            return decode(requests, self._limited(settings), *rest, **more)

        return limited

    def _limited(self, settings: DecodeSettings) -> DecodeSettings:
        earlier = self.deadline if settings.deadline is None else min(self.deadline, settings.deadline)
        return replace(settings, deadline=earlier)


def until(engine: Engine, deadline: float | None) -> Any:
    """The engine, within that time; the engine itself where there is no limit."""
    return engine if deadline is None else EngineUntil(engine, deadline)


def is_over(engine: Engine) -> bool:
    """Whether the page's time is over."""
    deadline: float | None = getattr(engine, "deadline", None)
    return deadline is not None and time.monotonic() >= deadline


def half_time(engine: Engine) -> float | None:
    """The deadline for what comes before the page itself is read: half of the time that is left; None for no limit."""
    deadline: float | None = getattr(engine, "deadline", None)
    now = time.monotonic()
    return None if deadline is None else now + (deadline - now) / 2
