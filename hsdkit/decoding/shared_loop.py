"""Calls of many threads on one scheduler, driven by one of the threads that wait for results.

There is no thread of its own: a caller that is alone runs the loop itself, as if there were no others, and is
interrupted as any function. When its own rows have ended, one of those still waiting drives on.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

from hsdkit.decoding.call import Call, Group
from hsdkit.decoding.scheduler import Scheduler
from hsdkit.protocols import Decoded

T = TypeVar("T")


class _Waited(Protocol):
    """What a thread waits for."""

    @property
    def done(self) -> bool: ...


class SharedLoop:
    """`set_up` is called in a thread that is about to drive: what is set for each thread."""

    def __init__(self, scheduler: Scheduler, set_up: Callable[[], None] = lambda: None) -> None:
        self._scheduler = scheduler
        self._set_up = set_up
        self._turn = threading.Condition()
        self._driven = False
        self._calls: list[Call] = []
        self._arrived: deque[Group] = deque()
        self._errands: deque[_Errand[Any]] = deque()

    @property
    def busy(self) -> bool:
        """Whether somebody is being served."""
        return self._driven

    @property
    def max_tokens(self) -> int:
        """Slots of the cache that all rows may have together."""
        return self._scheduler.max_tokens

    def decode(self, call: Call, groups: Sequence[Group]) -> Decoded:
        """The result of the call, whose requests are `groups`. Raises its error. Its `on_text` may be called in another
        thread, never in two at once."""
        with self._turn:
            self._calls.append(call)
            self._arrived.extend(groups)
        try:
            self._wait(call)
        except BaseException as interrupt:
            call.fail(interrupt)
            self._forget_ended()
            raise
        return call.decoded()

    def between_steps(self, work: Callable[[], T]) -> T:
        """The result of `work`, done while no rows are."""
        errand = _Errand(work)
        with self._turn:
            self._errands.append(errand)
        self._wait(errand)
        if errand.error is not None:
            raise errand.error
        return cast(T, errand.result)

    def _wait(self, waited: _Waited) -> None:
        """Until it is done, and drive while nobody else does."""
        with self._turn:
            while self._driven and not waited.done:
                self._turn.wait()
            if waited.done:
                return
            self._driven = True
        try:
            self._drive(waited)
        finally:
            with self._turn:
                self._driven = False
                self._turn.notify_all()

    def _drive(self, waited: _Waited) -> None:
        self._set_up()
        try:
            while not waited.done:
                while self._errands:
                    self._errands.popleft().run()
                    self._tell_ended()
                while self._arrived:
                    self._scheduler.add(self._arrived.popleft())
                if self._calls:
                    self._scheduler.step()
                    if any(call.done for call in self._calls):
                        self._tell_ended()
        except BaseException as error:
            self._scheduler.abort(error)
            raise

    def _tell_ended(self) -> None:
        with self._turn:
            self._calls = [call for call in self._calls if not call.done]
            self._turn.notify_all()

    def _forget_ended(self) -> None:
        """Give back what the rows of failed calls hold; whoever drives does that anyway."""
        with self._turn:
            if self._driven:
                return
            self._calls = [call for call in self._calls if not call.done]
            self._scheduler.drop_ended()


class _Errand(Generic[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.done = False
        self.result: T | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            self.result = self._work()
        except Exception as error:  # for whoever asked for the work, not for whoever drives
            self.error = error
        except BaseException as interrupt:  # meant for whoever drives; this is not done, and nobody will do it
            self.error = RuntimeError(f"interrupted: {type(interrupt).__name__}")
            raise
        finally:
            self.done = True
