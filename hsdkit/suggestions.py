"""What a mistyped name may have meant."""

from __future__ import annotations

from collections.abc import Sequence


def nearest(name: str, known: Sequence[str], limit: int = 3) -> list[str]:
    """The known names that `name` may have meant, best first; none when nothing is near."""
    from rapidfuzz import fuzz, process, utils

    found = process.extract(
        name, known, scorer=fuzz.ratio, processor=utils.default_process, limit=limit, score_cutoff=60
    )
    return [match[0] for match in found]


def did_you_mean(near: Sequence[str]) -> str:
    """` did you mean page or region?`, to stand behind what is wrong; "" when there is nothing to offer."""
    return f" did you mean {' or '.join(near)}?" if near else ""
