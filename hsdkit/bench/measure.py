"""The measuring loop: for every round and page, every side in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hsdkit.bench.sample import Output, Sample, difference
from hsdkit.bench.sides import Side
from hsdkit.config import RunConfig
from hsdkit.documents import Document, Page
from hsdkit.errors import ConfigError, cause
from hsdkit.protocols import Target
from hsdkit.regions import Draft

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PageFailure:
    """A page on which something failed, or a document that cannot be opened (`page` None); it is left out."""

    document: str
    page: int | None
    side: str
    reason: str


@dataclass(frozen=True, slots=True)
class BenchResult:
    """Samples of the pages every side could decode in every round. `warm_up` are the seconds each side took for the
    first page before anything was counted; `notes` say what drafting reported, by page. `interrupted`: Ctrl-C ended it
    before all rounds were done, and the samples are those of the turns before."""

    samples: tuple[Sample, ...]
    failures: tuple[PageFailure, ...]
    warm_up: dict[str, float]
    notes: tuple[str, ...]
    rounds: int
    interrupted: bool = False


#: Makes a page's draft as a run would: the draft, and notes on it.
MakeDraft = Callable[[Page], tuple[Draft, tuple[str, ...]]]
#: Called before each turn with (round from 0, document name, page number).
OnTurn = Callable[[int, str, int], None]


def check_measurable(config: RunConfig) -> None:
    """Raises `ConfigError` for a limit under which no side would be measured on whole pages. What `on_failure` says is
    not done here: a page that fails is left out on all sides."""
    if config.page_seconds is not None:
        raise ConfigError(
            "page_seconds: pages are measured as a whole; leave it out, verifier.max_new_tokens limits them"
        )


def measure(
    documents: Sequence[Document],
    sides: Sequence[Side],
    draft: MakeDraft,
    target: Target,
    rounds: int,
    on_turn: OnTurn | None = None,
    check: Callable[[], None] = lambda: None,
) -> BenchResult:
    """Run every side on every page `rounds` times. `sides[0]` is the baseline that outputs are compared with.

    In each round a page is rendered and drafted once, anew; then all sides decode it one after the other, the order
    moved on by one from turn to turn, so that a drift of the machine hits all alike. A page that fails on any side is
    not tried again and left out of the samples. KeyboardInterrupt ends it with what is measured; `check` is called
    between turns and may raise one that a library has swallowed.
    """
    turns = [(d, number) for d in documents for number in d.numbers]
    bench = _Bench(sides, draft, target, check)
    interrupted = False
    try:
        _measure(bench, turns, rounds, on_turn)
    except KeyboardInterrupt:
        interrupted = True
    kept = tuple(s for s in bench.samples if (s.document, s.page) not in bench.failures)
    return BenchResult(kept, tuple(bench.failures.values()), bench.warm_up, tuple(bench.notes), rounds, interrupted)


def _measure(bench: _Bench, turns: Sequence[tuple[Document, int]], rounds: int, on_turn: OnTurn | None) -> None:
    for document, number in turns:
        if bench.warm(document, number):
            break
    for round_ in range(rounds):
        for i, (document, number) in enumerate(turns):
            bench.check()
            if (str(document.path), number) in bench.failures:
                continue
            if on_turn:
                on_turn(round_, str(document.path), number)
            bench.turn(document, number, round_, shift=round_ + i)


class _Bench:
    def __init__(self, sides: Sequence[Side], draft: MakeDraft, target: Target, check: Callable[[], None]) -> None:
        self.sides, self.draft, self.target, self.check = sides, draft, target, check
        self.samples: list[Sample] = []
        self.failures: dict[tuple[str, int], PageFailure] = {}
        self.warm_up: dict[str, float] = {}
        self.notes: dict[str, None] = {}
        self._expected: dict[tuple[str, int], tuple[int, ...]] = {}

    def warm(self, document: Document, number: int) -> bool:
        """Run every side once on this page, uncounted; false when the page fails."""
        return self._guarded(document, number, lambda: self._warm(document, number))

    def turn(self, document: Document, number: int, round_: int, shift: int) -> None:
        self._guarded(document, number, lambda: self._turn(document, number, round_, shift))

    def _guarded(self, document: Document, number: int, work: Callable[[], None]) -> bool:
        try:
            work()
        except _SideFailed as e:
            self.check()  # a swallowed interrupt makes a side fail
            self.failures[str(document.path), number] = PageFailure(str(document.path), number, e.side, e.reason)
            return False
        return True

    def _warm(self, document: Document, number: int) -> None:
        page, _, draft, seconds, _ = self._prepared(document, number)
        self.warm_up = {"draft": seconds} if any(s.uses_draft for s in self.sides) else {}
        for side in self.sides:
            start = time.perf_counter()
            self._run(side, page, draft)
            self.warm_up[side.name] = time.perf_counter() - start

    def _turn(self, document: Document, number: int, round_: int, shift: int) -> None:
        page, render, draft, drafting, notes = self._prepared(document, number)
        self.notes.update(dict.fromkeys(f"{document.name}, page {number}: {note}" for note in notes))
        outputs = {side.name: self._run(side, page, draft) for side in rotated(self.sides, shift)}
        expected = self._expected.setdefault((str(document.path), number), outputs[self.sides[0].name].tokens)
        for side in self.sides:
            output = outputs[side.name]
            self.samples.append(
                Sample(
                    str(document.path),
                    number,
                    round_,
                    side.name,
                    render,
                    drafting if side.uses_draft else 0.0,
                    output,
                    difference(expected, output.tokens, self._text),
                )
            )

    def _prepared(self, document: Document, number: int) -> tuple[Page, float, Draft, float, tuple[str, ...]]:
        """The page, seconds to render it, its draft, seconds to draft it, notes."""
        try:
            start = time.perf_counter()
            page = document.page(number)
            _ = page.image
            rendered = time.perf_counter()
            draft, notes = self.draft(page) if any(s.uses_draft for s in self.sides) else (Draft(), ())
            return page, rendered - start, draft, time.perf_counter() - rendered, notes + draft.notes
        except Exception as e:  # whatever the file or the drafter does, the other pages are measured
            raise _SideFailed("page", e) from e

    def _run(self, side: Side, page: Page, draft: Draft) -> Output:
        try:
            return side.run(page, draft if side.uses_draft else Draft())
        except Exception as e:  # whatever a verifier or a model does, the other pages are measured
            raise _SideFailed(side.name, e) from e

    def _text(self, tokens: Iterable[int]) -> str:
        return str(self.target.tokenizer.decode(list(tokens)))


class _SideFailed(Exception):
    def __init__(self, side: str, error: Exception) -> None:
        super().__init__(side)
        self.side = side
        self.reason = cause(error)


def rotated(sides: Sequence[T], by: int) -> list[T]:
    """The sides in the order of a turn, so that none is always the first."""
    by %= len(sides)
    return [*sides[by:], *sides[:by]]
