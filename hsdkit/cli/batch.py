"""Running a pipeline over many documents: every failure is kept with its document, everything else is still written."""

from __future__ import annotations

import logging
import signal
from dataclasses import dataclass, fields
from pathlib import Path

from hsdkit.cli import console
from hsdkit.cli.display import Display, choose_display
from hsdkit.cli.interrupts import Interrupts
from hsdkit.cli.report_file import Report
from hsdkit.cli.summary import Outcome, print_summary
from hsdkit.components import KINDS
from hsdkit.config import RunConfig, RunOptions
from hsdkit.documents import NO_INPUT, Document, Page, find_inputs
from hsdkit.errors import ConfigError, DocumentError, HsdkitError
from hsdkit.files import file_digest, make_folder
from hsdkit.pipeline import Pipeline
from hsdkit.results import PageResult
from hsdkit.versions import versions
from hsdkit.writing import DocumentWriter, result_names

log = logging.getLogger(__name__)


def run_batch(config: RunConfig, *, stream: bool, report: bool, quiet: bool) -> int:
    """Parse all inputs; returns the exit code. Raises `HsdkitError` when nothing can be parsed at all."""
    outcome = Outcome()
    paths = find_all(config.input, outcome.failures)
    display = choose_display(stream=stream, quiet=quiet)
    pipeline = Pipeline(config)
    interrupts = Interrupts()
    batch = Batch(pipeline, display, outcome, report, interrupts)
    try:
        with interrupts:
            if paths:
                make_folder(Path(config.output))
            for path, name in zip(paths, result_names(paths), strict=True):
                interrupts.check()
                batch.document(path, name)
    except KeyboardInterrupt:
        outcome.interrupted = interrupts.received or signal.SIGINT
    finally:
        display.close()
    if not quiet:
        print_summary(console.console(), pipeline, outcome)
    return outcome.exit_code


def find_all(inputs: tuple[str, ...], failures: list[str]) -> list[Path]:
    """The files of all inputs; an input that names nothing is a failure of its own, told at once."""
    found: dict[Path, None] = {}
    for given in inputs:
        try:
            found.update(dict.fromkeys(find_inputs([given])))
        except (DocumentError, OSError, ValueError) as e:
            reason = str(e) if isinstance(e, DocumentError) else f"{given!r:.80}: {e.args[-1]}"
            failures.append(reason)
            console.error(reason + (OPTION_HINT if _meant_as_option(given) else ""))
    if not inputs:
        raise ConfigError(NO_INPUT)
    return list(found)


#: Added to what is said of an input that is no file: `output = parsed`, `drafter pdftext`, `Output=parsed`.
OPTION_HINT = " (if an option was meant: KEY=VALUE, in small letters, without spaces)"


def _meant_as_option(given: str) -> bool:
    return "=" in given or given.partition(".")[0].lower() in {*KINDS, *(f.name for f in fields(RunOptions))}


@dataclass(slots=True)
class Batch:
    """The documents of one run, parsed and written one after the other."""

    pipeline: Pipeline
    display: Display
    outcome: Outcome
    report: bool
    interrupts: Interrupts
    loaded: bool = False

    def document(self, path: Path, name: str) -> None:
        """Parse one document and write what came of it, in whatever way it ends."""
        self._load_for(path)
        config, folder = self.pipeline.config, Path(self.pipeline.config.output)
        writer = DocumentWriter(folder, name, str(path), config.settings(), save_drafts=config.save_drafts)
        writer.versions = self.pipeline.versions() if self.loaded else versions(None)
        writer.versions["input_sha256"] = file_digest(path)
        self.outcome.documents += 1
        report = self._report(writer) if self.report else None
        try:
            with self.pipeline.open(path) as document:
                self._pages(document, writer, report)
        except HsdkitError as e:
            writer.error = str(e)
            if not isinstance(e, DocumentError):
                raise  # it would fail every document alike
            log.debug("%s cannot be opened", path, exc_info=True)
            self._fail(str(e))
        except KeyboardInterrupt:
            writer.error = f"interrupted after {console.count(writer.totals.pages, 'page')}"
            raise
        finally:
            self.outcome.written += writer.finish()
            self.outcome.totals += writer.totals
            if report:
                report.close(writer.error)
                self.outcome.written.append(report.path)

    def _load_for(self, path: Path) -> None:
        """Load the model, once there is a document that can be opened."""
        if self.loaded:
            return
        try:
            self.pipeline.open(path).close()
        except DocumentError:  # told when the document's turn has come
            return
        self.display.status(f"loading {self.pipeline.config.target.name}")
        self.pipeline.load()
        self.loaded = True

    def _pages(self, document: Document, writer: DocumentWriter, report: Report | None) -> None:
        def on_page(page: Page | None, result: PageResult) -> None:
            if report:
                report.add(result, page.image if page else None)

        def on_text(index: int, text: str) -> None:
            self.interrupts.check()
            self.display.on_text(index, text)

        self.display.begin(document.name, len(document))
        for result in self.pipeline.run(document, on_page=on_page, on_text=on_text):
            if result.error:  # of a swallowed interrupt
                self.interrupts.check()
            writer.add(result)
            self.display.page(result)
            if result.error:
                self._fail(result.error, shown=True)
            self.interrupts.check()

    def _report(self, writer: DocumentWriter) -> Report:
        return Report(
            writer.folder / f"{writer.name}.html", writer.source, writer.settings, writer.versions, self._fail
        )

    def _fail(self, reason: str, shown: bool = False) -> None:
        self.outcome.failures.append(reason)
        if not shown:
            self.display.failure(reason)
