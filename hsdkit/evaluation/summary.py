"""From records to figures: quality and cost of each side, over all pages and by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hsdkit.benchmarks import Benchmark
from hsdkit.drafting_tally import Fates, together
from hsdkit.evaluation.efficiency import Pair, by_prefill_share, cost, speedup
from hsdkit.evaluation.record import Record, SideRecord
from hsdkit.pays import NO_DRAFT


def summarise(benchmark: Benchmark, records: Sequence[Record], baseline: str | None = None) -> dict[str, Any]:
    """Plain values for summary.json. Pages that failed count as empty in `quality`, and not at all in `cost` and
    `speedup`; those that could not be measured are counted in `failed` only."""
    names = list(records[0].sides) if records else []
    groups: dict[str, Any] = {}
    for group in dict.fromkeys(g for record in records for g in record.groups):
        values = sorted({value for record in records for value in record.groups.get(group, ())})
        members = {value: [r for r in records if value in r.groups.get(group, ())] for value in values}
        groups[group] = {v: _sides(benchmark, m, names, baseline, group=True) for v, m in members.items()}
    return {
        "pages": len(records),
        "failed": sum(record.error is not None for record in records),
        "errors": [{"key": r.key, "error": r.error} for r in records if r.error],
        "notes": [*benchmark.notes, *_undrafted(records, names)],
        "baseline": baseline,
        "sides": _sides(benchmark, records, names, baseline)["sides"],
        "by_prefill_share": {
            name: by_prefill_share(_pairs(records, baseline, name)) for name in names if baseline and name != baseline
        },
        "groups": groups,
    }


def _sides(
    benchmark: Benchmark, records: Sequence[Record], names: Sequence[str], baseline: str | None, group: bool = False
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        sides = [record.sides[name] for record in records]
        measured = [side.measured for side in sides if side.measured is not None]
        found[name] = {
            "quality": benchmark.summarise(measured, group),
            "cost": cost([side.page for side in sides]),
            "drafts": _drafts(sides),
            "speedup": speedup(_pairs(records, baseline, name)) if baseline and name != baseline else None,
        }
    return {"pages": len(records), "sides": found}


def _drafts(sides: Sequence[SideRecord]) -> dict[str, Any]:
    """How drafts fared on the pages that were decoded: in all, and by label of the drafted region."""
    labels = together(side.fates for side in sides if side.page.error is None)
    return sum(labels.values(), Fates()).to_json() | {"labels": {label: f.to_json() for label, f in labels.items()}}


def _undrafted(records: Sequence[Record], names: Sequence[str]) -> list[str]:
    """For each side on how many pages it had no draft, though it wanted one; with the reason on the first of them."""
    found = []
    for name in names:
        pages = [record.sides[name].page for record in records]
        reasons = [note for page in pages for note in page.notes if note.startswith(NO_DRAFT)]
        if reasons:
            found.append(
                f"{name}: {len(reasons)} of {len(pages)} pages were read without a draft; the first: {reasons[0]}"
            )
    return found


def _pairs(records: Sequence[Record], baseline: str, name: str) -> list[Pair]:
    return [(record.sides[baseline].page, record.sides[name].page) for record in records]
