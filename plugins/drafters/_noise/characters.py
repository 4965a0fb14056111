"""Misread characters: of the printed characters a given share is taken for others, lost, or added to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hsdkit_plugins.drafters._noise.confusable import confusable, pair
from hsdkit_plugins.drafters._noise.markup import Glyph, Part

if TYPE_CHECKING:
    import numpy as np

#: What specks and broken strokes are read as.
_SPECKS = "il.,'-"


def without_spaces(glyphs: Sequence[Glyph], rate: float, rng: np.random.Generator) -> list[Glyph]:
    """That share of the single spaces between words lost."""
    lost = rng.random(len(glyphs)) < rate
    return [g for g, gone in zip(glyphs, lost, strict=True) if not (gone and g == (" ", Part.FREE))]


def misread(
    glyphs: Sequence[Glyph],
    rate: float,
    deletions: float,
    insertions: float,
    safe: Callable[[str], bool],
    rng: np.random.Generator,
) -> str:
    """The text with `rate` edits (Levenshtein) per printed character, markup not counted.

    Of the errors the share `deletions` loses a character, `insertions` adds one, the others take a character for one
    that looks like it. Every character draws its own numbers: most errors of a low rate are made at a higher one too.
    A word or cell never disappears, so that no blanks meet: they would be read as columns.
    """
    out: list[str] = []
    owed = 0  # edits made beyond those that were due: "rn" read as "m" is two
    edge = True  # the output ends where a word or cell begins
    skip = False
    draws = rng.random((len(glyphs), 3)).tolist()
    after = [*glyphs, ("", Part.MARKUP)][1:]
    for (text, part), (event, kind, which), following in zip(glyphs, draws, after, strict=True):
        if skip:
            skip = False
            continue
        written = text
        if part is not Part.MARKUP and event < rate:
            if owed:
                owed -= 1
            else:
                joined = following[1] is Part.FREE and following[0] != " "
                may_go = part is Part.FREE and (joined or not edge)
                merged = pair(text + following[0]) if joined and part is Part.FREE and which < 0.5 else ""
                if text == " ":
                    written = "" if may_go else text  # nothing looks like a space
                elif kind < deletions and may_go:
                    written = ""
                elif deletions <= kind < deletions + insertions:
                    written += _chosen([c for c in (text, *_SPECKS, " "[:joined]) if c and safe(c)], which)
                elif merged and safe(merged):
                    written, skip = merged, True
                    owed += 1
                elif others := [c for c in confusable(text) if safe(c)]:
                    written = _chosen(others, which)
                    owed += len(written) - 1
                elif may_go:
                    written = ""  # nothing looks like it
        if written:
            out.append(written)
            edge = part is Part.MARKUP or written == " "
    return "".join(out)


def _chosen(among: Sequence[str], which: float) -> str:
    return among[int(which * len(among))]
