"""The attempts at one page: read it, and while it has failed go through what the run does about failures."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol

from hsdkit.documents import Page
from hsdkit.errors import ConfigError, PluginError
from hsdkit.policy import (
    DONE,
    TURNS,
    VERIFIERS,
    Action,
    Failure,
    agreement,
    can_help,
    failure_of,
    letters,
    reason_of,
    worth,
)
from hsdkit.protocols import Verifier, is_exact
from hsdkit.regions import Draft
from hsdkit.results import Attempt, PageResult

log = logging.getLogger(__name__)

#: With so many letters or more no page is as good as empty, and what is printed on it need not be counted.
ENOUGH = 500


class Reader(Protocol):
    """How pages are read. `read` and `drafted` may raise anything; what they raise is that attempt's failure."""

    @property
    def verifier(self) -> Verifier: ...

    @property
    def substitute(self) -> Callable[[str], Verifier | None]:
        """Other verifiers with this run's limits, by name; None where it is the run's own, or not to be had."""
        ...

    @property
    def given_up(self) -> bool:
        """Whether nobody wants the page any more: then it is not tried again."""
        ...

    def read(self, page: Page, draft: Draft, verifier: Verifier) -> PageResult: ...

    def drafted(self, page: Page, draft: Draft) -> PageResult:
        """The drafter's text in the place of the model's. Raises `DrafterError` when there is none."""
        ...

    def failed(self, page: Page, draft: Draft, error: Exception) -> PageResult: ...


def read_page(
    page: Page, draft: Draft, reader: Reader, on_failure: Sequence[Action], deadline: float | None = None
) -> tuple[Page, PageResult]:
    """The best result of the attempts at a page, and the page as it was read for it (perhaps turned).

    A page that came out well at once has no `attempts`. After the `deadline` (of `time.monotonic()`) nothing more is
    decoded. Raises `ConfigError` or `PluginError` for what would fail every page alike.
    """
    tries = _Tries(reader, draft)
    tries.make("read", page, partial(reader.read, page, draft, reader.verifier))
    for action in on_failure:
        for name, seen, attempt in _ways(action, page, draft, reader, tries):
            in_time = action == "draft" or deadline is None or time.monotonic() < deadline
            if in_time and not reader.given_up:
                tries.make(name, seen, attempt)
    return tries.page, tries.told()


_Way = tuple[str, Page, Callable[[], PageResult]]


def _ways(action: Action, page: Page, draft: Draft, reader: Reader, tries: _Tries) -> Iterator[_Way]:
    """What an action comes to for this page: (its name, the page as it is then seen, the attempt)."""
    if action == "page" and not reader.verifier.uses_draft:
        return  # it has no Stage 1
    verifier = reader.substitute(VERIFIERS[action]) if action in VERIFIERS else reader.verifier
    if tries.failure is None or verifier is None:
        return
    if not can_help(action, tries.failure, is_exact(reader.verifier), is_exact(verifier)):
        return
    if action == "draft":
        yield action, page, partial(reader.drafted, page, draft)
    elif action == "rotate":
        for degrees in TURNS:  # all of them: a page that is upside down may make some sense to a model
            turned = page.turned(degrees)
            # The draft is one of the page as it lay.
            yield f"rotate {degrees}", turned, partial(reader.read, turned, Draft(), verifier)
    else:
        yield action, page, partial(reader.read, page, draft, verifier)


class _Tries:
    """The attempts made so far, and the best of them."""

    def __init__(self, reader: Reader, draft: Draft) -> None:
        self.reader, self.draft = reader, draft
        self.made: list[Attempt] = []
        self.best = -1
        self.page: Page
        self.result: PageResult
        self.failure: Failure | None = None

    def make(self, action: str, page: Page, attempt: Callable[[], PageResult]) -> None:
        start = time.perf_counter()
        try:
            result = attempt()
        except (ConfigError, PluginError):
            raise
        except Exception as e:  # whatever else happens on one page is that page's result
            log.debug("%s, page %d: %s failed", page.source, page.number, action, exc_info=True)
            result = self.reader.failed(page, self.draft, e)
        failure = failure_of(result, _printed(page) if letters(result) < ENOUGH else 0.0)
        reason = reason_of(result, failure)
        self.made.append(Attempt(action, failure or "", reason, time.perf_counter() - start))
        if self.best < 0 or self._better(result, turned=action.startswith("rotate")):
            self.best, self.page, self.result, self.failure = len(self.made) - 1, page, result, failure

    def _better(self, result: PageResult, turned: bool) -> bool:
        """Than the best so far."""
        if not turned:
            return worth(result) > worth(self.result)
        drafted = " ".join(region.text for region in self.draft.readable)
        return worth(result) * agreement(result, drafted) > worth(self.result) * agreement(self.result, drafted)

    def told(self) -> PageResult:
        """The best result, with all attempts and a note on how it came about."""
        if len(self.made) == 1:
            return self.result
        attempts = tuple(replace(a, kept=i == self.best) for i, a in enumerate(self.made))
        if self.best == 0:
            return replace(self.result, attempts=attempts)
        action, _, degrees = self.made[self.best].action.partition(" ")
        how = DONE[action] + (f" by {degrees} degrees" if degrees else "")
        note = f"{how}, after the first attempt failed: {self.made[0].reason}"
        return replace(self.result, attempts=attempts, notes=(*self.result.notes, note))


def _printed(page: Page) -> float:
    from hsdkit.ink import characters_on

    return characters_on(page.image)
