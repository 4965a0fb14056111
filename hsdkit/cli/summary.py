"""The last lines of a run: what was parsed, how fast, where the time went, where the files are, what failed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from hsdkit.cli.console import count, plain
from hsdkit.pipeline import Pipeline
from hsdkit.policy import saved_line
from hsdkit.protocols import is_exact
from hsdkit.totals import Totals

_MOST_FILES = 6


@dataclass(slots=True)
class Outcome:
    """What a run has come to so far; `interrupted` is the signal that ended it, 0 for none."""

    documents: int = 0
    totals: Totals = field(default_factory=Totals)
    written: list[Path] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    interrupted: int = 0

    @property
    def exit_code(self) -> int:
        """0 when the model has read every page. A page with the drafter's text is there, but was not read: were that a
        0, a run whose model fails on every page would look like one that went well."""
        unread = bool(self.failures) or self.totals.saved["draft"] > 0
        return 128 + self.interrupted if self.interrupted else int(unread)


def print_summary(out: Console, pipeline: Pipeline, outcome: Outcome) -> None:
    for line in summary_lines(pipeline, outcome):
        out.print(line, soft_wrap=True)


def summary_lines(pipeline: Pipeline, outcome: Outcome) -> list[str]:
    """The summary with rich markup, a line an entry."""
    totals = outcome.totals
    lines = [
        f"[bold]{count(outcome.documents, 'document')}, {count(totals.pages, 'page')}[/]"
        + (f", [bold red]{count(len(outcome.failures), 'failure')}[/]" if outcome.failures else "")
        + (", [bold red]interrupted[/]" if outcome.interrupted else "")
    ]
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
    if saved := saved_line(totals.saved):
        lines.append(f"[yellow]{saved}[/]")
    shown, more = outcome.written[:_MOST_FILES], len(outcome.written) - _MOST_FILES
    if shown:
        lines.append("written: " + plain(", ".join(map(str, shown))) + (f", and {more} more" if more > 0 else ""))
    if outcome.documents > 1 or totals.pages > 1:  # else the failure was the line above
        lines += [f"[red]failed:[/] {plain(reason)}" for reason in outcome.failures]
    return lines


def _exactness(pipeline: Pipeline) -> str:
    config, verifier = pipeline.config, pipeline.verifier
    tau = verifier.settings.tau
    if is_exact(verifier):
        how = "exact (tau=1)"
    else:
        how = "not what plain decoding writes" if tau == 1 else f"near-lossless (tau={tau:g})"
    drafter = config.drafter.name if verifier.uses_draft else "none"
    return f"{how}: verifier {config.verifier.name}, drafter {drafter}, target {config.target.name}"
