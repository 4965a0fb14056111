"""`hsdkit draft`: what a drafter says of a document's pages, as a table or a file; no model is loaded."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hsdkit.cli import console
from hsdkit.cli.console import plain
from hsdkit.results import PageResult

if TYPE_CHECKING:
    from hsdkit.documents import Document, Page
    from hsdkit.pipeline import Pipeline
    from hsdkit.regions import Draft, Region

#: Characters of a region's text that the table shows.
_SHOWN = 60


def draft(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE|FILE", show_default=False, help="Options and documents, as for `hsdkit run`."
        ),
    ] = None,
    save: Annotated[bool, typer.Option("--save", help="Write NAME.drafts.json, which drafter=replay reads.")] = False,
    report: Annotated[
        bool, typer.Option("--report", help="Write NAME.html: each page with the boxes of its draft.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no tables.")] = False,
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    """Draft documents without decoding them: show each page's regions in reading order, and save them.

    [bold]Examples[/]

      hsdkit draft report.pdf pages=1
      hsdkit draft report.pdf drafter=docling --save   [dim]out/report.drafts.json[/]
      hsdkit run report.pdf drafter=replay drafter.path=out/report.drafts.json

    Exit code 1 if a page could not be drafted.
    """
    from hsdkit.cli.inputs import find_all
    from hsdkit.cli.interrupts import Interrupts
    from hsdkit.cli.run import split_arguments
    from hsdkit.config import compose
    from hsdkit.files import make_folder
    from hsdkit.pipeline import Pipeline
    from hsdkit.writing import result_names

    console.set_up(debug)
    overrides, inputs = split_arguments(arguments or [])
    config = compose(overrides, inputs=inputs)
    for note in config.notes:
        console.warn(note)
    failures: list[str] = []
    paths = find_all(config.input, failures)
    if save or report:
        make_folder(Path(config.output))
    interrupts = Interrupts()
    drafts = Drafts(Pipeline(config), save, report, quiet, failures, interrupts.check)
    try:
        with interrupts:
            drafts.load()
            for path, name in zip(paths, result_names(paths), strict=True):
                drafts.document(path, name)
    except KeyboardInterrupt:
        raise typer.Exit(128 + (interrupts.received or signal.SIGINT)) from None
    finally:
        drafts.close()
    raise typer.Exit(1 if failures else 0)


@dataclass(slots=True)
class Drafts:
    """The documents of one command, drafted one after the other; a failure is kept and costs nothing else. `check`
    raises KeyboardInterrupt once the user wants no more."""

    pipeline: Pipeline
    save: bool
    report: bool
    quiet: bool
    failures: list[str]
    check: Callable[[], None]

    def load(self) -> None:
        """Raises `PluginError` when the drafter can draft nothing at all."""
        if load := getattr(self.pipeline.drafter, "load", None):
            load()

    def close(self) -> None:
        """End the drafter's worker, if one was built."""
        drafter = vars(self.pipeline).get("drafter")
        if close := getattr(drafter, "close", None):
            close()

    def document(self, path: Path, name: str) -> None:
        from hsdkit.draft_files import SUFFIX, SavedDraft, save_drafts
        from hsdkit.errors import DocumentError
        from hsdkit.report import GuardedReport

        folder = Path(self.pipeline.config.output)
        settings = self.pipeline.config.settings()
        report = GuardedReport(folder / f"{name}.html", str(path), settings, {}, self._fail) if self.report else None
        saved: list[SavedDraft] = []
        error: str | None = None
        try:
            with self.pipeline.open(path) as document:
                for number in document.numbers:
                    if (page := self._page(document, number)) is None:
                        continue
                    draft, notes = self._drafted(page)
                    self.check()  # what was interrupted may have made an empty draft of it
                    saved.append(SavedDraft(page.source, number, page.width, page.height, draft))
                    if report:
                        report.add(_result(page, draft, notes), page.image)
        except DocumentError as e:
            error = str(e)
            self._fail(error)
        finally:  # after Ctrl-C, too: what has been drafted is kept
            if self.save and saved:
                file = folder / f"{name}{SUFFIX}"
                save_drafts(file, saved)
                typer.echo(f"{file}: {console.count(len(saved), 'draft')}; drafter=replay drafter.path={file}")
            if report:
                report.close(error)
                typer.echo(str(report.path))

    def _page(self, document: Document, number: int) -> Page | None:
        from hsdkit.errors import DocumentError

        try:
            return document.page(number)
        except DocumentError as e:
            self._fail(str(e))
            return None

    def _drafted(self, page: Page) -> tuple[Draft, tuple[str, ...]]:
        from hsdkit.drafting import safe_draft

        draft, notes = safe_draft(self.pipeline.drafter, page)
        head = f"{page.source}, page {page.number}"
        if not self.quiet:
            out = console.console(sys.stdout)
            readable = f"{len(draft.readable)} to read" if len(draft.readable) < len(draft.regions) else ""
            said = ", ".join(filter(None, (console.count(len(draft.regions), "region"), readable)))
            title = f"{head}: {said}, by {draft.drafter} in {draft.seconds:.2f} s"
            out.print(f"[bold]{plain(title)}[/]", soft_wrap=True)
            for note in draft.notes:
                out.print(f"[dim]{plain(note)}[/]", soft_wrap=True)
            if draft.regions:
                out.print(table(draft.regions))
        for note in notes:
            console.warn(note if note.startswith(head) else f"{head}: {note}")
        if notes and not draft.regions:
            self.failures.append(f"{head}: {notes[0]}")
        return draft, notes

    def _fail(self, reason: str) -> None:
        self.failures.append(reason)
        console.error(reason)


def _result(page: Page, draft: Draft, notes: tuple[str, ...]) -> PageResult:
    """A page that has been drafted and not decoded, as the report takes it."""
    said = (*page.notes, *notes, "drafted only: no model has read this page")
    return PageResult(page.number, width=page.width, height=page.height, draft=draft, seconds=draft.seconds, notes=said)


def table(regions: Sequence[Region]) -> Table:
    """Regions in reading order; those the model does not write down are dim."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("#", justify="right")
    shown.add_column("label", no_wrap=True)
    shown.add_column("box", justify="right", no_wrap=True)
    shown.add_column("text", overflow="ellipsis", no_wrap=True)
    for number, region in enumerate(regions, 1):
        b = region.box
        label = f"{region.label.value} {region.level or ''}".strip()
        label += f" ({region.format})" if region.format != "text" else ""
        box = " ".join(f"{v:.0f}" for v in (b.x0, b.y0, b.x1, b.y1))
        text = region.text[:_SHOWN] + ("..." if len(region.text) > _SHOWN else "")
        shown.add_row(str(number), label, box, plain(text), style=None if region.readable else "dim")
    return shown
