"""The last lines of a run: what was parsed, how fast, where the time went, where the files are, what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from hsdkit.cli.console import count, plain
from hsdkit.jobs import Progress
from hsdkit.pipeline import Pipeline
from hsdkit.policy import cut_line, saved_line
from hsdkit.protocols import is_exact

_MOST_FILES = 6
#: How many failures are named on the screen.
MOST_FAILURES = 20


@dataclass(slots=True)
class Outcome:
    """What a run has come to. `failures` are the first of the `failed`, all of which (except inputs that name nothing)
    are in the file `list_of_failures`; `written` the first of the files written; `interrupted` the signal that ended
    the run, 0 for none."""

    folder: Path
    progress: Progress = field(default_factory=Progress)
    written: list[Path] = field(default_factory=list)
    files: int = 0
    failures: list[str] = field(default_factory=list)
    failed: int = 0
    list_of_failures: Path | None = None
    interrupted: int = 0

    def add_written(self, paths: Sequence[Path]) -> None:
        self.files += len(paths)
        self.written += [p for p in paths if p not in self.written][: _MOST_FILES - len(self.written)]

    @property
    def exit_code(self) -> int:
        return 128 + self.interrupted if self.interrupted else int(self.failed > 0)


def print_summary(out: Console, pipeline: Pipeline, outcome: Outcome) -> None:
    for line in summary_lines(pipeline, outcome):
        out.print(line, soft_wrap=True)


def summary_lines(pipeline: Pipeline, outcome: Outcome) -> list[str]:
    """The summary with rich markup, a line an entry."""
    progress, totals = outcome.progress, outcome.progress.totals
    lines = [
        f"[bold]{_documents(outcome)}, {count(totals.pages, 'page')}[/]"
        + (f", [bold red]{count(outcome.failed, 'failure')}[/]" if outcome.failed else "")
        + (", [bold red]interrupted[/]: the same command goes on from here" if outcome.interrupted else "")
    ]
    if progress.kept:
        kept = f"{count(progress.kept, 'page')} kept from before in {outcome.folder}/"
        lines.append(plain(kept) + ("" if totals.pages or progress.elsewhere else ": nothing was left to do"))
    if progress.elsewhere:
        lines.append(f"{count(progress.elsewhere, 'page')} parsed by other processes meanwhile")
    if totals.pages:
        lines.append(f"{count(totals.page_tokens, 'token')} written in {totals.wall:.1f} s, {_exactness(pipeline)}")
    if totals.steps:
        both = " of both stages" if totals.tokens > totals.page_tokens else ""
        lines.append(
            f"{count(totals.steps, 'verification step')}{both}, {totals.tokens_per_step:.2f} tokens a step, "
            f"AAL {totals.aal:.2f}"
        )
    spent = {phase.replace("_", " "): s for phase, s in totals.seconds.items() if s >= 0.05}
    if spent:
        lines.append("seconds: " + ", ".join(f"{phase} {s:.1f}" for phase, s in spent.items()))
    lines += [f"[yellow]{said}[/]" for said in (saved_line(totals.saved), cut_line(totals.finish_reasons)) if said]
    shown, more = outcome.written, outcome.files - len(outcome.written)
    if shown:
        lines.append("written: " + plain(", ".join(map(str, shown))) + (f", and {more} more" if more > 0 else ""))
    if progress.documents > 1 or progress.done > 1:  # else the failure was the line above
        lines += [f"[red]failed:[/] {plain(reason)}" for reason in outcome.failures]
    if outcome.list_of_failures and outcome.failed > len(outcome.failures):
        left = outcome.failed - len(outcome.failures)
        lines.append(plain(f"and {count(left, 'failure')} more: all are in {outcome.list_of_failures}"))
    return lines


def _documents(outcome: Outcome) -> str:
    """`3 of 7 documents` where the run did not come to all of them."""
    documents, closed = outcome.progress.documents, outcome.progress.closed
    return f"{closed} of {count(documents, 'document')}" if closed < documents else count(documents, "document")


def _exactness(pipeline: Pipeline) -> str:
    config, verifier = pipeline.config, pipeline.verifier
    tau = verifier.settings.tau
    if is_exact(verifier):
        how = "exact (tau=1)"
    else:
        how = "not what plain decoding writes" if tau == 1 else f"near-lossless (tau={tau:g})"
    drafter = config.drafter.name if verifier.uses_draft else "none"
    return f"{how}: verifier {config.verifier.name}, drafter {drafter}, target {config.target.name}"
