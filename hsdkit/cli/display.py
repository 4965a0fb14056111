"""Progress while a run goes on: a bar on a terminal, a line a page elsewhere, or only what went wrong."""

from __future__ import annotations

import re
import sys
import time
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from hsdkit.cli.console import console, count, plain
from hsdkit.policy import DONE
from hsdkit.results import PageResult
from hsdkit.totals import Totals


class Display(Protocol):
    def status(self, text: str) -> None: ...

    def begin(self, name: str, pages: int) -> None: ...

    def on_text(self, index: int, text: str) -> None: ...

    def page(self, result: PageResult) -> None: ...

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
        self._name, self._pages, self._done, self._start = "", 0, 0, 0.0

    def status(self, text: str) -> None:
        pass

    def begin(self, name: str, pages: int) -> None:
        self._name, self._pages, self._done, self._start = name, pages, 0, time.perf_counter()

    def on_text(self, index: int, text: str) -> None:
        if not self._stream:
            return
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as e:  # whoever read along has gone, or the disk is full; the run goes on
            self._stream = False
            if not isinstance(e, BrokenPipeError):
                self.say(f"  note: the text cannot be written to stdout any more: {e.strerror}")

    def page(self, result: PageResult) -> None:
        self._done += 1
        if self._stream:
            self.on_text(0, "\n\n")
        if result.error:
            self.failure(result.error)
        elif not self._quiet:
            self.finished(result)
        for note in dict.fromkeys((*result.draft.notes, *result.notes)):
            kind = re.sub(r"[\d.,]+", "", note)
            if kind not in self._said and not self._quiet:
                self._said.add(kind)
                self.say(f"  note: {note}")

    def finished(self, result: PageResult) -> None:
        left = (time.perf_counter() - self._start) / self._done * (self._pages - self._done)
        remaining = f", about {left:.0f} s left" if left >= 1 else ""
        self.say(f"{self._name}, page {result.number}: {page_line(result)}{remaining}")

    def failure(self, reason: str) -> None:
        self.out.print(f"[bold red]failed:[/] {plain(reason)}", soft_wrap=True)

    def say(self, text: str) -> None:
        self.out.print(plain(text), soft_wrap=True)

    def close(self) -> None:
        pass


class BarDisplay(LineDisplay):
    """A bar with page, tokens per step, time left and what is being written; failures and notes scroll above it."""

    def __init__(self, out: Console) -> None:
        super().__init__(out)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            TextColumn("[dim]{task.fields[writing]}"),
            console=out,
            transient=True,
        )
        self._task: TaskID | None = None
        self._totals = Totals()
        self._characters = 0
        self._bar.start()

    def status(self, text: str) -> None:
        self._task = self._bar.add_task(plain(text), total=None, speed="", writing="")

    def begin(self, name: str, pages: int) -> None:
        super().begin(name, pages)
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._totals = Totals()
        self._task = self._bar.add_task(plain(name), total=pages, speed="", writing="")

    def on_text(self, index: int, text: str) -> None:
        self._characters += len(text)
        if self._task is not None:
            self._bar.update(self._task, writing=count(self._characters, "character"))

    def page(self, result: PageResult) -> None:
        super().page(result)
        self._totals += Totals.of(result)
        self._characters = 0
        if self._task is not None:
            speed = f"{self._totals.tokens_per_step:.1f} tokens/step"
            self._bar.update(self._task, advance=1, speed=speed, writing="")

    def finished(self, result: PageResult) -> None:
        pass  # the bar has moved

    def close(self) -> None:
        self._bar.stop()


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
