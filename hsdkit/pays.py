"""Does drafting this page pay? Judged by the pages before and by what engine and drafter expect.

A draft does not remove the cost of decoding, it divides it: drafting pays when the drafter takes less time than
`plain * (1 - 1 / speedup)`, the part of plain decoding that a draft saves.
"""

from __future__ import annotations

from dataclasses import dataclass

#: What a page's note begins with where its draft was left out, or its drafter failed.
NO_DRAFT = "no draft: "

#: Drafts expected to take less seconds than this are simply made: judging them would cost as much.
NEGLIGIBLE = 0.1

#: What a draft divides decoding by before this run has shown it, and how many tokens of pages this belief is worth.
PRIOR_SPEEDUP, _PRIOR_TOKENS = 3.0, 300

#: How many characters of pages the tokenizer's tokens per character are worth against what pages of this run show.
_PRIOR_CHARACTERS = 2000


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


@dataclass(frozen=True, slots=True)
class PlainCost:
    """What plain decoding takes, as far as it is known before a page is decoded: seconds a token, how many tokens the
    tokenizer makes of a character, the most tokens of a page, and what the run has shown so far."""

    per_token: float
    per_character: float
    most_tokens: int
    experience: Experience = Experience()

    def seconds(self, characters: float) -> float:
        """Of a page with so many printed characters."""
        return self.per_token * min(self.experience.tokens_for(characters, self.per_character), self.most_tokens)


def reason_to_skip(drafting: float, plain: float, speedup: float) -> str | None:
    """Why a draft would not pay, with both numbers; None when it does. `drafting` and `plain` are expected seconds."""
    saving = max(0.0, plain * (1 - 1 / speedup)) if speedup > 0 else 0.0
    if drafting <= saving:
        return None
    return (
        f"{NO_DRAFT}making it would take about {drafting:.2g} s and save about {saving:.2g} s "
        f"of the {plain:.2g} s that plain decoding is expected to take (draft=always drafts all the same)"
    )
