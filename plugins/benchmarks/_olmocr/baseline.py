"""The test that every page has: something is there, no endless repeats, no foreign characters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

#: Chinese, Japanese and emoji: in the English pages of the benchmark they are a sign of a model gone astray.
_FOREIGN = re.compile(
    "[一-鿿぀-ゟ゠-ヿ\U0001f600-\U0001f64f\U0001f300-\U0001f5ff\U0001f680-\U0001f6ff\U0001f1e0-\U0001f1ff]"
)
_IMAGE = re.compile(r"!\[.*?\]\(.*?\)")
LONGEST_NGRAM = 5


def baseline(test: Mapping[str, Any], markdown: str) -> str:
    """Why it fails, "" when it passes. With `max_length` the page is blank, and only its length is looked at."""
    most = test.get("max_length")
    if most is not None:
        text = _IMAGE.sub("", markdown) if test.get("max_length_skips_image_alt_tags") else markdown
        return "" if _letters(text) <= most else f"{_letters(text)} characters on a blank page"
    if not _letters(markdown):
        return "no text"
    allowed = test.get("max_repeats", 30)
    for size, repeats in enumerate(end_repeats(markdown), 1):
        if repeats > allowed:
            return f"ends with {repeats} times the same {size} characters"
    if test.get("check_disallowed_characters", True) and (found := _FOREIGN.search(markdown)):
        return f"holds the character {found[0]!r}"
    return ""


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def end_repeats(text: str) -> list[int]:
    """How often the last 1, 2, ... characters of the text stand there one after the other."""
    text = re.sub(r"\s+", " ", text)
    found = []
    for size in range(1, LONGEST_NGRAM + 1):
        last, at, count = text[-size:], len(text) - size, 0
        while at >= 0 and text[at : at + size] == last:
            count += 1
            at -= size
        found.append(count)
    return found
