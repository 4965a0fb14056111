"""Where the last tokens occurred before: an index of n-grams that can grow."""

from __future__ import annotations

from collections.abc import Sequence

#: Occurrences kept of one n-gram. What repeats more often than this tells little, and time per look-up stays bounded.
KEPT = 48
#: Longest common context that is told apart when hits are ranked.
CONTEXT = 16


class NGrams:
    """Positions after every 1..n-gram of a token list. `extend` appends tokens; each costs n dictionary entries."""

    def __init__(self, n: int, tokens: Sequence[int] = ()) -> None:
        self._n = n
        self.tokens: list[int] = []
        self._after: list[dict[tuple[int, ...], list[int]]] = [{} for _ in range(n)]
        self.extend(tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        begin = len(self.tokens)
        self.tokens.extend(tokens)
        for size, after in enumerate(self._after, start=1):
            first = max(size, begin + 1)
            window = self.tokens[first - size :]
            for position, gram in enumerate(zip(*(window[i:] for i in range(size)), strict=False), start=first):
                places = after.get(gram)
                if places is None:
                    after[gram] = [position]
                elif len(places) < KEPT:
                    places.append(position)
                else:
                    places[position % KEPT] = position

    def lookup(self, context: Sequence[int], near: int | None = None, most: int = 3) -> list[tuple[int, int]]:
        """Best (position, length of the common context): hits of the longest n-gram of the context that has any, those
        with the longest common context first, among equals those nearest to `near` (by default the latest)."""
        end = len(context)
        for size in range(min(self._n, end), 0, -1):
            places = self._after[size - 1].get(tuple(context[end - size :]))
            hits = [p for p in places if p < len(self.tokens)] if places else []
            if hits:
                reference = len(self.tokens) if near is None else near
                ranked = [(-self._common(context, p, size), abs(p - reference), p) for p in hits]
                return [(place, -common) for common, _, place in sorted(ranked)[:most]]
        return []

    def _common(self, context: Sequence[int], position: int, known: int) -> int:
        tokens, end, length = self.tokens, len(context), known
        most = min(CONTEXT, end, position)
        while length < most and tokens[position - length - 1] == context[end - length - 1]:
            length += 1
        return length
