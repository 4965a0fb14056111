"""What an evaluation prints and writes: progress, tables, summary.json, predictions for the official evaluator."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from hsdkit.benchmarks import Benchmark, Item
from hsdkit.cli import console
from hsdkit.cli.display import page_line
from hsdkit.errors import OutputError
from hsdkit.evaluation import tables
from hsdkit.evaluation.record import Record
from hsdkit.files import make_folder, write_whole
from hsdkit.results_json import dumps
from hsdkit.versions import machine, versions

PREDICTIONS = "predictions"


class Progress:
    """One line a page on stderr; failures are told even when quiet."""

    def __init__(self, quiet: bool) -> None:
        self._out, self._quiet = console.console(), quiet
        self._start, self._done = time.perf_counter(), 0

    def record(self, record: Record, done: int, pages: int) -> None:
        self._done += 1
        left = (time.perf_counter() - self._start) / self._done * (pages - done)
        for name, side in record.sides.items():
            if side.error:
                self._out.print(f"[bold red]failed:[/] {console.plain(f'{name}: {side.error}')}", soft_wrap=True)
            elif not self._quiet:
                line = f"{done}/{pages} {record.key}: {name}: {page_line(side.page)}"
                self._out.print(console.plain(line), soft_wrap=True)
        if not self._quiet and left >= 1:
            self._out.print(f"[dim]about {left:.0f} s left[/]")


def print_summary(benchmark: Benchmark, summary: Mapping[str, Any], wanted: int) -> None:
    """The tables on stdout, as Markdown; notes on stderr."""
    done = console.count(summary["pages"], "page")
    of = f" of {wanted}" if summary["pages"] < wanted else ""
    failed = f", {summary['failed']} failed and counted as empty" if summary["failed"] else ""
    parts = [f"{benchmark.name} {benchmark.edition}: {done}{of}{failed}"]
    if summary["sides"]:
        made = (tables.overall, tables.times, tables.by_prefill_share, tables.drafts_by_label)
        parts += [table(dict(summary)) for table in made]
    # Groups of all pages tell nothing apart.
    groups = [g for g, found in summary["groups"].items() if any(v["pages"] < summary["pages"] for v in found.values())]
    parts += [tables.by_group(dict(summary), group) for group in groups]
    # The document type, or what a benchmark has in its place; summary.json has them all.
    parts += [tables.drafts_by_group(dict(summary), group) for group in groups[:1]]
    parts = [part for part in parts if part]
    try:
        typer.echo("\n\n".join(parts))
    except UnicodeEncodeError:  # a terminal that cannot show a group's name
        sys.stdout.buffer.write(("\n\n".join(parts) + "\n").encode("utf-8"))
    for name, side in summary["sides"].items():
        if fair := side["speedup"]:
            same = f"{name}: the same text as {summary['baseline']} on {fair['same_text']} of {fair['pages']} pages"
            console.console().print(console.plain(same), soft_wrap=True)
    for note in summary["notes"]:
        console.warn(note)


def _summary(folder: Path) -> dict[str, Any]:
    """The summary that is there, if it is one."""
    try:
        found = json.loads((folder / "summary.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_outputs(
    folder: Path,
    benchmark: Benchmark,
    items: Sequence[Item],
    records: Sequence[Record],
    settings: Mapping[str, Any],
    summary: Mapping[str, Any],
    made_with: Mapping[str, str] | None,
    inputs: Mapping[str, str],
) -> list[Path]:
    """summary.json, and for each side a folder of predictions; returns what was written. `made_with` is None where no
    page was run this time: what is known from before stands. `inputs` are digests of the documents by path."""
    before = _summary(folder) if made_with is None else {}
    whole = dict(summary) | {
        "edition": benchmark.edition,
        "settings": settings,
        "versions": made_with or before.get("versions") or versions(None),
        "machine": before.get("machine") or machine(),
        "inputs": before.get("inputs") or dict(inputs),
    }
    written = [write_whole(folder / "summary.json", [dumps(whole) + "\n"])]
    by_key = {item.key: item for item in items}
    for name in records[0].sides if records else ():
        pages = ((by_key[r.key], "" if r.sides[name].page.error else r.sides[name].page.markdown) for r in records)
        root = folder / PREDICTIONS / name
        for relative, content in benchmark.predictions(pages):
            path = root / relative
            if not path.resolve().is_relative_to(root.resolve()):
                raise OutputError(f"{path}: the benchmark names a file outside of the output folder")
            make_folder(path.parent)
            write_whole(path, [content])
        written.append(root)
    return written
