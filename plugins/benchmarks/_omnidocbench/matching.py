"""`quick_match`: which lines of the prediction are read as which lines of the ground truth.

First the sure pairs; then predicted lines that were cut in pieces are put together; then the cheapest assignment; then
expected lines found inside longer predicted ones; then the cheapest assignment of what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hsdkit_plugins.benchmarks._omnidocbench.lines import Expected, Predicted
from rapidfuzz.distance import Levenshtein

from hsdkit.metrics.edit import edit_share

SURE, HOPELESS, INSIDE, PIECE = 0.25, 0.7, 0.4, 0.6


@dataclass(frozen=True, slots=True)
class Pair:
    """Lines of the ground truth and what was read for them; `predicted` is empty where nothing was."""

    expected: tuple[Expected, ...]
    predicted: tuple[Predicted, ...]

    @property
    def category(self) -> str:
        """The most frequent of the expected lines, the first of equals."""
        categories = [line.category for line in self.expected]
        return max(dict.fromkeys(categories), key=categories.count)

    @property
    def norms(self) -> tuple[str, str]:
        return "".join(e.norm for e in self.expected), "".join(p.norm for p in self.predicted)

    @property
    def texts_of_expected(self) -> list[str]:
        return [e.text for e in self.expected]

    @property
    def texts_of_predicted(self) -> list[str]:
        return [p.text for p in self.predicted]

    @property
    def texts(self) -> tuple[str, str]:
        return "".join(self.texts_of_expected), "".join(self.texts_of_predicted)


def match(expected: Sequence[Expected], predicted: Sequence[Predicted]) -> list[Pair]:
    """Every line of the ground truth in one pair (those of ignored categories may be missing); predicted lines that
    nothing was expected for are in none."""
    if not expected or not predicted:
        return [Pair((line,), ()) for line in expected]
    if len(expected) == len(predicted) == 1:
        return [Pair((expected[0],), (predicted[0],))]
    ignored = [line.norm for line in expected if line.ignored]
    rest = [p for p in predicted if not any(edit_share(norm, p.norm, SURE) < SURE for norm in ignored)]
    counted = [line for line in expected if not line.ignored]
    groups = _groups([e.norm for e in counted], [p.norm for p in rest])
    return [Pair(tuple(counted[i] for i in e), tuple(rest[j] for j in p)) for e, p in groups]


def _groups(expected: list[str], predicted: list[str]) -> list[tuple[list[int], list[int]]]:
    """(expected, predicted) indices of each pair."""
    found = _assigned(expected, predicted)
    matched = {e for group in found.values() for e in group}
    missing = [e for e in range(len(expected)) if e not in matched]
    _add_inside(found, missing, expected, predicted)
    matched = {e for group in found.values() for e in group}
    missing = [e for e in range(len(expected)) if e not in matched]
    used = {p for key in found for p in key}
    unused = [p for p in range(len(predicted)) if p not in used]
    pairs = [(sorted(set(group)), list(key)) for key, group in found.items() if group]
    if missing and unused:
        costs = [[edit_share(expected[e], predicted[p]) for p in unused] for e in missing]
        pairs += [([missing[row]], [unused[column]]) for row, column in _cheapest(costs)]
    matched = {e for group, _ in pairs for e in group}
    return pairs + [([e], []) for e in range(len(expected)) if e not in matched]


def _cheapest(costs: Any) -> list[tuple[int, int]]:
    """Rows and columns of the assignment of least cost."""
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(costs)
    return list(zip(map(int, rows), map(int, columns), strict=True))


def _assigned(expected: list[str], predicted: list[str]) -> dict[tuple[int, ...], list[int]]:
    """One predicted line, or several put together, for each expected line that it is like."""
    if not expected or not predicted:
        return {}
    costs = [[edit_share(e, p) for p in predicted] for e in expected]
    columns = _with_pieces_joined(costs, expected, predicted)
    if columns:
        costs = [[edit_share(e, " ".join(predicted[p] for p in column)) for column in columns] for e in expected]
    else:
        columns = [[p] for p in range(len(predicted))]
    return {tuple(columns[c]): [e] for e, c in _cheapest(costs) if costs[e][c] <= HOPELESS}


def _with_pieces_joined(costs: list[list[float]], expected: list[str], predicted: list[str]) -> list[list[int]]:
    """The predicted lines, runs that together are one expected line joined; [] where there is none to join."""
    sure = [(e, p) for e, row in enumerate(costs) for p, cost in enumerate(row) if cost < SURE]
    sure_expected, sure_predicted = {e for e, _ in sure}, {p for _, p in sure}
    runs: list[tuple[list[int], float]] = []
    for e, line in enumerate(expected):
        if e in sure_expected:
            continue
        tried = [
            _run(line, start, predicted, sure_predicted)
            for start in range(len(predicted))
            if start not in sure_predicted
        ]
        if tried:
            runs.append(min(tried, key=lambda run: run[1]))
    chosen = _without_overlap(runs)
    if not chosen:
        return []
    starts = {run[0]: run for run in chosen}
    inside = {p for run in chosen for p in run[1:]}
    return [starts.get(p, [p]) for p in range(len(predicted)) if p not in inside]


def _run(line: str, start: int, predicted: list[str], taken: set[int]) -> tuple[list[int], float]:
    """From `start` on as many predicted lines as still bring the whole nearer to `line`, and how far it is then."""
    run = [start]
    for following in range(start + 1, len(predicted)):
        if following in taken or not _nearer(line, [predicted[p] for p in [*run, following]]):
            break
        run.append(following)
        if len(" ".join(predicted[p] for p in run)) > len(line):
            break
    return run, edit_share(line, " ".join(predicted[p] for p in run))


def _nearer(line: str, pieces: list[str]) -> bool:
    """Whether the last piece belongs to the line, as the ones before it do."""
    before, after = " ".join(pieces[:-1]), " ".join(pieces)
    if edit_share(line, after) > edit_share(line, before):
        return False
    # The last piece must be under the limit, the ones before at most at it.
    return all(_least_inside(piece, line, PIECE) <= PIECE for piece in pieces[:-1]) and (
        _least_inside(pieces[-1], line, PIECE) < PIECE
    )


def _least_inside(piece: str, line: str, limit: float) -> float:
    """The least edit share of `piece` to a stretch of `line` as long as itself; infinite where it is longer, or where
    it is above `limit` anyway."""
    size = len(piece)
    if not size or len(line) < size:
        return float("inf")
    least, most = float("inf"), int(limit * size + 1e-9)
    for at in range(len(line) - size + 1):
        distance = Levenshtein.distance(line[at : at + size], piece, score_cutoff=most)
        if distance <= most:
            least = min(least, distance / size)
            if distance == 0:
                break
            most = distance
    return least


def _without_overlap(runs: list[tuple[list[int], float]]) -> list[list[int]]:
    """Of runs that share lines, the ways to choose among them are tried as the evaluator tries them, and the one with
    the least mean distance is kept."""
    ordered = sorted(runs, key=lambda run: run[0][0])
    if not ordered:
        return []
    clusters = [[ordered[0]]]
    for run in ordered[1:]:
        if any(set(run[0]) & set(other[0]) for other in clusters[-1]):
            clusters[-1].append(run)
        else:
            clusters.append([run])
    return [run for cluster in clusters for run in _best_choice(cluster)]


def _best_choice(cluster: list[tuple[list[int], float]]) -> list[list[int]]:
    paths = [[cluster[0]]]
    for run in cluster[1:]:
        fresh = True
        for path in paths:
            same = next((other for other in path if other[0] == run[0]), None)
            if same is not None:
                fresh = False
                if same[1] > run[1]:
                    path.remove(same)
                    path.append(run)
            elif not any(set(run[0]) & set(other[0]) for other in path):
                path.append(run)
                fresh = False
        if fresh:
            paths.append([run])
    best = min(paths, key=lambda path: sum(cost for _, cost in path) / len(path))
    return [run for run, _ in best]


def _add_inside(
    found: dict[tuple[int, ...], list[int]], missing: list[int], expected: list[str], predicted: list[str]
) -> None:
    """Expected lines that stand inside a predicted line, matched or not, are read there: the first that holds it."""
    left = set(missing)
    for p, line in enumerate(predicted):
        inside = [e for e in missing if _least_inside(expected[e], line, INSIDE) < INSIDE]
        if inside:
            found.setdefault((p,), []).extend(e for e in inside if e in left)
            left -= set(inside)
