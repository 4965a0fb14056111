"""Reading along: where in the draft the output is, and which of its regions have been read."""

from __future__ import annotations

from hsdkit.decoding.matching import belief as alignment
from hsdkit.decoding.matching.belief import Belief
from hsdkit.decoding.matching.boxes import Boxes
from hsdkit.decoding.matching.drafttext import DraftText

#: Bytes of output that must agree with the draft for the pointer to be trusted. When they do not, the output's last
#: bytes are looked for, with these lengths and costs, this far around; anywhere, for FAR more, if the pointer is lost.
TRUSTED, TAILS, NEAR = 6, {16: 5.0, 10: 6.0, 6: 7.0}, 64
LOST, FAR = 7.0, 6.0
#: Most bytes aligned one by one.
UNFORETOLD = 32
#: Longest beginning of a line that is compared with the heads of unread regions.
LINE = 48
#: Regions whose beginnings are compared with the line that the output has begun.
BEGINNINGS = 64


class Reading:
    """One sequence's output, as bytes, against its draft.

    The *belief* (positions in the draft with costs) is where a candidate that was followed led; after a departure it is
    moved along the output's bytes, and where that goes badly the output is looked for in the whole draft.
    """

    def __init__(self, draft: DraftText, boxes: Boxes, separator: str) -> None:
        self._draft, self._boxes = draft, boxes
        self._seam = separator.encode() if separator.strip("\n") else b"\n"
        self._read = bytearray(len(draft.region_starts))
        self.out = bytearray()
        self.belief: Belief = {0: 0.0}

    @property
    def at_line_start(self) -> bool:
        return not self.out or self.out.endswith(self._seam)

    @property
    def best(self) -> int:
        """The likeliest position."""
        return min(self.belief, key=self.belief.__getitem__)

    def write(self, data: bytes) -> None:
        self.out += data
        self._boxes.watch(self.out)

    def is_at(self, position: int) -> None:
        """Without a doubt."""
        self.belief = {position: 0.0}

    def mark_read(self, begin: int, end: int) -> int:
        """Marks the regions between two positions as read, the last of them if enough of it is. Returns where the
        reading of that one began."""
        draft, last = self._draft, self._draft.region_of(end)
        for region in range(draft.region_of(begin), last + 1):
            start, stop = draft.region_starts[region], draft.region_ends[region]
            if min(end, stop) - max(begin, start) >= min(TRUSTED, stop - start):
                self._read[region] = 1
        return max(begin, draft.region_starts[last])

    def realign(self, data: bytes) -> None:
        """Moves the belief along bytes that no candidate foretold, and looks elsewhere if that goes badly."""
        draft = self._draft
        if len(data) > UNFORETOLD:  # read from the own text: take it that the draft went along
            passed, end = len(data) - UNFORETOLD, len(draft.text)
            self.belief = {min(position + passed, end): cost for position, cost in self.belief.items()}
        self.belief = alignment.advance(self.belief, draft.text, data[-UNFORETOLD:])
        best = self.best
        if self._agreement(best) >= TRUSTED:
            return
        for place, cost in self._elsewhere(best):
            self.belief[place] = min(cost, self.belief.get(place, cost))
        self.belief = alignment.prune(self.belief)

    def _agreement(self, position: int) -> int:
        """Bytes before a position that are also the last of the output (counted up to TRUSTED)."""
        text, out, length = self._draft.text, self.out, 0
        while (
            length < TRUSTED
            and length < position
            and length < len(out)
            and text[position - length - 1] == out[-length - 1]
        ):
            length += 1
        return length

    def _elsewhere(self, near: int) -> list[tuple[int, float]]:
        """Other places the output may have come from, with costs: regions not read yet that begin like this line, and
        where the last bytes of the output occur."""
        draft, out = self._draft, self.out
        found: list[tuple[int, float]] = []
        recent = out[-LINE - len(self._seam) :]
        seam = recent.rfind(self._seam)
        line = bytes(recent[seam + len(self._seam) :] if seam >= 0 else recent)
        if 0 < len(line) <= LINE:
            for region in self.unread(near, BEGINNINGS):
                if draft.text.startswith(line, draft.region_starts[region]):
                    found.append((draft.region_starts[region] + len(line), 3.0 + len(found)))
        found += self._boxes.begun(out, self._read)
        lost = min(self.belief.values()) > LOST
        for length, cost in TAILS.items():
            if len(out) < length:
                continue
            tail = bytes(out[-length:])
            place = draft.text.find(tail, max(0, near - length - NEAR), near + NEAR)
            if place < 0 and lost:
                place, cost = draft.text.find(tail, near), cost + FAR
                if place < 0:
                    place = draft.text.find(tail)
            if place >= 0:
                return [*found, (place + length, cost)]
        return found

    def unread(self, position: int, most: int) -> list[int]:
        """Regions not read yet: those after a position first, then those before it."""
        read, here = self._read, self._draft.region_of(position)
        order = [*range(here, min(len(read), here + most)), *range(max(0, here - most), here)]
        return [region for region in order if not read[region]][:most]
