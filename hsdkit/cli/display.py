"""Progress while a run goes on: a bar on a terminal, a line a page elsewhere, or only what went wrong."""

from __future__ import annotations

import re
import sys
import time
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Progressing

from hsdkit.cli.console import console, count, duration, plain
from hsdkit.jobs import Progress
from hsdkit.policy import DONE
from hsdkit.results import PageResult
from hsdkit.totals import Totals


class Display(Protocol):
    def status(self, text: str) -> None: ...

    def on_text(self, text: str) -> None: ...

    def moved(self, progress: Progress) -> None:
        """Documents were opened or finished."""

    def page(self, name: str, result: PageResult, progress: Progress) -> None:
        """A page of the file `name` is finished; `progress` counts it already."""

    def failure(self, reason: str) -> None: ...

    def close(self) -> None: ...


def choose_display(*, stream: bool, quiet: bool) -> Display:
    """With `stream` the text goes to stdout; a bar would tear it, so progress is then by lines."""
    stderr = console()
    if stderr.is_terminal and not quiet and not stream:
        return BarDisplay(stderr)
    return LineDisplay(stderr, stream=stream, quiet=quiet)


class LineDisplay:
    """One line a finished page, and below it its notes: of those that differ in numbers only, the first of the run."""

    def __init__(self, out: Console, *, stream: bool = False, quiet: bool = False) -> None:
        self.out, self._stream, self._quiet = out, stream, quiet
        self._said: set[str] = set()
        self._start: float | None = None

    def status(self, text: str) -> None:
        pass

    def moved(self, progress: Progress) -> None:
        pass

    def on_text(self, text: str) -> None:
        if not self._stream:
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as e:  # whoever read along has gone, or the disk is full; the run goes on
            self._stream = False
            if not isinstance(e, BrokenPipeError):
                self.say(f"  note: the text cannot be written to stdout any more: {e.strerror}")

    def page(self, name: str, result: PageResult, progress: Progress) -> None:
        if self._start is None:  # loading the model says nothing of the pages to come
            self._start = time.perf_counter() - result.seconds
        if self._stream:
            self.on_text("\n\n")
        if result.error:
            self.failure(result.error)
        elif not self._quiet:
            self.finished(name, result, progress)
        for note in dict.fromkeys((*result.draft.notes, *result.notes)):
            kind = re.sub(r"[\d.,]+", "", note)
            if kind not in self._said and not self._quiet:
                self._said.add(kind)
                self.say(f"  note: {note}")

    def finished(self, name: str, result: PageResult, progress: Progress) -> None:
        left = self._seconds_left(progress)
        of = "" if progress.documents < 2 else f", {pages_of(progress)}{self._speed(progress)}"
        remaining = f", about {duration(left)} left" if left >= 1 else ""
        self.say(f"{name}, page {result.number}: {page_line(result)}{of}{remaining}")

    def _seconds_left(self, progress: Progress) -> float:
        parsed = progress.totals.pages
        return self._seconds() / parsed * (progress.expected - progress.done) if parsed else 0.0

    def _speed(self, progress: Progress) -> str:
        seconds = self._seconds()
        return f", {progress.totals.pages / seconds:.2g} pages/s" if seconds > 0 else ""

    def _seconds(self) -> float:
        return 0.0 if self._start is None else time.perf_counter() - self._start

    def failure(self, reason: str) -> None:
        self.out.print(f"[bold red]failed:[/] {plain(reason)}", soft_wrap=True)

    def say(self, text: str) -> None:
        self.out.print(plain(text), soft_wrap=True)

    def close(self) -> None:
        pass


class BarDisplay(LineDisplay):
    """A bar over all pages with tokens per step, pages/s, failures, time left and what is being written; failures and
    notes scroll above it."""

    def __init__(self, out: Console) -> None:
        super().__init__(out)
        self._bar = Progressing(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[of]}"),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[left]}"),
            TextColumn("[dim]{task.fields[writing]}"),
            console=out,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, of="", speed="", left="", writing="", visible=False)
        self._characters, self._loading = 0, False
        self._bar.start()

    def status(self, text: str) -> None:
        self._loading = True
        self._bar.update(self._task, description=plain(text), visible=True)

    def on_text(self, text: str) -> None:
        self._characters += len(text)
        self._bar.update(self._task, writing=count(self._characters, "character"))

    def moved(self, progress: Progress) -> None:
        if not self._loading:
            self._show(f"{progress.closed} of {count(progress.documents, 'document')}", progress)

    def page(self, name: str, result: PageResult, progress: Progress) -> None:
        super().page(name, result, progress)
        self._characters, self._loading = 0, False
        several = progress.documents > 1
        self._show(f"{progress.closed} of {progress.documents} documents" if several else name, progress)

    def _show(self, description: str, progress: Progress) -> None:
        totals, left = progress.totals, self._seconds_left(progress)
        speed = f"{totals.tokens_per_step:.1f} tokens/step{self._speed(progress)}" if totals.pages else ""
        failed = f", [red]{totals.failed} failed[/]" if totals.failed else ""
        self._bar.update(
            self._task,
            description=plain(description),
            visible=True,
            completed=progress.done,
            total=progress.expected,
            of=pages_of(progress) + failed,
            speed=speed,
            left=f"{duration(left)} left" if left >= 1 else "",
            writing="",
        )

    def finished(self, name: str, result: PageResult, progress: Progress) -> None:
        pass  # the bar has moved

    def close(self) -> None:
        self._bar.stop()


def pages_of(progress: Progress) -> str:
    """`12 of 340 pages`, with `about` while documents are unopened."""
    about = "about " * (progress.planned < progress.documents and progress.expected > progress.done)
    return f"{progress.done} of {about}{count(progress.expected, 'page')}"


def page_line(result: PageResult) -> str:
    """`812 tokens in 131 steps (6.2 a step), 1.3 s`, how it ended unless the model ended it, and what saved it."""
    if result.origin == "draft":
        return f"the drafter's text in the place of the model's, {result.seconds:.1f} s"
    totals = Totals.of(result)
    ended = {
        "length": ", cut at max_new_tokens",
        "time": ", cut at page_seconds",
        "loop": ", stopped: it went on repeating itself",
    }
    both = f"; in both stages {totals.tokens}" if len(result.stages) > 1 else ""
    speed = f"{both} in {count(totals.steps, 'step')} ({totals.tokens_per_step:.1f} a step)" if totals.steps else ""
    how = ended.get(result.finish_reason, "" if result.markdown.strip() else ", the model wrote no text")
    saved = f", {DONE[result.saved_by]}" if result.saved_by else ""
    return f"{count(result.page_tokens, 'token')}{speed}, {result.seconds:.1f} s{how}{saved}"
