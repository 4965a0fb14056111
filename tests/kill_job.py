"""Kills a job with SIGKILL at random moments, runs it again each time, and compares the end with an undisturbed run.

    python tests/kill_job.py                     # 30 kills of a job of 300 small pages, read by the embedded model
    python tests/kill_job.py --toys              # read by a toy that takes 10 ms a page: nothing but the job itself

Exit code 0: after the last run every page was there once and equal to that of the undisturbed run.
"""

from __future__ import annotations

import argparse
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from small_pdfs import SmallPage, printed_pdf, sizes

from hsdkit.document_result import DocumentResult
from hsdkit.jobs.database import NAME
from hsdkit.results import PageResult

EMBEDDED = (sys.executable, "-c", "from hsdkit.cli import main; main()", "run", "drafter=pdftext")

_TOYS = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parent)!r})
import toys
toys.register_toys()
verify = toys.ToyVerifier.verify
def slowly(self, page, *rest, **more):
    time.sleep(0.01)
    return verify(self, page, *rest, **more)
toys.ToyVerifier.verify = slowly
from hsdkit.cli import main; main()
"""
TOYS = (
    *(sys.executable, "-c", _TOYS, "run", "drafter=toy", "target=toy", "engine=toy", "verifier=toy"),
    "preparing=0",  # the toys are known to this process alone
)


@dataclass(frozen=True)
class Run:
    """What one process came to: exit code (negative: a signal), and seconds: in all, until it was in the job's file."""

    code: int
    seconds: float
    joined: float
    said: str


def make_documents(folder: Path, pages: int) -> list[Path]:
    """Documents whose pages say who they are."""
    folder.mkdir(parents=True)
    return [
        printed_pdf(
            folder / f"d{n}.pdf",
            (SmallPage((f"d{n}, page {k} of {size}", f"read {k * 37 % 101} of {k * 53 % 97}.")) for k in range(size)),
        )
        for n, size in enumerate(sizes(pages))
    ]


@dataclass(frozen=True)
class Moment:
    """When to kill: `seconds` after the start, after joining the job, or after having finished so many `pages`."""

    seconds: float
    joined: bool = False
    pages: int = 0


def run_job(command: Sequence[str], output: Path, kill: Moment | None = None) -> Run:
    """Run it to the end, or until it is killed."""
    start, before = time.monotonic(), _finished(output)
    joined, reached = 0.0, 0.0 if kill and not kill.joined else None
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen([*command, f"output={output}"], stdout=subprocess.DEVNULL, stderr=said) as process:
            while process.poll() is None:
                elapsed = time.monotonic() - start
                if not joined and _count(output, "workers WHERE pid = ?", process.pid):
                    joined = elapsed
                if kill and reached is None and joined and _finished(output) - before >= kill.pages:
                    reached = elapsed
                if kill and reached is not None and elapsed >= reached + kill.seconds:
                    process.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.01)
            code = process.wait()
        said.seek(0)
        return Run(code, time.monotonic() - start, joined, said.read())


def _finished(output: Path) -> int:
    """How many pages the job's file has as finished."""
    return _count(output, "pages WHERE state IN ('done', 'failed')")


def _count(output: Path, of: str, *values: int) -> int:
    """Rows of the job's file, seen from outside."""
    if not (output / NAME).exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{output / NAME}?mode=ro", uri=True, timeout=5)) as job:
            return int(job.execute(f"SELECT count(*) FROM {of}", values).fetchone()[0])
    except sqlite3.Error:  # it is just being made
        return 0


def differences(expected: Path, found: Path, documents: Sequence[Path], pages: int) -> list[str]:
    """What is not as in the undisturbed run. Times may differ, and how tokens were shared out among steps."""
    wrong = []
    names = [sorted(p.name for p in folder.iterdir() if not p.name.startswith(NAME)) for folder in (expected, found)]
    if names[0] != names[1]:
        wrong.append(f"files: {sorted(set(names[0]) ^ set(names[1]))}")
    for document in documents:
        before, after = (DocumentResult.load(f / f"{document.stem}.json") for f in (expected, found))
        if not after.ok or (before.source, before.settings["verifier"]) != (after.source, after.settings["verifier"]):
            wrong.append(f"{document.name}: {after.error or 'not the same'}")
        if list(map(content, before.pages)) != list(map(content, after.pages)):
            wrong.append(f"{document.name}: pages {[p.number for p in after.pages]} are not those expected")
        if (expected / f"{document.stem}.md").read_bytes() != (found / f"{document.stem}.md").read_bytes():
            wrong.append(f"{document.name}: another text")
    with closing(sqlite3.connect(found / NAME)) as job:
        states = job.execute("SELECT state, count(*), count(payload) FROM pages GROUP BY state").fetchall()
    if states != [("done", pages, 0)]:
        wrong.append(f"the job's file: {states}")
    return wrong


def content(page: PageResult) -> tuple[object, ...]:
    tokens = tuple(s.tokens for stage in page.stages if stage.name == "page" for s in stage.sequences)
    return page.number, page.markdown, page.text, page.finish_reason, page.error, tokens, page.draft.regions


def torture(
    folder: Path,
    command: Sequence[str],
    pages: int,
    kills: int,
    seed: int,
    tell: Callable[[str], None] = print,
    documents: Sequence[Path] | None = None,
) -> list[str]:
    """Kill the job that many times; returns what is wrong at the end."""
    chance = random.Random(seed)
    documents = make_documents(folder / "in", pages) if documents is None else documents
    command = [*command, *map(str, documents)]
    calm = run_job(command, folder / "undisturbed")
    if calm.code:
        return [f"the undisturbed run ended with {calm.code}: {calm.said}"]
    tell(f"undisturbed: {pages} pages in {calm.seconds:.1f} s")
    killed = 0
    while killed < kills:
        if (kind := chance.random()) < 0.2:  # somewhere before it has joined the job
            moment = Moment(chance.uniform(0, calm.joined))
        elif kind < 0.4:  # while it opens documents and loads the model
            moment = Moment(chance.uniform(0, calm.joined), joined=True)
        else:  # while it reads; some pages are left for the kills to come and for the last run
            share = (pages - _finished(folder / "killed")) / (kills - killed)
            moment = Moment(chance.uniform(0, 0.03), True, chance.randint(0, round(0.8 * share)))
        run = run_job(command, folder / "killed", moment)
        if run.code != -signal.SIGKILL:
            tell(f"ended with {run.code} before kill {killed + 1}; {_finished(folder / 'killed')} pages finished")
            break
        killed += 1
        tell(f"kill {killed:2d} after {run.seconds:5.2f} s: {_finished(folder / 'killed'):3d} pages finished")
    last = run_job(command, folder / "killed")
    tell(f"last run: exit code {last.code}")
    tell("  " + "\n  ".join(line for line in last.said.splitlines() if "kept" in line or "document" in line))
    wrong = differences(folder / "undisturbed", folder / "killed", documents, pages)
    return (
        wrong + [f"only {killed} kills"] * (killed < kills) + [f"exit code {last.code}: {last.said}"] * bool(last.code)
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, default=300)
    options.add_argument("--kills", type=int, default=30)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--toys", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="hsdkit-kill-") as folder:
        wrong = torture(Path(folder), TOYS if given.toys else EMBEDDED, given.pages, given.kills, given.seed)
    print("\n".join(wrong) or f"every one of {given.pages} pages is there once, equal to the undisturbed run")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
