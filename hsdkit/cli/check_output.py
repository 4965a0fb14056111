"""What `hsdkit whatif check=true` prints: predicted beside measured seconds of every held-out page, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from hsdkit.roofline.check import AIM, Held, mean_error
from hsdkit.study.tables import Table, to_markdown

HEADER = (
    "document", "page", "side", "passes", "predicted s", "measured s", "rounds", "error", "passes alone", "by config"
)  # fmt: skip

_CAPTION = (
    "Seconds of decoding: verification passes, the host's part, images and prompts of region crops. Held out: every "
    "page in turn, on all sides. It is predicted from its own steps, from {source}, and from the other pages of the "
    "recording: they give one factor for passes (here {low:.2f} to {high:.2f}), one for prompts, and the seconds that "
    "a side's host spends on a pass. rounds: least and most seconds of a round; the median one is what is measured. "
    "passes alone: the error of the passes without the factor{without}."
)
_OWN = "the recorded model's passes, measured just now"
_BY_CONFIG = "the model's config and this CPU as measured just now"


def lines(held: Sequence[Held], own: bool) -> list[str]:
    """A table, a line a side with its errors, and what the table means. `own`: measured were the recorded model's own
    passes."""
    rows = tuple(
        (
            Path(h.of.document).name,
            str(h.of.page),
            h.of.side,
            str(h.of.count),
            f"{h.predicted:.3f}",
            f"{h.measured:.3f}",
            f"{min(h.of.rounds):.3f}-{max(h.of.rounds):.3f}" if h.of.rounds else "-",
            f"{h.error:+.0%}",
            f"{h.unfitted:+.0%}",
            "-" if h.from_config is None else f"{h.from_config:+.0%}",
        )
        for h in held
    )
    factors = [h.factor for h in held]
    caption = _CAPTION.format(
        source=_OWN if own else _BY_CONFIG,
        low=min(factors),
        high=max(factors),
        without="; by config: the same from the model's config, as for any other model" if own else "",
    )
    table = to_markdown(Table("", HEADER, rows))
    return [table, *(_side(name, found) for name, found in _sides(held).items()), "", caption]


def figures(held: Sequence[Held]) -> list[dict[str, Any]]:
    """The same as numbers."""
    return [
        {
            "document": h.of.document,
            "page": h.of.page,
            "side": h.of.side,
            "passes": h.of.count,
            "predicted": h.predicted,
            "measured": h.measured,
            "rounds": list(h.of.rounds),
            "error": h.error,
            "factor": h.factor,
            "unfitted": h.unfitted,
            "from_config": h.from_config,
        }
        for h in held
    ]


def _sides(held: Sequence[Held]) -> dict[str, list[Held]]:
    return {name: [h for h in held if h.of.side == name] for name in dict.fromkeys(h.of.side for h in held)}


def _side(name: str, held: Sequence[Held]) -> str:
    total = sum(h.predicted for h in held) / sum(h.measured for h in held) - 1
    worst = max((h.error for h in held), key=abs)
    above = [h for h in held if abs(h.error) > AIM]
    said = f"- {name}: all pages together {total:+.1%}, mean size of an error {mean_error(held):.1%}, "
    said += f"largest {worst:+.0%}; {len(held) - len(above)} of {len(held)} pages within {AIM:.0%}"
    if above:
        said += f", of the others {sum(h.within_rounds for h in above)} between the page's own rounds"
    if all(len(h.of.rounds) > 1 for h in held):
        noise = [h.noise for h in held]
        said += (
            f"; the worst round of a page is {fmean(noise):.0%} off its median in the mean, {max(noise):.0%} at most"
        )
    return said
