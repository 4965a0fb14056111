"""`hsdkit compare`: what changed between two runs, and whether it made more difference than noise does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsdkit.cli import console
from hsdkit.cli.console import plain
from hsdkit.errors import DocumentError

if TYPE_CHECKING:
    from hsdkit.study.compare import Change, Comparison
    from hsdkit.study.runs import PageKey, Run

_MOST_SHOWN = 5


def compare(
    before: Annotated[
        Path, typer.Argument(metavar="A", help="NAME.json, bench.json, or a folder of run, bench, sweep or eval.")
    ],
    after: Annotated[Path, typer.Argument(metavar="B", help="The same kind of thing.")],
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    """Say what changed between two runs: settings, versions, documents, speed, text.

    Pages are paired; a difference is more than noise where its 95% bootstrap
    interval over pages (and rounds) leaves out "no difference". Of two sweeps,
    cells of the same values are compared, of two benches their sides.

      hsdkit compare out-before out-after
      hsdkit compare a/report.json b/report.json
      hsdkit compare before/bench.json after/bench.json
      hsdkit compare out/fig4/cells/KEY1.json out/fig4/cells/KEY2.json
    """
    from hsdkit.study.compare import compare as compared
    from hsdkit.study.runs import load_runs

    console.set_up(debug)
    out = console.console(sys.stdout)
    for label, a, b in paired(load_runs(before), load_runs(after), before, after):
        if label:
            out.print(f"[bold]{plain(label)}[/]")
        for line in lines(compared(a, b, seed)):
            out.print(line, soft_wrap=True)


def paired(a: dict[str, Run], b: dict[str, Run], before: Path, after: Path) -> list[tuple[str, Run, Run]]:
    """What to compare with what. Raises `DocumentError` when nothing pairs up."""
    if len(a) == len(b) == 1:
        return [("", *a.values(), *b.values())]  # type: ignore[list-item]
    labels = [label for label in a if label in b]
    if not labels:
        raise DocumentError(f"{before} and {after}: nothing in them has the same name")
    return [(label, a[label], b[label]) for label in labels]


def lines(found: Comparison) -> list[str]:
    """The comparison in rich markup, a line an entry."""
    said = []
    unchanged = {True: "the same", False: "paired by name, their content is not on record", None: "none in common"}
    for name, changed, none in (
        ("settings", found.settings, "the same"),
        ("versions", found.versions, "the same"),
        ("documents", found.inputs, unchanged[found.known]),
    ):
        said.append(f"{name}: " + ("; ".join(map(_change, changed)) or none))
    said.append(f"{console.count(found.pages, 'page')} compared" + _only(found.only_before, found.only_after))
    if not found.pages:
        return said
    if not found.graded:
        said.append("figures of the benchmarks: not compared, they are of another benchmark or edition")
    for f in found.figures:
        i = f.interval
        spread = f" ({i.low:.3f} to {i.high:.3f})" if i.low != i.high else ""
        verdict = "[bold]more than noise[/]" if f.differs else "within noise"
        if i.low == i.high == f.neutral:
            verdict = "no difference"
        elif i.low == i.high:
            verdict = "nothing to tell noise by" if found.pages == 1 else verdict
        said.append(f"{f.name}: {i.value:.3f}{spread}: {verdict}")
    if found.texts:
        said.append(f"text: the same on {found.same_text} of {console.count(found.texts, 'page')}")
    else:
        said.append("text: not on record (`hsdkit bench` compares the texts of its own sides)")
    for (document, page), distance in found.differing[:_MOST_SHOWN]:
        said.append(f"  {plain(document)}, page {page}: edit distance {distance:.4f}")
    if len(found.differing) > _MOST_SHOWN:
        said.append(f"  and {len(found.differing) - _MOST_SHOWN} more")
    if found.pages < _few():
        said.append(f"[yellow]note:[/] with {console.count(found.pages, 'page')} intervals are too narrow for others")
    return said


def _few() -> int:
    from hsdkit.study.compare import FEW_PAGES

    return FEW_PAGES


def _change(change: Change) -> str:
    return plain(f"{change.what} {change.before!r} -> {change.after!r}")


def _only(before: Sequence[PageKey], after: Sequence[PageKey]) -> str:
    parts = [f"{len(keys)} only in {name}" for name, keys in (("A", before), ("B", after)) if keys]
    return f", {', '.join(parts)}" if parts else ""
