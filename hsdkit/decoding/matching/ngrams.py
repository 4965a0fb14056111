"""Where the last tokens occurred before in the text already produced (prompt look-up with back-off)."""

from __future__ import annotations

from collections.abc import Sequence

#: Earlier occurrences of an n-gram that are compared, latest first.
COMPARED = 16
#: Longest common context that is told apart.
CONTEXT = 8


class OwnText:
    """The tokens produced, with an index of their 1..n-grams. Adding a token and looking up are O(n) both.

    Every n-gram remembers its latest occurrence; those of size n are chained back, so that among several the one whose
    context agrees longest can be taken.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self.tokens: list[int] = []
        self._latest: list[dict[tuple[int, ...], int]] = [{} for _ in range(n)]
        self._indexed = 0
        #: For each position, the one after the previous occurrence of the n-gram before it (0: none).
        self._earlier: list[int] = [0]

    def extend(self, tokens: Sequence[int]) -> None:
        self.tokens.extend(tokens)

    def lookup(self) -> list[tuple[int, int]]:
        """(position, tokens of common context) of what followed when the last tokens occurred before, the likeliest
        first; at most two."""
        # The tail itself is indexed only when something follows it: it must not find itself.
        self._index(len(self.tokens) - 1)
        tokens, end = self.tokens, len(self.tokens)
        for size in range(min(self._n, end), 0, -1):
            place = self._latest[size - 1].get(tuple(tokens[end - size :]), 0)
            if not place:
                continue
            if size < self._n:
                return [(place, size)]
            best, longest, second = place, self._common(place), 0
            for _ in range(COMPARED):
                place = self._earlier[place]
                if not place or longest >= CONTEXT:
                    break
                if tokens[place] != tokens[best] and not second:
                    second = place
                if (common := self._common(place)) > longest:
                    best, longest, second = place, common, best
            return [(best, longest)] + ([(second, size)] if second else [])
        return []

    def _index(self, until: int) -> None:
        tokens, n = self.tokens, self._n
        for position in range(self._indexed + 1, until + 1):
            for size in range(1, min(n, position) + 1):
                gram = tuple(tokens[position - size : position])
                latest = self._latest[size - 1]
                if size == n:
                    self._earlier.append(latest.get(gram, 0))
                latest[gram] = position
            if position < n:
                self._earlier.append(0)
        self._indexed = max(self._indexed, until)

    def _common(self, position: int) -> int:
        """How many tokens before `position` are also the last of the text (up to CONTEXT)."""
        tokens, end, length = self.tokens, len(self.tokens), 0
        while length < CONTEXT and length < position and tokens[position - length - 1] == tokens[end - length - 1]:
            length += 1
        return length
