"""Which drafted region a part of the output is of, found by its letters: outputs of most models name no regions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence

from hsdkit.regions import Region

#: Letters in a row that are looked up; the least share of a line's that must be of the region it is given to.
GRAM, SHARE = 6, 0.2

_TAG = re.compile(r"<[/!|a-zA-Z][^<>]*>")
_NO_LETTER = re.compile(r"[\W_]+")
#: Ends of the parts that are placed: lines, and records of pages that are written as JSON.
_PART = re.compile(r"\n+|\}, ?\{")


class Placing:
    """The parts of a text, each with the index of the region it is of, or None.

    A part is a line, or a record of a page in JSON. It is of the region that most of its sequences of six letters and
    digits are of, those that occur in one region only; shorter ones if all their letters are those of one region. What
    is between two parts of the same region is of it too: rows of a table, lines of a formula. A region that the output
    writes on the same line as a longer one is not told from that.
    """

    def __init__(self, text: str, regions: Sequence[Region]) -> None:
        grams: dict[str, int | None] = {}
        whole: dict[str, int | None] = {}
        # Running heads and the like are left out of Markdown: what they share with a heading is the heading's.
        for index in sorted(range(len(regions)), key=lambda i: not regions[i].readable):
            content = _letters(regions[index].text)
            for key, places in [(content, whole)] * bool(content) + [(gram, grams) for gram in set(_grams(content))]:
                if key not in places:
                    places[key] = index
                elif regions[index].readable:
                    places[key] = None
        self._starts = [0, *(found.end() for found in _PART.finditer(text))]
        edges = zip(self._starts, [*self._starts[1:], len(text)], strict=True)
        found = [_region(_letters(text[start:end]), grams, whole) for start, end in edges]
        self._regions = _filled(found)

    def region(self, position: int) -> int | None:
        """The region of the part that holds the character at a position."""
        return self._regions[bisect_right(self._starts, position) - 1]


def _letters(text: str) -> str:
    return _NO_LETTER.sub("", _TAG.sub("", text)).casefold()


def _grams(content: str) -> list[str]:
    return [content[i : i + GRAM] for i in range(len(content) - GRAM + 1)]


def _region(content: str, grams: dict[str, int | None], whole: dict[str, int | None]) -> int | None:
    if (exact := whole.get(content)) is not None:
        return exact
    looked_up = _grams(content)
    votes = Counter(index for gram in looked_up if (index := grams.get(gram)) is not None)
    if not votes:
        return None
    index, most = votes.most_common(1)[0]
    return index if most >= SHARE * len(looked_up) else None


def _filled(found: Sequence[int | None]) -> list[int | None]:
    filled, last = list(found), -1
    for part, region in enumerate(found):
        if region is None:
            continue
        if last >= 0 and found[last] == region:
            filled[last:part] = [region] * (part - last)
        last = part
    return filled
