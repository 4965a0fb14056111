"""Tables that tell pages apart: by document, and by how much of plain decoding's time is prefill; pure functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hsdkit.study.figures import figures_of, prefill_share
from hsdkit.study.records import CellRecord, PageRecord
from hsdkit.study.tables import COLUMNS, Table, numbers_of

#: Of the figures of a cell, those that a group has, too.
_SHOWN = tuple(c for c in COLUMNS if c.header in ("SR_e2e", "SR_decode", "tokens/step", "AAL", "s/page", "edit"))

#: Upper ends of the shares of prefill, and what they are called.
_SHARES = ((0.2, "up to 20%"), (0.4, "20-40%"), (0.6, "40-60%"), (0.8, "60-80%"), (1.0, "above 80%"))


def by_document(axes: Sequence[str], records: Sequence[CellRecord]) -> Table | None:
    """None where there is only one document."""
    table = _grouped(axes, records, "document", lambda p: Path(p.document).name)
    return table if table and len({row[len(axes)] for row in table.rows}) > 1 else None


def by_prefill_share(axes: Sequence[str], records: Sequence[CellRecord]) -> Table | None:
    """The paper's Table A1: speculation shortens decoding only, so pages that are mostly prefill gain little."""
    caption = "prefill: the part of plain decoding's page latency that is image encoding and prefill."
    return _grouped(axes, records, "prefill", _share, [name for _, name in _SHARES], caption)


def by_group(axes: Sequence[str], records: Sequence[CellRecord]) -> dict[str, Table]:
    """A table for each way in which a benchmark groups its pages, by its name."""
    found = {name: _grouped(axes, records, name, lambda p, n=name: p.groups.get(n)) for name in group_names(records)}  # type: ignore[misc]
    return {name: table for name, table in found.items() if table is not None}


def group_names(records: Sequence[CellRecord]) -> list[str]:
    return list(dict.fromkeys(g for r in records for p in r.pages for g in p.groups))


def _share(page: PageRecord) -> str | None:
    share = prefill_share(page)
    return None if share is None else next((name for most, name in _SHARES if share <= most), _SHARES[-1][1])


def _grouped(
    axes: Sequence[str],
    records: Sequence[CellRecord],
    name: str,
    group: Callable[[PageRecord], str | None],
    order: Sequence[str] = (),
    caption: str = "",
) -> Table | None:
    """One row a cell and group; pages without a group are left out. None without rows."""
    rows, numbers = [], []
    for record in records:
        members: dict[str, list[PageRecord]] = {}
        for page in record.pages:
            if (value := group(page)) is not None:
                members.setdefault(value, []).append(page)
        for value in [v for v in order if v in members] or members:
            f = figures_of(members[value])
            assert f is not None
            at = {axis: record.at.get(axis, "-") for axis in axes}
            rows.append((*at.values(), value, str(f.pages), *(c.text(f) for c in _SHOWN)))
            numbers.append({**at, name: value, "pages": f.pages, **numbers_of(f, _SHOWN)})
    if not rows:
        return None
    header = (*axes, name, "pages", *(c.header for c in _SHOWN))
    return Table(f"By {name}", header, tuple(rows), caption, tuple(numbers))
