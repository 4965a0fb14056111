"""Edit distances of texts and of orders."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from rapidfuzz.distance import Levenshtein


def edits(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Insertions, deletions and substitutions that make `b` of `a`."""
    return int(Levenshtein.distance(a, b))


def edit_share(a: Sequence[Hashable], b: Sequence[Hashable], cutoff: float = 1.0) -> float:
    """Edit distance over the length of the longer one, in 0..1; 0 for two empty ones. A share above `cutoff` may be
    given as 1 (found sooner)."""
    return float(Levenshtein.normalized_distance(a, b, score_cutoff=cutoff if cutoff < 1 else None))
