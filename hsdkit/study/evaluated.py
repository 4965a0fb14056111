"""Folders of `hsdkit eval` as tables: quality and cost of each side, over all pages and by group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hsdkit.errors import DocumentError
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
        facts = tuple((k, str(summary[k])) for k in _FACTS if summary.get(k) is not None)
        facts += tuple((k, str(v)) for part in ("versions", "machine") for k, v in summary.get(part, {}).items())
        notes = (*summary.get("notes", ()), *(str(e["error"]) for e in summary.get("errors", ())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise DocumentError(f"{file}: no summary of `hsdkit eval`: {type(e).__name__}: {e}") from None
    return folder.name, tables, (), facts, notes


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
