"""Where the last tokens occurred before in the text already produced (prompt look-up with back-off)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
        """Enter the n-grams before positions up to `until`."""
        begin, n = self._indexed + 1, self._n
        if until < begin:
            return
        for size in range(1, n):
            first = max(begin, size)
            self._latest[size - 1].update(zip(self._grams(size, first, until), range(first, until + 1), strict=False))
        latest, first = self._latest[n - 1], max(begin, n)
        self._earlier += [0] * (min(first, until + 1) - begin)
        for position, gram in enumerate(self._grams(n, first, until), start=first):
            self._earlier.append(latest.get(gram, 0))
            latest[gram] = position
        self._indexed = until

    def _grams(self, size: int, first: int, last: int) -> Iterator[tuple[int, ...]]:
        """The n-grams of a size that end before each of the positions."""
        tokens = self.tokens[first - size : last]
        return zip(*(tokens[offset:] for offset in range(size)), strict=False)

    def _common(self, position: int) -> int:
        """How many tokens before `position` are also the last of the text (up to CONTEXT)."""
        tokens, end, length = self.tokens, len(self.tokens), 0
        while length < CONTEXT and length < position and tokens[position - length - 1] == tokens[end - length - 1]:
            length += 1
        return length
