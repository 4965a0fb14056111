"""Tables of how drafts fared: where they were accepted, where they were rejected and why; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hsdkit.drafting_tally import Fates, together
from hsdkit.evaluation.tables import fate_rows
from hsdkit.rejections import End
from hsdkit.study.records import CellRecord, PageRecord
from hsdkit.study.tables import Table

CAPTION = (
    "How the drafts of the steps ended, in percent of the steps; a step counts to the region that its first token is "
    "in. accepted: of the tokens written. no match: nothing was proposed; wrong token: the draft says something else "
    "in the same place; format seam: the same letters with other spaces, marks or tags; structure: the draft goes on "
    "elsewhere; not verified: the budget spent no token on it; taken: nothing was rejected."
)

#: What divides the pages of a cell, and the name of its part that a page is in; None where it is in none.
Part = Callable[[PageRecord], str | None]


def by_label(axes: Sequence[str], records: Sequence[CellRecord]) -> Table | None:
    """A row for each cell and label of drafted regions, and one for the whole cell. None where nothing was drafted."""
    rows = []
    for record in records:
        labels = page_fates(record.pages)
        rows += [(record, label, fates) for label, fates in labels.items()]
        rows += [(record, "all", _sum(labels))]
    return _table(axes, "Drafts by region", "region", rows)


def by_part(axes: Sequence[str], records: Sequence[CellRecord], name: str, part: Part) -> Table | None:
    """A row for each cell and part of its pages, such as the document type. None where nothing was drafted."""
    rows = []
    for record in records:
        names = dict.fromkeys(value for page in record.pages if (value := part(page)) is not None)
        rows += [(r, n, _sum(page_fates(p for p in r.pages if part(p) == n))) for r in [record] for n in names]
    return _table(axes, f"Drafts by {name}", name, rows)


def page_fates(pages: Iterable[PageRecord]) -> dict[str, Fates]:
    """Those of all pages together, by label."""
    return together({label: Fates.from_json(found) for label, found in page.fates.items()} for page in pages)


def _sum(labels: Mapping[str, Fates]) -> Fates:
    return sum(labels.values(), Fates())


def _table(axes: Sequence[str], title: str, head: str, rows: Iterable[tuple[CellRecord, str, Fates]]) -> Table | None:
    """Cells that asked for no drafts are left out."""
    kept = [
        ((*(record.at.get(axis, "-") for axis in axes), name), fates)
        for record, name, fates in rows
        if _asked(record.pages) and fates.steps
    ]
    if not kept:
        return None
    heads = [*axes, head]
    header, *cells = fate_rows(heads, [(names, fates.to_json()) for names, fates in kept])
    return Table(title, header, tuple(cells), CAPTION, tuple(_numbers(heads, *row) for row in kept))


def _asked(pages: Iterable[PageRecord]) -> bool:
    return any(set(found["ends"]) - {End.UNKNOWN} for page in pages for found in page.fates.values())


def _numbers(heads: Sequence[str], names: Sequence[str], fates: Fates) -> dict[str, Any]:
    """Counts in full, for CSV."""
    counts = {end.value: fates.ends[end] for end in End}
    return dict(zip(heads, names, strict=True)) | {
        "tokens": fates.tokens,
        "accepted": fates.accepted,
        "steps": fates.steps,
        **counts,
    }
