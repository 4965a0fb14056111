"""Boxes in drafts of structured pages: four numbers that the model writes a little otherwise than the drafter.

A number that is off by two pixels is no reason to leave the draft, but text matching takes each for a mistake. So where
the draft comes to such a number, the numbers around it are drafted beside it and the draft is read on behind each: a
tree that forks at every number, likeliest values first. How far the model's boxes lie from the drafter's is learned
from those it has written, and so are the margins that come back on a page (columns begin at the same x).
"""

from __future__ import annotations

import heapq
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from hsdkit.decoding.matching.cursor import Cursor
from hsdkit.decoding.matching.drafttext import DraftText
from hsdkit.decoding.protocol import Codec

#: How structured outputs write a box: JSON and grounding tags, or one tag a number.
_BOX = re.compile(
    rb"\[\s*(\d{1,4}),\s*(\d{1,4}),\s*(\d{1,4}),\s*(\d{1,4})\s*\]"
    rb"|<loc_(\d{1,4})><loc_(\d{1,4})><loc_(\d{1,4})><loc_(\d{1,4})>"
)
#: The beginning of a box at the end of an output: the numbers that are complete.
_BEGUN = re.compile(rb"(?:\[\s*((?:\d{1,4},\s*){1,3})(\d{0,4})|(?<!\d>)((?:<loc_\d{1,4}>){1,3}))\Z")
_NUMBER = re.compile(rb"\d+")
#: Longest box as text; how far apart two boxes may be, in their own units, to be the same region's.
_LONGEST, SAME = 64, 12
#: How often the model's number differs by 0, 1, 2, ... from the drafter's, before any is known, and how many
#: observations that is worth.
_PRIOR, _WEIGHT = (0.5, 0.1, 0.06, 0.04, 0.02, 0.01), 4.0
#: Values offered for a number, branches of a step, and the least probability of one.
_VALUES, _BRANCHES, _LEAST = 8, 48, 0.02


@dataclass(frozen=True, slots=True)
class Number:
    """One of a box's numbers in the draft. `side` is 0 to 3 for x0, y0, x1, y1; `begin`, `end` are the bytes and
    `first`, `last` the draft's tokens (last exclusive) that hold it, with `before` and `after` it in them."""

    value: int
    side: int
    begin: int
    end: int
    first: int
    last: int
    before: bytes
    after: bytes


@dataclass(slots=True)
class Path:
    """A way through the next numbers: a cursor whose seam is the whole way, the index of the first token that is this
    path's own, and the probability of that token."""

    cursor: Cursor
    fork: int
    first: float


class Boxes:
    """The boxes of one sequence's drafts, and what its output has shown of the model's."""

    def __init__(self, draft: DraftText, codec: Codec) -> None:
        self._draft, self._codec = draft, codec
        self._values: list[tuple[tuple[int, ...], tuple[Number, ...]]] = []
        self.numbers: list[Number] = []
        for found in _BOX.finditer(draft.text):
            numbers = [self._number(found, group, side) for side, group in enumerate(_groups(found))]
            if all(numbers):
                box = tuple(number for number in numbers if number is not None)
                self._values.append((tuple(n.value for n in box), box))
                self.numbers += box
        self._firsts = [number.first for number in self.numbers]
        self._begins = [number.begin for number in self.numbers]
        self._written: dict[tuple[bytes, int, bytes], list[int]] = {}
        self._shifts: list[Counter[int]] = [Counter() for _ in range(4)]
        self._margins: list[Counter[int]] = [Counter() for _ in range(4)]
        self._options: dict[tuple[int, int], list[tuple[int, float]]] = {}
        self._watched = 0

    def _number(self, found: re.Match[bytes], group: int, side: int) -> Number | None:
        """None where the tokens that hold it hold something of another number too."""
        draft, (begin, end) = self._draft, found.span(group)
        first = bisect_right(draft.starts, begin) - 1
        last = bisect_left(draft.starts, end)
        before, after = draft.text[draft.starts[first] : begin], draft.text[end : draft.starts[last]]
        if _NUMBER.search(before + after):
            return None
        return Number(int(found[group]), side, draft.starts[first], draft.starts[last], first, last, before, after)

    # -- learning

    def watch(self, out: bytearray) -> None:
        """Learns from the boxes that the output has completed since the last call."""
        if not self.numbers:
            return
        for found in _BOX.finditer(out, max(0, self._watched - _LONGEST)):
            if found.end() <= self._watched:
                continue
            self._watched = found.end()
            values = [int(found[group]) for group in _groups(found)]
            if (box := self._nearest(values)) is not None:
                self._options = {}
                for side, (value, number) in enumerate(zip(values, box, strict=True)):
                    self._shifts[side][value - number.value] += 1
                    self._margins[side][value] += 1
        self._watched = max(self._watched, len(out) - _LONGEST)

    def _nearest(self, values: Sequence[int]) -> tuple[Number, ...] | None:
        """The draft's box whose first numbers are nearest to these, if they are near at all."""
        best, least = None, SAME * len(values) + 1
        for numbers, box in self._values:
            apart = [abs(a - b) for a, b in zip(values, numbers, strict=False)]
            if max(apart) <= SAME and sum(apart) < least:
                best, least = box, sum(apart)
        return best

    def begun(self, out: bytearray, read: Sequence[int]) -> list[tuple[int, float]]:
        """Where in the draft the box may be that the output has begun, with costs: boxes of regions not read yet whose
        first numbers are near those written. `read` says of each region whether it is read."""
        if not self.numbers or (begun := _BEGUN.search(out, max(0, len(out) - _LONGEST))) is None:
            return []
        values = [int(n) for n in _NUMBER.findall(begun[1] or begun[3])]
        digits = begun[2] or b""
        found = []
        for numbers, box in self._values:
            apart = [abs(a - b) for a, b in zip(values, numbers, strict=False)]
            number = box[len(values)]
            if max(apart) > SAME or not str(number.value).encode().startswith(digits):
                continue
            if not read[self._draft.region_of(number.begin)]:
                found.append((sum(apart), number.begin + len(number.before) + len(digits)))
        # One number alone is shared by a whole column: then the first regions that are left are as good as any.
        found = sorted(found)[:3] if len(values) > 1 else found[:2]
        base = 0.5 if len(values) > 1 else 3.0
        return [(position, base + rank) for rank, (_, position) in enumerate(found)]

    def options(self, number: Number) -> list[tuple[int, float]]:
        """Values the model may write in the place of a number, with their probabilities, likeliest first."""
        key = number.side, number.value
        if key not in self._options:
            self._options[key] = self._ranked(number)
        return self._options[key]

    def _ranked(self, number: Number) -> list[tuple[int, float]]:
        side = number.side
        pooled = sum(self._shifts, Counter[int]())
        own, all_ = self._shifts[side], pooled.total()
        near = {v: n for v, n in self._margins[side].items() if abs(v - number.value) <= SAME}
        known = sum(near.values())
        weight = 0.7 * known / (known + 2)
        shifts = {*range(-len(_PRIOR) + 1, len(_PRIOR)), *own}
        ranked = []
        for value in {number.value + shift for shift in shifts} | set(near):
            shift = value - number.value
            prior = _PRIOR[abs(shift)] if abs(shift) < len(_PRIOR) else 0.0
            seen = (pooled[shift] + _WEIGHT * prior) / (all_ + _WEIGHT)
            seen = (own[shift] + 4 * seen) / (own.total() + 4)
            chance = (1 - weight) * seen + weight * near.get(value, 0) / max(1, known)
            if value >= 0:
                ranked.append((value, chance))
        ranked.sort(key=lambda pair: (-pair[1], abs(pair[0] - number.value)))
        # The likeliest is offered even where the model's boxes have nothing in common with the draft's.
        return [pair for place, pair in enumerate(ranked[:_VALUES]) if not place or pair[1] >= _LEAST]

    # -- reading on

    def holds(self, position: int) -> bool:
        """Whether a position is right before or in a number."""
        index = bisect_right(self._begins, position) - 1
        return index >= 0 and position < self.numbers[index].end

    def behind(self, position: int, data: bytes) -> int | None:
        """The position behind the number that a position is in, if `data` is the rest of it with other digits."""
        index = bisect_right(self._begins, position) - 1
        if index < 0 or position >= (number := self.numbers[index]).end:
            return None
        rest = self._draft.text[position : number.end]
        same = len(rest) == len(data) and all(
            a == b or (chr(a).isdigit() and chr(b).isdigit()) for a, b in zip(rest, data, strict=True)
        )
        return number.end if same else None

    def paths(self, cursor: Cursor, limit: int, first: float, rest: float) -> list[Path]:
        """Ways to read on from a cursor through the numbers ahead, parents before the paths that leave them; () when
        there is none within `limit` tokens. `first` and `rest` are the probabilities of the draft's tokens."""
        draft = self._draft
        index = bisect_left(self._firsts, cursor.token)
        lead = len(cursor.seam)
        if index == len(self.numbers) or self._firsts[index] - cursor.token + lead >= limit:
            return []
        tokens, places = list(cursor.seam), self._seam_places(cursor)
        self._read(tokens, places, cursor.token, self._firsts[index])
        order = count()
        # (improbability, order, path so far, places, next number)
        ahead = [(-first * rest ** max(0, len(tokens) - 1), next(order), tokens, places, index)]
        paths: list[Path] = []
        nodes = 0
        while ahead and nodes < 1.5 * limit and len(paths) < _BRANCHES:
            chance, _, tokens, places, index = heapq.heappop(ahead)
            number = self.numbers[index]
            options = [(value, share, self._tokens(number, value)) for value, share in self.options(number)]
            shared = _common([written for _, _, written in options])
            own_places = self._number_places(number, options[0][2])
            tokens, places = [*tokens, *options[0][2][:shared]], [*places, *own_places[:shared]]
            if tokens and not paths:  # the trunk: what comes before the first fork
                paths.append(Path(Cursor(cursor.position, tokens, number.last, cursor.begin, places=places), 0, first))
                nodes += len(tokens)
            following = self._firsts[index + 1] if index + 1 < len(self.numbers) else len(draft.tokens)
            for _, share, written in options:
                survival = -chance * share
                if survival < _LEAST or len(tokens) >= limit:
                    continue
                way = [*tokens, *written[shared:]]
                at = [*places, *self._number_places(number, written)[shared:]]
                end = min(following, number.last + max(0, limit - len(way)))
                self._read(way, at, number.last, end)
                paths.append(Path(Cursor(cursor.position, way, end, cursor.begin, places=at), len(tokens), survival))
                nodes += len(way) - len(tokens)
                if end == following and index + 1 < len(self.numbers):
                    survival *= rest ** (len(way) - len(tokens) - 1)
                    heapq.heappush(ahead, (-survival, next(order), way, at, index + 1))
        return paths

    def _read(self, tokens: list[int], places: list[int], begin: int, end: int) -> None:
        tokens += self._draft.tokens[begin:end]
        places += self._draft.starts[begin + 1 : end + 1]

    def _seam_places(self, cursor: Cursor) -> list[int]:
        if cursor.places:
            return list(cursor.places)
        places, position = [], cursor.position
        for token in cursor.seam:
            position += len(self._codec.token_bytes(token))
            places.append(position)
        return places

    def _tokens(self, number: Number, value: int) -> list[int]:
        """The tokens that hold the number, with that value."""
        key = (number.before, value, number.after)
        if key not in self._written:
            text = number.before + str(value).encode() + number.after
            self._written[key] = self._codec.encode(text.decode(errors="replace"))
        return self._written[key]

    def _number_places(self, number: Number, written: Sequence[int]) -> list[int]:
        """The draft's position after each token of another value; after the last it is behind the number."""
        places, position = [], number.begin
        for token in written:
            position = min(position + len(self._codec.token_bytes(token)), number.end)
            places.append(position)
        places[-1] = number.end
        return places


def _groups(found: re.Match[bytes]) -> range:
    return range(1, 5) if found[1] is not None else range(5, 9)


def _common(sequences: Sequence[Sequence[int]]) -> int:
    """Tokens that all of them begin with, the last of the shortest not counted."""
    shortest = min(map(len, sequences)) - 1
    for index in range(shortest):
        if len({sequence[index] for sequence in sequences}) > 1:
            return index
    return max(shortest, 0)
