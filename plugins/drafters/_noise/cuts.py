"""Where text can be cut in two without breaking a word or a formula, and how many printed lines it has."""

from __future__ import annotations

from bisect import bisect_left

from hsdkit_plugins.drafters._noise.markup import FORMULA

from hsdkit.regions import Box
from hsdkit.spelling import is_cjk

#: Of the distance between lines: the mean width of a Latin letter, of a Chinese one.
_LATIN, _CJK = 0.4, 0.83


def cut_points(text: str) -> list[int]:
    """Positions before a word, or between two characters of a script without spaces."""
    inside = {i for match in FORMULA.finditer(text) for i in range(match.start() + 1, match.end())}
    return [
        i
        for i in range(1, len(text))
        if i not in inside
        and not text[i].isspace()
        and (text[i - 1].isspace() or (is_cjk(text[i - 1]) and is_cjk(text[i])))
    ]


def nearest_cut(text: str, share: float) -> int | None:
    """The cut point nearest to that share of the text; None when it cannot be cut."""
    points = cut_points(text)
    return min(points, key=lambda i: abs(i - share * len(text)), default=None)


def printed_lines(text: str, box: Box) -> list[str]:
    """The text of a paragraph, line by line as far as the size of its box tells; joined they are the text."""
    points = cut_points(text)
    lines = line_count(text, box)
    ends: list[int] = []
    for k in range(1, lines):
        at = bisect_left(points, k * len(text) / lines)
        if at < len(points) and points[at] not in ends:
            ends.append(points[at])
    return [text[a:b] for a, b in zip([0, *ends], [*ends, len(text)], strict=True)]


def line_count(text: str, box: Box) -> int:
    """About how many lines of print a text in such a box has: letters have a known width for their height."""
    width = sum(_CJK if is_cjk(c) else _LATIN for c in text)
    if not width or not box.area:
        return 1
    # A sliver of a box would have more lines than letters.
    return max(1, round(min(len(text), (box.height / box.width * width) ** 0.5)))
