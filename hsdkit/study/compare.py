"""Two runs told apart: what changed, and whether speed and text differ by more than noise; pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hsdkit.metrics.edit import edit_share
from hsdkit.study.runs import EDIT, PageKey, Run, RunPage
from hsdkit.study.statistics import SEED, Interval, mean_interval, ratio_interval

#: Settings that say whose figures a benchmark's are.
_GRADES = ("benchmark", "benchmark.edition")
#: With fewer pages an interval says more about these pages than about others.
FEW_PAGES = 5


@dataclass(frozen=True, slots=True)
class Change:
    """Something that the two runs do not share; None where one of them lacks it."""

    what: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the common pages. `neutral` is its value where nothing differs: 1 for ratios, 0 for differences."""

    name: str
    interval: Interval
    neutral: float

    @property
    def differs(self) -> bool:
        """By more than noise."""
        return self.interval.excludes(self.neutral)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`known` tells whether both runs recorded what is in their documents, None where they have none in common;
    `inputs` are those whose content changed. `graded` is false where their benchmarks or editions differ: then
    benchmark figures are left out. `figures` come from the pages that both runs have; of the `texts` pages whose
    Markdown both runs kept, `same_text` counts those where it is the same, and `differing` names the others with their
    edit distance, 0..1, the largest first."""

    settings: tuple[Change, ...]
    versions: tuple[Change, ...]
    inputs: tuple[Change, ...]
    known: bool | None
    graded: bool
    pages: int
    only_before: tuple[PageKey, ...]
    only_after: tuple[PageKey, ...]
    figures: tuple[Figure, ...]
    texts: int
    same_text: int
    differing: tuple[tuple[PageKey, float], ...]


def compare(before: Run, after: Run, seed: int = SEED) -> Comparison:
    """Pages pair up by document name and number. Pages of a document whose content changed are not compared."""
    inputs = tuple(c for c in changes(before.inputs, after.inputs) if c.before and c.after)
    changed = {c.what for c in inputs}
    common = [k for k in before.pages if k in after.pages and k[0] not in changed]
    pairs = [(before.pages[k], after.pages[k]) for k in common]
    apart = {k: d for k, (a, b) in zip(common, pairs, strict=True) if (d := _distance(a, b)) is not None}
    distances = {k: d for k, d in apart.items() if d > 0}
    graded = all(before.settings.get(k) == after.settings.get(k) for k in _GRADES)
    return Comparison(
        settings=changes(before.settings, after.settings),
        versions=changes(before.versions, after.versions),
        inputs=inputs,
        known=_known(before.inputs, after.inputs),
        graded=graded,
        pages=len(common),
        only_before=tuple(k for k in before.pages if k not in after.pages),
        only_after=tuple(k for k in after.pages if k not in before.pages),
        figures=_figures(pairs, list(apart.values()), seed, graded) if pairs else (),
        texts=len(apart),
        same_text=len(apart) - len(distances),
        differing=tuple(sorted(distances.items(), key=lambda d: -d[1])),
    )


def _known(before: Mapping[str, str], after: Mapping[str, str]) -> bool | None:
    if before and after and not before.keys() & after.keys():
        return None
    return any(before.values()) and any(after.values())


def _distance(a: RunPage, b: RunPage) -> float | None:
    """Between the texts, 0..1; None where one of them was not kept."""
    if a.text is None or b.text is None:
        return None
    return edit_share(a.text, b.text) if a.text != b.text else 0.0


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[Change, ...]:
    keys = dict.fromkeys([*before, *after])
    return tuple(Change(k, before.get(k), after.get(k)) for k in keys if before.get(k) != after.get(k))


def _figures(
    pairs: Sequence[tuple[RunPage, RunPage]], distances: Sequence[float], seed: int, graded: bool
) -> tuple[Figure, ...]:
    found = []
    for name, what in (("speed end to end", "e2e"), ("speed of decoding", "decode")):
        a, b = _seconds(pairs, what)
        if min(map(min, [*a, *b])) > 0:  # a page that has nothing to decode has no ratio
            found.append(Figure(f"{name}, B over A", ratio_interval(a, b, seed=seed), 1))
    steps = mean_interval([b.tokens_per_step - a.tokens_per_step for a, b in pairs], seed=seed)
    found.append(Figure("tokens a step, B minus A", steps, 0))
    if distances:
        found.append(Figure("edit distance between the texts", mean_interval(distances, seed=seed), 0))
    for name in dict.fromkeys(n for a, _ in pairs for n in a.metrics if graded or n == EDIT):
        values = [b.metrics[name] - a.metrics[name] for a, b in pairs if name in a.metrics and name in b.metrics]
        if values:
            found.append(Figure(f"{name}, B minus A", mean_interval(values, seed=seed), 0))
    return tuple(found)


def _seconds(pairs: Sequence[tuple[RunPage, RunPage]], what: str) -> tuple[list[Any], list[Any]]:
    return [getattr(a, what) for a, _ in pairs], [getattr(b, what) for _, b in pairs]
