"""What `hsdkit whatif check=true` prints: predicted beside measured seconds of every held-out page, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hsdkit.roofline.check import Held, mean_error
from hsdkit.study.tables import Table, to_markdown

HEADER = ("document", "page", "side", "passes", "predicted s", "measured s", "error", "passes unfitted")

CAPTION = (
    "Seconds of decoding (verification passes and the host's part). Each page is predicted from the model's config, "
    "this CPU as measured just now, and the other pages of the recording: one factor for the passes of all sides, and "
    "the seconds a pass that a side's host spends. passes unfitted: error of the passes' seconds without that factor."
)


def lines(held: Sequence[Held]) -> list[str]:
    """A table, a line a side with its errors, and what the table means."""
    rows = tuple(
        (
            Path(h.of.document).name,
            str(h.of.page),
            h.of.side,
            str(h.of.passes),
            f"{h.predicted:.3f}",
            f"{h.measured:.3f}",
            f"{h.error:+.0%}",
            f"{h.unfitted:+.0%}",
        )
        for h in held
    )
    table = to_markdown(Table("", HEADER, rows))
    return [table, *(_side(name, found) for name, found in _sides(held).items()), "", CAPTION]


def figures(held: Sequence[Held]) -> list[dict[str, Any]]:
    """The same as numbers."""
    return [
        {
            "document": h.of.document,
            "page": h.of.page,
            "side": h.of.side,
            "passes": h.of.passes,
            "predicted": h.predicted,
            "measured": h.measured,
            "error": h.error,
            "factor": h.factor,
            "unfitted": h.unfitted,
        }
        for h in held
    ]


def _sides(held: Sequence[Held]) -> dict[str, list[Held]]:
    return {name: [h for h in held if h.of.side == name] for name in dict.fromkeys(h.of.side for h in held)}


def _side(name: str, held: Sequence[Held]) -> str:
    total = sum(h.predicted for h in held) / sum(h.measured for h in held) - 1
    worst = max((h.error for h in held), key=abs)
    return (
        f"- {name}: all pages together {total:+.1%}, mean size of an error {mean_error(held):.1%}, largest {worst:+.0%}"
    )
