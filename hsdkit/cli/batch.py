"""Running a pipeline over many documents: every failure is kept with its document, everything else is still written."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from hsdkit.cli import console
from hsdkit.cli.display import Display, choose_display
from hsdkit.cli.summary import print_summary
from hsdkit.config import RunConfig
from hsdkit.documents import Document, Page, find_inputs
from hsdkit.errors import DocumentError
from hsdkit.pipeline import Pipeline
from hsdkit.results import PageResult
from hsdkit.totals import Totals
from hsdkit.writing import DocumentWriter, make_folder, result_names

log = logging.getLogger(__name__)

OK, FAILED, INTERRUPTED = 0, 1, 130


@dataclass(slots=True)
class Outcome:
    """What a run has come to so far."""

    documents: int = 0
    totals: Totals = field(default_factory=Totals)
    written: list[Path] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        return INTERRUPTED if self.interrupted else FAILED if self.failures else OK


def run_batch(config: RunConfig, *, stream: bool, report: bool, quiet: bool) -> int:
    """Parse all inputs; returns the exit code. Raises `HsdkitError` when nothing can be parsed at all."""
    outcome = Outcome()
    paths = _find(config.input, outcome)
    display = choose_display(stream=stream, quiet=quiet)
    pipeline = Pipeline(config)
    batch = Batch(pipeline, display, outcome, report)
    try:
        if paths:
            make_folder(Path(config.output))
            display.status(f"loading {config.target.name}")
            pipeline.load()
        for path, name in zip(paths, result_names(paths), strict=True):
            batch.document(path, name)
    except KeyboardInterrupt:
        outcome.interrupted = True
    finally:
        display.close()
    if not quiet:
        print_summary(console.console(), pipeline, outcome)
    return outcome.exit_code


def _find(inputs: tuple[str, ...], outcome: Outcome) -> list[Path]:
    """The files of all inputs; an input that names nothing is a failure of its own."""
    found: dict[Path, None] = {}
    for given in inputs:
        try:
            found.update(dict.fromkeys(find_inputs([given])))
        except DocumentError as e:
            outcome.failures.append(str(e))
            console.error(str(e))
    if not inputs:
        find_inputs([])  # raises, saying what an input may be
    return list(found)


@dataclass(slots=True)
class Batch:
    """The documents of one run, parsed and written one after the other."""

    pipeline: Pipeline
    display: Display
    outcome: Outcome
    report: bool

    def document(self, path: Path, name: str) -> None:
        """Parse one document and write what came of it, in whatever way it ends."""
        config, folder = self.pipeline.config, Path(self.pipeline.config.output)
        writer = DocumentWriter(folder, name, str(path), config.settings(), save_drafts=config.save_drafts)
        writer.versions = self.pipeline.versions()
        self.outcome.documents += 1
        try:
            with self.pipeline.open(path) as document:
                self._pages(document, name, writer)
        except DocumentError as e:
            log.debug("%s cannot be opened", path, exc_info=True)
            writer.error = str(e)
            self._fail(str(e))
        except KeyboardInterrupt:
            writer.error = f"interrupted after {console.count(writer.totals.pages, 'page')}"
            raise
        finally:
            self.outcome.written += writer.finish()
            self.outcome.totals += writer.totals

    def _pages(self, document: Document, name: str, writer: DocumentWriter) -> None:
        with ExitStack() as stack:
            html = None
            if self.report:
                from hsdkit.report import ReportWriter

                path = writer.folder / f"{name}.html"
                html = stack.enter_context(ReportWriter(path, writer.source, writer.settings, writer.versions))
                self.outcome.written.append(path)

            def on_page(page: Page | None, result: PageResult) -> None:
                if html:
                    html.add(result, page.image if page else None)

            self.display.begin(document.name, len(document))
            for result in self.pipeline.run(document, on_page=on_page, on_text=self.display.on_text):
                writer.add(result)
                self.display.page(result)
                if result.error:
                    self._fail(result.error, shown=True)
            self.display.end()

    def _fail(self, reason: str, shown: bool = False) -> None:
        self.outcome.failures.append(reason)
        if not shown:
            self.display.failure(reason)
