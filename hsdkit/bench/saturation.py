"""Throughput: many pages in flight on every side, the sides in turn, round by round; and figures of it.

Latency and throughput are two regimes: passes that several pages share leave less for speculation to save.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from hsdkit.bench.measure import PageFailure, rotated
from hsdkit.bench.sample import page_tokens
from hsdkit.bench.summary import Spread
from hsdkit.preparing.page import PageTask
from hsdkit.results import PageResult

#: Parses all pages, several at a time, and returns what came out when the last is done.
Parse = Callable[[Sequence[PageTask]], Sequence[tuple[PageTask, PageResult]]]
#: The tokens of a page (document, number) that plain decoding of that page alone has given.
Expected = Mapping[tuple[str, int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Filled:
    """One side, one round: the wall seconds from the first page to the last, rendering and drafting included, what came
    out in them, and which pages came out unlike the baseline's."""

    side: str
    round: int
    seconds: float
    pages: int
    tokens: int
    differing: tuple[tuple[str, int], ...] = ()

    @property
    def rate(self) -> float:
        """Pages a second."""
        return self.pages / self.seconds


@dataclass(frozen=True, slots=True)
class Throughput:
    """One side: pages and tokens a second (medians over rounds); `against` maps a reference side to ratios of pages a
    second, this side over the reference, one a round."""

    side: str
    pages: float
    tokens: float
    against: dict[str, Spread]
    differing: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Saturation:
    """With so many pages in flight. `interrupted`: not all rounds were measured."""

    concurrency: int
    rounds: tuple[Filled, ...] = ()
    failures: tuple[PageFailure, ...] = ()
    interrupted: bool = False


def saturate(
    sides: Mapping[str, Parse],
    tasks: Sequence[PageTask],
    concurrency: int,
    rounds: int,
    expected: Expected,
    on_turn: Callable[[int, str], None] = lambda round_, side: None,
) -> Saturation:
    """All pages on each side, `rounds` times, the order of the sides moved on by one from round to round; before that
    once, uncounted, as many pages as are in flight. KeyboardInterrupt ends it with the rounds before."""
    filled: list[Filled] = []
    failures: dict[tuple[str, int], PageFailure] = {}
    interrupted = False
    try:
        for parse in sides.values():
            parse(tasks[:concurrency])
        for round_ in range(rounds):
            turns = []
            for name in rotated(list(sides), round_):
                on_turn(round_, name)
                begun = time.perf_counter()
                results = sides[name](tasks)
                turns.append(_filled(name, round_, time.perf_counter() - begun, results, expected))
                for task, result in results:
                    if result.error is not None:
                        key = str(task.path), task.number
                        failures.setdefault(key, PageFailure(*key, f"{name}, saturated", result.error))
            filled += turns  # whole rounds only: ratios need both
    except KeyboardInterrupt:
        interrupted = True
    return Saturation(concurrency, tuple(filled), tuple(failures.values()), interrupted)


def _filled(
    side: str, round_: int, seconds: float, results: Sequence[tuple[PageTask, PageResult]], expected: Expected
) -> Filled:
    said = {
        (str(task.path), task.number): page_tokens(result.stages) for task, result in results if result.error is None
    }
    differing = tuple(sorted(key for key, tokens in said.items() if key in expected and tokens != expected[key]))
    return Filled(side, round_, seconds, len(said), sum(map(len, said.values())), differing)


def throughputs(saturation: Saturation, references: Sequence[str]) -> list[Throughput]:
    """One a side, in the order of the first round."""
    by_side: dict[str, list[Filled]] = {}
    for filled in saturation.rounds:
        by_side.setdefault(filled.side, []).append(filled)
    return [
        Throughput(
            side,
            median(f.rate for f in own),
            median(f.tokens / f.seconds for f in own),
            {
                name: Spread.of([f.rate / by.rate for f, by in zip(own, by_side[name], strict=True)])
                for name in references
                if name != side and name in by_side and all(by.pages for by in by_side[name])
            },
            tuple(sorted({page for f in own for page in f.differing})),
        )
        for side, own in by_side.items()
    ]
