"""Does drafting this page pay? Pure estimates from ink, from the pages before, and from what engine and drafter expect.

A draft does not remove the cost of decoding, it divides it: drafting pays when the drafter takes less time than
`plain * (1 - 1 / speedup)`, the part of plain decoding that a draft saves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Drafts expected to take less seconds than this are simply made: judging them would cost as much.
NEGLIGIBLE = 0.1

#: What a draft divides decoding by before this run has shown it, and how many tokens of pages this belief is worth.
PRIOR_SPEEDUP, _PRIOR_TOKENS = 3.0, 300

#: How many characters of pages the tokenizer's tokens per character are worth against what pages of this run show.
_PRIOR_CHARACTERS = 2000

#: Ink outline of one character, squared, over its ink area; measured on born-digital pages at 72 to 144 dpi.
_OUTLINE_PER_CHARACTER = 56.0

#: A page denser than this is a picture, not text: characters of 6 x 9 pixels, edge to edge.
_SMALLEST_CHARACTER = 54.0


@dataclass(frozen=True, slots=True)
class Experience:
    """What the pages of this run have shown so far; one short page must not overturn what is usual.

    `characters` as estimated and `tokens` as written, over all judged pages; of those with a draft the `drafted` tokens
    and their speedups summed, each weighted by its page's tokens.
    """

    characters: float = 0.0
    tokens: int = 0
    drafted: int = 0
    weighted_speedup: float = 0.0

    def after(self, characters: float, tokens: int, speedup: float | None) -> Experience:
        """With one more page; `speedup` is None for a page without a draft."""
        weight = tokens if speedup is not None else 0
        return Experience(
            self.characters + characters,
            self.tokens + tokens,
            self.drafted + weight,
            self.weighted_speedup + weight * (speedup or 0.0),
        )

    @property
    def speedup(self) -> float:
        known = self.weighted_speedup + _PRIOR_TOKENS * PRIOR_SPEEDUP
        return known / (self.drafted + _PRIOR_TOKENS)

    def tokens_for(self, characters: float, per_character: float) -> int:
        """Tokens to expect; `per_character` is the tokenizer's own ratio."""
        known = self.tokens + _PRIOR_CHARACTERS * per_character
        return round(characters * known / (self.characters + _PRIOR_CHARACTERS))


def estimated_characters(grey: NDArray[np.uint8]) -> float:
    """Roughly how many characters are printed on a page: (H, W) luminance; mostly within a factor of two on text.

    The outline of a glyph grows with font size, its ink area with the square, so outline**2 / ink counts glyphs
    whatever the size. Ink is what is clearly darker (or, on a dark page, lighter) than the paper.
    """
    if grey.size == 0:
        return 0.0
    levels = grey.astype(np.int16)
    ink = np.abs(levels - int(np.median(levels))) > 64
    area = int(ink.sum())
    if not area:
        return 0.0
    outline = int((ink[:, 1:] != ink[:, :-1]).sum()) + int((ink[1:] != ink[:-1]).sum())
    return min(outline**2 / area / _OUTLINE_PER_CHARACTER, grey.size / _SMALLEST_CHARACTER)


def reason_to_skip(drafting: float, plain: float, speedup: float) -> str | None:
    """Why a draft would not pay, with both numbers; None when it does. `drafting` and `plain` are expected seconds."""
    saving = max(0.0, plain * (1 - 1 / speedup)) if speedup > 0 else 0.0
    if drafting <= saving:
        return None
    return (
        f"no draft: making it would take about {drafting:.2g} s and save about {saving:.2g} s "
        f"of the {plain:.2g} s that plain decoding is expected to take (draft=always drafts all the same)"
    )
