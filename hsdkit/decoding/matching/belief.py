"""Where in the draft the target is: a small set of positions with costs, moved along by every byte of output.

The output is the draft with edits. This is the edit distance between the two, kept incrementally and only for the
positions worth keeping; the costs are negative log probabilities of a reader's mistakes.
"""

from __future__ import annotations

from math import exp

#: Positions kept, and how much worse than the best one a kept one may be.
BEAM, WIDTH = 10, 9.0
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
#: The draft has another character: mostly one of the same kind. The rest of a wrong character is wrong as well.
_SWAP = [[4.0 if a == b else 6.0 for b in range(5)] for a in range(5)]
_SWAP[_TAIL][_TAIL] = 0.3
#: The draft lacks this character (spaces are lost most often).
_LACK = [4.5, 5.5, 5.0, 5.5, 0.3]
#: The draft has a character too many, and what each further one adds.
_EXTRA = [4.5, 5.5, 4.5, 5.5, 0.3]
_MORE = 0.8

Belief = dict[int, float]


def advance(belief: Belief, text: bytes, data: bytes) -> Belief:
    """The belief after the target wrote `data`. Costs are relative to those before; at most BEAM positions are left."""
    end = len(text)
    for byte in data:
        kind = _KIND[byte]
        lack, swap = _LACK[kind], _SWAP[kind]
        moved: Belief = {}
        for position, cost in belief.items():
            if position < end:
                there = text[position]
                total = cost if there == byte else cost + swap[_KIND[there]]
                if total < moved.get(position + 1, 1e9):
                    moved[position + 1] = total
                found = text.find(byte, position + 1, position + 1 + SKIP)
                if found >= 0:
                    total = cost + _EXTRA[_KIND[there]] + _MORE * (found - position - 1)
                    if total < moved.get(found + 1, 1e9):
                        moved[found + 1] = total
            if cost + lack < moved.get(position, 1e9):
                moved[position] = cost + lack
        belief = prune(moved)
    return belief


def prune(belief: Belief) -> Belief:
    bound = min(belief.values()) + WIDTH
    kept = {position: cost for position, cost in belief.items() if cost <= bound}
    if len(kept) > BEAM:
        kept = dict(sorted(kept.items(), key=lambda item: item[1])[:BEAM])
    return kept


def ranked(belief: Belief) -> list[tuple[int, float]]:
    """Positions with their probabilities, likeliest first."""
    best = min(belief.values())
    weights = {position: exp(best - cost) for position, cost in belief.items()}
    total = sum(weights.values())
    return sorted(((p, w / total) for p, w in weights.items()), key=lambda item: -item[1])
