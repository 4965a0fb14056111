"""Folders of `hsdkit eval` as tables: quality and cost of each side, over all pages and by group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hsdkit.errors import DocumentError, described
from hsdkit.evaluation.tables import COST, fate_rows, prefill_range
from hsdkit.study.fates import CAPTION
from hsdkit.study.runs import flat
from hsdkit.study.tables import Table

#: The file that an evaluation ends with.
NAME = "summary.json"

_FACTS = ("edition", "pages", "failed", "baseline")

#: After the quality of a side: as `hsdkit eval` prints it, and decoding with the drafter's time left out.
_COST = (*COST, ("SR_decode without drafting", "speedup", "decode_without_draft", 2))
_DIGITS = {head: digits for head, _, _, digits in _COST}


@dataclass(frozen=True, slots=True)
class Evaluated:
    """What a report shows of an evaluation; see `hsdkit.study.folder_report.Content`. `bars` are what plots are made
    of: by their name, rows of a name and figures."""

    tables: dict[str, Table]
    bars: dict[str, list[tuple[str, dict[str, float]]]]
    about: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def read(folder: Path) -> Evaluated:
    """Raises `DocumentError`."""
    file = folder / NAME
    try:
        summary = json.loads(file.read_bytes())
        tables = {"overall": _table("All pages", "verifier", ((n, s) for n, s in summary["sides"].items()))}
        tables["times"] = _times(summary["sides"])
        bars = {}
        for group, values in summary.get("groups", {}).items():
            rows = [(v, n, s) for v, found in values.items() for n, s in found["sides"].items()]
            tables[f"by_{group}"] = _table(f"By {group}", group, ((f"{v} ({n})", s) for v, n, s in rows))
            own = [(v, n, s) for v, n, s in rows if n != summary.get("baseline")]
            several = len({n for _, n, _ in own}) > 1
            bars[f"by_{group}"] = [(f"{v} ({n})" if several else v, _shown(s)) for v, n, s in own]
        if shares := _shares(summary.get("by_prefill_share", {})):
            tables["by_prefill_share"] = shares
        tables |= _drafts(summary)
        facts = tuple((k, str(summary[k])) for k in _FACTS if summary.get(k) is not None)
        facts += tuple((k, str(v)) for part in ("versions", "machine") for k, v in summary.get(part, {}).items())
        settings = {k: v for k, v in flat(summary.get("settings", {})).items() if v not in ("", None)}
        facts += tuple((k.removeprefix("sides."), str(v)) for k, v in settings.items())
        notes = (*summary.get("notes", ()), *(str(e["error"]) for e in summary.get("errors", ())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise DocumentError(f"{file}: no summary of `hsdkit eval`: {described(e)}") from None
    return Evaluated(tables, {name: rows for name, rows in bars.items() if len(rows) > 1}, facts, notes)


def _times(sides: Mapping[str, Any]) -> Table:
    """Seconds of all pages by phase, a column a side."""
    seconds = {name: (side.get("cost") or {}).get("seconds", {}) for name, side in sides.items()}
    phases = dict.fromkeys(phase for found in seconds.values() for phase in found)
    cells = tuple((phase, *(_text(found.get(phase), 2) for found in seconds.values())) for phase in phases)
    numbers = tuple({"seconds": phase, **{n: found.get(phase, "") for n, found in seconds.items()}} for phase in phases)
    return Table("Seconds of all pages", ("seconds", *seconds), cells, "", numbers)


def _shown(side: Mapping[str, Any]) -> dict[str, float]:
    """What is worth a plot: the main figure of quality, draft tokens accepted a step, speed."""
    figures = {k: v for k, v in _figures(side).items() if v is not None}
    main = [k for k in figures if k in (side.get("quality") or {})][:1]
    return {k: figures[k] for k in (*main, "AAL", "SR_decode", "SR_e2e") if k in figures}


def _shares(sides: Mapping[str, Any]) -> Table | None:
    """The paper's Table A1; None without a baseline."""
    found = [(name, row) for name, rows in sides.items() for row in rows]
    cells = tuple(
        (
            name,
            prefill_range(row),
            str(row["pages"]),
            _text(row["e2e"], 2),
            _text(row["decode"], 2),
        )
        for name, row in found
    )
    header = ("verifier", "prefill", "pages", "SR_e2e", "SR_decode")
    caption = "prefill: the part of the baseline's page latency that is image encoding and prefill."
    numbers = tuple({"verifier": name, **row} for name, row in found)
    return Table("By prefill", header, cells, caption, numbers) if found else None


def _drafts(summary: Mapping[str, Any]) -> dict[str, Table]:
    """How drafts fared, by label of the region and by group, for sides that asked for any."""
    labels = [
        ((name, label), found)
        for name, side in summary["sides"].items()
        for label, found in (side.get("drafts") or {}).get("labels", {}).items()
    ]
    made = {"region": labels}
    for group, values in summary.get("groups", {}).items():
        made[group] = [
            ((name, value), side["drafts"])
            for value, found in values.items()
            for name, side in found["sides"].items()
            if side.get("drafts")
        ]
    tables = {}
    for name, rows in made.items():
        kept = [(names, f) for names, f in rows if set(f["ends"]) - {"unknown"}]
        if kept:
            heads = ["verifier", name]
            header, *cells = fate_rows(heads, kept)
            numbers = tuple(dict(zip(heads, n, strict=True)) | {**f, **f["ends"]} for n, f in kept)
            plain = tuple({k: v for k, v in row.items() if not isinstance(v, dict)} for row in numbers)
            tables[f"drafts_by_{name}"] = Table(f"Drafts by {name}", header, tuple(cells), CAPTION, plain)
    return tables


def _table(title: str, head: str, rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Table:
    found = [(name, _figures(side)) for name, side in rows]
    columns = list(dict.fromkeys(c for _, f in found for c in f))
    cells = tuple((name, *(_text(f.get(c), _DIGITS.get(c)) for c in columns)) for name, f in found)
    return Table(title, (head, *columns), cells, "", tuple({head: name, **f} for name, f in found))


def _figures(side: Mapping[str, Any]) -> dict[str, Any]:
    """Quality first; figures with a slash in their name are for the CSV of single tests, too many for a table."""
    out = {k: v for k, v in (side.get("quality") or {}).items() if "/" not in k}
    cost = {head: (side.get(part) or {}).get(name) for head, part, name, _ in _COST}
    return out | {head: value for head, value in cost.items() if value is not None}


def _text(value: Any, digits: int | None = None) -> str:
    if value is None or not isinstance(value, (int, float)):
        return "-" if value is None else str(value)
    return f"{value:.4g}" if digits is None else f"{value:.{digits}f}"
