"""Where in the draft the target is: a small set of positions with costs, moved along by every byte of output.

The output is the draft with edits. This is the edit distance between the two, kept incrementally and only for the
positions worth keeping; the costs are negative log probabilities of a reader's mistakes.
"""

from __future__ import annotations

from math import exp

#: Positions kept, and how much worse than the best one a kept one may be.
BEAM, WIDTH = 8, 8.0
#: Longest stretch of draft that one edit may skip.
SKIP = 8

_SPACE, _WORD, _MARK, _LEAD, _TAIL = range(5)


def _kind(byte: int) -> int:
    if byte >= 0xC0:
        return _LEAD
    if byte >= 0x80:
        return _TAIL
    if byte in b" \t\r\n":
        return _SPACE
    return _WORD if chr(byte).isalnum() else _MARK


_KIND = [_kind(byte) for byte in range(256)]
#: Cost where output has byte a and the draft b, for kinds of bytes: a wrong character is mostly one of the same kind,
#: and the rest of a wrong character is wrong as well.
_SWAP_OF_KIND = [[0.3 if a == b == _TAIL else 4.0 if a == b else 6.0 for b in range(5)] for a in range(5)]
#: The draft lacks this character (spaces are lost most often).
_LACK_OF_KIND = [4.5, 5.5, 5.0, 5.5, 0.3]
#: The draft has a character too many, and what each further one adds.
_EXTRA_OF_KIND, _MORE = [4.5, 5.5, 4.5, 5.5, 0.3], 0.8

_SWAP = [[0.0 if a == b else _SWAP_OF_KIND[_KIND[a]][_KIND[b]] for b in range(256)] for a in range(256)]
_LACK = [_LACK_OF_KIND[kind] for kind in _KIND]
_EXTRA = [_EXTRA_OF_KIND[kind] - _MORE for kind in _KIND]

#: Costs by position, in bytes of draft that the output has used up.
Belief = dict[int, float]


def advance(belief: Belief, text: bytes, data: bytes) -> Belief:
    """The belief after the target wrote `data`. Costs add to those before; at most BEAM positions are left."""
    end = len(text)
    find = text.find
    for byte in data:
        lack, swap = _LACK[byte], _SWAP[byte]
        moved: Belief = {}
        get = moved.get
        for position, cost in belief.items():
            total = cost + lack
            if total < get(position, 1e9):
                moved[position] = total
            if position == end:
                continue
            there = text[position]
            total = cost + swap[there]
            if total < get(position + 1, 1e9):
                moved[position + 1] = total
            found = find(byte, position + 1, position + 1 + SKIP)
            if found >= 0:
                total = cost + _EXTRA[there] + _MORE * (found - position)
                if total < get(found + 1, 1e9):
                    moved[found + 1] = total
        belief = prune(moved)
    return belief


def prune(belief: Belief) -> Belief:
    bound = min(belief.values()) + WIDTH
    kept = {position: cost for position, cost in belief.items() if cost <= bound}
    if len(kept) > BEAM:
        return dict(sorted(kept.items(), key=lambda item: item[1])[:BEAM])
    return kept


def ranked(belief: Belief) -> list[tuple[int, float]]:
    """Positions with their probabilities, likeliest first."""
    best = min(belief.values())
    weights = [(position, exp(best - cost)) for position, cost in belief.items()]
    total = sum(weight for _, weight in weights)
    return sorted(((p, weight / total) for p, weight in weights), key=lambda item: -item[1])
