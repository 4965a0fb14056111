"""Whether a PDF's text layer says what the page shows, judged from the text alone."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from hsdkit.spelling import is_cjk
from hsdkit.textlayer import TextLayer

#: Part of the characters without a known meaning from which on a layer is garbage.
MOST_UNMAPPED = 0.15


@dataclass(frozen=True, slots=True)
class Trust:
    """`score` in 0..1, 0 for a layer that must not be used; `reason` in plain words where it is not 1."""

    score: float
    reason: str = ""


def trust(layer: TextLayer | None, width: int, height: int) -> Trust:
    """Judge the layer of a `width` x `height` page."""
    if layer is None:
        return Trust(0, "an image has no text layer")
    if not layer.words:
        return Trust(0, "the page has no text layer")
    unmapped = layer.unmapped / max(1, layer.characters)
    if unmapped > MOST_UNMAPPED:
        return Trust(0, f"{unmapped:.0%} of the characters of its text layer have no known meaning")
    covered = sum(b.area for b in layer.images) / (width * height)
    if covered > 0.6 and layer.characters < 200 and not layer.invisible:
        return Trust(0, f"the page is a picture, its text layer has only {layer.characters} characters")
    if reason := _gibberish([w.text for w in layer.words]):
        return Trust(0, reason)
    if layer.invisible > layer.characters / 2:
        return Trust(0.7, "the text layer was made by OCR")
    return Trust(1 - unmapped)


def _gibberish(words: list[str]) -> str:
    """Why the words cannot be text, "" if they can: broken character maps give symbols, or letters no one can read."""
    text = "".join(words)
    if len(text) < 60:
        return ""
    letters = [ch for ch in text if ch.isalpha()]
    plain = sum(ch.isalnum() or unicodedata.category(ch)[0] == "M" for ch in text)
    leaders = sum(ch in ".·…_-–—" for ch in text)
    if plain < 0.45 * (len(text) - leaders):
        return f"its text layer is {1 - plain / len(text):.0%} symbols"
    if len(letters) < 60:
        return ""
    latin = [ch.lower() for ch in letters if ch.isascii()]
    spaced = sum(not is_cjk(ch) for ch in letters) > len(letters) / 2
    if spaced and len(text) / len(words) > 22:
        return "its text layer has no spaces"
    if len(latin) > 0.8 * len(letters) and len(latin) > 100:
        vowels = sum(ch in "aeiouy" for ch in latin) / len(latin)
        frequent = sum(ch in "etaoinsr" for ch in latin) / len(latin)
        if not 0.2 < vowels < 0.65 or frequent < 0.42:
            return "the letters of its text layer do not form words"
    return ""
