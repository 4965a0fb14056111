"""Folders of `hsdkit eval` as tables: quality and cost of each side, over all pages and by group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hsdkit.errors import DocumentError
from hsdkit.evaluation.tables import fate_rows
from hsdkit.study.fates import CAPTION
from hsdkit.study.tables import Table

#: The file that an evaluation ends with.
NAME = "summary.json"

_FACTS = ("edition", "pages", "failed", "baseline")

#: Of the parts of a side, after its quality.
_COST = {
    "cost": ("aal", "tokens_per_step", "steps", "forwards", "seconds_per_page"),
    "speedup": ("e2e", "decode"),
}


def read(folder: Path) -> tuple[str, dict[str, Table], tuple[()], tuple[tuple[str, str], ...], tuple[str, ...]]:
    """Title, tables, no plots, facts, notes. Raises `DocumentError`."""
    file = folder / NAME
    try:
        summary = json.loads(file.read_bytes())
        tables = {"overall": _table("All pages", "verifier", ((n, s) for n, s in summary["sides"].items()))}
        for group, values in summary.get("groups", {}).items():
            rows = ((f"{v} ({n})", s) for v, found in values.items() for n, s in found["sides"].items())
            tables[f"by_{group}"] = _table(f"By {group}", group, rows)
        if shares := _shares(summary.get("by_prefill_share", {})):
            tables["by_prefill_share"] = shares
        tables |= _drafts(summary)
        facts = tuple((k, str(summary[k])) for k in _FACTS if summary.get(k) is not None)
        facts += tuple((k, str(v)) for part in ("versions", "machine") for k, v in summary.get(part, {}).items())
        notes = (*summary.get("notes", ()), *(str(e["error"]) for e in summary.get("errors", ())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise DocumentError(f"{file}: no summary of `hsdkit eval`: {type(e).__name__}: {e}") from None
    return folder.name, tables, (), facts, notes


def _shares(sides: Mapping[str, Any]) -> Table | None:
    """The paper's Table A1; None without a baseline."""
    found = [(name, row) for name, rows in sides.items() for row in rows]
    cells = tuple(
        (name, f"{row['from']:.0%} to {row['to']:.0%}", str(row["pages"]), _text(row["e2e"]), _text(row["decode"]))
        for name, row in found
    )
    header = ("verifier", "prefill", "pages", "SR e2e", "SR decode")
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
    cells = tuple((name, *(_text(f.get(c)) for c in columns)) for name, f in found)
    return Table(title, (head, *columns), cells, "", tuple({head: name, **f} for name, f in found))


def _figures(side: Mapping[str, Any]) -> dict[str, Any]:
    """Quality first; figures with a slash in their name are for the CSV of single tests, too many for a table."""
    out = {k: v for k, v in (side.get("quality") or {}).items() if "/" not in k}
    for part, names in _COST.items():
        for name in names:
            if (value := (side.get(part) or {}).get(name)) is not None:
                out[f"SR {name}" if part == "speedup" else name] = value
    return out


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (int, float)) else "-" if value is None else str(value)
