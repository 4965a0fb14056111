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

from hsdkit.jobs.database import NAME
from hsdkit.results import DocumentResult, PageResult

#: Pages of the documents, over and over: long ones and short ones.
SIZES = (30, 1, 7, 2, 45, 1, 14)

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
    """What one process came to: exit code (negative: a signal), seconds, seconds until it told of its first page."""

    code: int
    seconds: float
    first_page: float
    said: str


def printed_pdf(path: Path, pages: int) -> Path:
    """A born-digital document of small pages, each of which says who it is."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for number in range(1, pages + 1):
        lines = (
            f"({path.stem}, page {number}"
        ) + f" of {pages}) Tj T* (read {number * 37 % 101} of {number * 53 % 97}.) Tj"
        stream = f"BT /F 10 Tf 14 TL 8 40 Td {lines} ET".encode()
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream))
        box = b"/MediaBox[0 0 100 60]/Resources<</Font<</F 3 0 R>>>>"
        objects.append(b"<</Type/Page/Parent 2 0 R%s/Contents %d 0 R>>" % (box, len(objects)))
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join(kids), pages)
    body = b"".join(b"%d 0 obj%s endobj\n" % (n, o) for n, o in enumerate(objects, 1))
    path.write_bytes(b"%PDF-1.4\n" + body + b"trailer<</Root 1 0 R>>")
    return path


def make_documents(folder: Path, pages: int) -> list[Path]:
    folder.mkdir(parents=True)
    made: list[Path] = []
    while pages:
        size = min(pages, SIZES[len(made) % len(SIZES)])
        made.append(printed_pdf(folder / f"d{len(made)}.pdf", size))
        pages -= size
    return made


def run_job(command: Sequence[str], output: Path, kill_after: float | None = None) -> Run:
    """Run it to the end, or until it is killed."""
    start = time.monotonic()
    first_page = 0.0
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen([*command, f"output={output}"], stdout=subprocess.DEVNULL, stderr=said) as process:
            while process.poll() is None:
                elapsed = time.monotonic() - start
                if not first_page and _finished(output):
                    first_page = elapsed
                if kill_after is not None and elapsed >= kill_after:
                    process.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.01 if kill_after is not None else 0.05)
            code = process.wait()
        said.seek(0)
        return Run(code, time.monotonic() - start, first_page, said.read())


def _finished(output: Path) -> int:
    """How many pages the job's file has as finished, seen from outside."""
    if not (output / NAME).exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{output / NAME}?mode=ro", uri=True, timeout=5)) as job:
            return int(job.execute("SELECT count(*) FROM pages WHERE state IN ('done', 'failed')").fetchone()[0])
    except sqlite3.Error:  # just being made
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
    work = calm.seconds - calm.first_page
    tell(f"undisturbed: {pages} pages in {calm.seconds:.1f} s, the first after {calm.first_page:.1f} s")
    killed = 0
    while killed < kills:
        # From before the job's file exists to the middle of the work; all kills together leave some of it undone.
        after = chance.uniform(0, calm.first_page + 1.6 * work / kills)
        run = run_job(command, folder / "killed", after)
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
