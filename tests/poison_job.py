"""Runs a job of small pages of which one in twenty is poison, and draws its memory over time.

    python tests/poison_job.py CORPUS --pages 2000 --output poison

CORPUS is a folder of hostile files (broken, encrypted, huge, endless). Besides them there are pages at which the
drafter crashes its process, pages at which it hangs, and pages that the model would read for ever. Writes
poison/memory.png and poison/memory.csv beside the results. Exit code 0: the job came to its end, every good page is
there and well, every file that cannot be read is named in failures.jsonl, and memory did not grow.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from processes import descendants, resident
from small_pdfs import SmallPage, printed_pdf, sizes

from hsdkit.document_result import DocumentResult

PLUGIN = '''
"""A drafter that dies or hangs where the page says so, and an engine that never sees the end of others."""

import copy, os, time
from dataclasses import replace

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit_plugins.drafters.pdftext import PdfText, PdfTextConfig
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine


class Deadly(PdfText):
    name = "deadly"

    def draft(self, page):
        draft = super().draft(page)
        said = " ".join(region.text for region in draft.regions)
        if "CRASH" in said:
            os.abort()
        if "HANG" in said:
            time.sleep(10_000)
        return draft


class Endless(TransformersEngine):
    def __init__(self, config, target):
        super().__init__(config, target)
        self._config_of_endless, self._endless = config, None

    def decode_with(self, requests, settings, matchers, on_text=None):
        if not any("ENDLESS" in draft for request in requests for draft in request.drafts):
            return super().decode_with(requests, settings, matchers, on_text)
        if self._endless is None:
            self.load()
            target = copy.copy(self.target)
            vars(target)["eos_ids"] = frozenset()
            self._endless = TransformersEngine(self._config_of_endless, target)
        return self._endless.decode_with(requests, replace(settings, stop_loops=False), matchers, on_text)


@hookimpl
def hsdkit_components():
    yield Component("drafter", "deadly", "dies where the page says so", PdfTextConfig, Deadly)
    yield Component("engine", "endless", "never ends where the page says so", TransformersConfig, Endless)
'''

#: Seconds a page may take in the engine, and to be prepared.
PAGE_SECONDS, PREPARE_SECONDS = 15, 5

#: A shorter job is over before its memory has settled.
ENOUGH_PAGES = 500

#: The kinds of poison, over and over.
KINDS = ("ENDLESS", "CRASH", "hostile", "HANG", "CRASH", "hostile", "ENDLESS", "hostile", "CRASH", "hostile")


@dataclass(frozen=True)
class Sample:
    """Seconds since the start; MB of the job's process and of all its descendants; its open files."""

    seconds: float
    job: float
    descendants: float
    files: int


def install_plugin(folder: Path) -> None:
    information = folder / "poison_for_tests-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: poison-for-tests\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[hsdkit]\npoison = poison_for_tests\n")
    (folder / "poison_for_tests.py").write_text(PLUGIN)


def make_job(folder: Path, corpus: Path, pages: int) -> tuple[Path, Counter[str]]:
    """The list of a job's documents, and how much of which poison is in it."""
    folder.mkdir(parents=True)
    kinds = [KINDS[n % len(KINDS)] for n in range(pages // 20)]
    hostile_files = sorted(p for p in corpus.iterdir() if p.is_file())
    inside = [kind for kind in kinds if kind != "hostile"]
    every = max(1, (pages - len(kinds)) // max(1, len(inside)))
    entries, number = [], 0
    for n, size in enumerate(sizes(pages - kinds.count("hostile"))):
        document = []
        for k in range(1, size + 1):
            kind = inside.pop() if inside and number % every == every // 2 else "good"
            number += 1
            lines = (f"d{n}, page {k} of {size}", f"{kind} {k * 37 % 101} of {k * 53 % 97}.")
            document.append(SmallPage(lines))
        entries.append({"path": str(printed_pdf(folder / f"d{n}.pdf", document))})
    for n in range(kinds.count("hostile")):  # links: one file, many names
        link = folder / f"hostile{n}.pdf"
        link.symlink_to(hostile_files[n % len(hostile_files)].resolve())
        entries.insert(n * len(entries) // kinds.count("hostile"), {"path": str(link), "pages": "1"})
    listing = folder.parent / "job.jsonl"
    listing.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return listing, Counter(kinds)


def watch(process: subprocess.Popen[bytes], every: float) -> Iterator[Sample]:
    start = time.monotonic()
    while process.poll() is None:
        family = list(descendants(process.pid))
        files = Path(f"/proc/{process.pid}/fd")
        try:
            count = len(list(files.iterdir()))
        except OSError:
            count = 0
        held = resident(process.pid) / 1e6, sum(map(resident, family)) / 1e6
        yield Sample(time.monotonic() - start, *held, count)
        time.sleep(every)


def draw(samples: Sequence[Sample], path: Path, title: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4))
    minutes = [s.seconds / 60 for s in samples]
    axes.plot(minutes, [s.job for s in samples], label="the job's process")
    axes.plot(minutes, [s.descendants for s in samples], label="processes that prepare pages")
    axes.set(xlabel="minutes", ylabel="MB resident", title=title, ylim=(0, None))
    other = axes.twinx()
    other.plot(minutes, [s.files for s in samples], color="gray", linewidth=0.7)
    other.set(ylabel="open files (gray)", ylim=(0, None))
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path)


def growth(samples: Sequence[Sample]) -> tuple[float, float]:
    """MB of the job's process in the second quarter of its time, and in the last: medians."""
    quarter = max(1, len(samples) // 4)
    return (
        statistics.median(s.job for s in samples[quarter : 2 * quarter] or samples),
        statistics.median(s.job for s in samples[-quarter:]),
    )


def verdict(output: Path, listing: Path, code: int) -> tuple[list[str], Counter[str]]:
    """What is wrong, and how the pages of the job ended."""
    wrong, ends = [], Counter[str]()
    failed = set()
    if (output / "failures.jsonl").exists():
        failed = {Path(json.loads(line)["path"]).name for line in (output / "failures.jsonl").open()}
    for line in listing.read_text().splitlines():
        path = Path(json.loads(line)["path"])
        document = DocumentResult.load(output / f"{path.stem}.json")
        if not document.ok and path.name not in failed:
            wrong.append(f"{path.name}: failed, and is not named")
        ends["unreadable files"] += document.error is not None
        for page in document.pages:
            ends[page.finish_reason] += 1
            ends["pages without a draft"] += any("no draft" in note for note in page.notes)
            endless = any("ENDLESS" in region.text for region in page.draft.regions)
            if path.name.startswith("d") and (page.error or (page.finish_reason == "time") != endless):
                wrong.append(f"{path.name}, page {page.number}: {page.error or page.finish_reason}")
    if code != bool(failed):
        wrong.append(f"exit code {code}, expected {int(bool(failed))}")
    return wrong, ends


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("corpus", type=Path)
    options.add_argument("--pages", type=int, default=2000)
    options.add_argument("--output", type=Path, default=Path("poison"))
    options.add_argument("--every", type=float, default=1.0, help="seconds between two looks at the memory")
    options.add_argument("overrides", nargs="*", help="KEY=VALUE for hsdkit run")
    given = options.parse_intermixed_args()
    shutil.rmtree(given.output, ignore_errors=True)
    given.output.mkdir(parents=True)
    install_plugin(given.output / "plugin")
    listing, poison = make_job(given.output / "in", given.corpus, given.pages)
    print(f"{given.pages} pages, of them poison: {dict(poison)}")

    results = given.output / "out"
    command = [sys.executable, "-c", "from hsdkit.cli import main; main()", "run", f"@{listing}", f"output={results}"]
    command += ["drafter=deadly", "engine=endless", "preparing=1", "reuse_drafts=false"]
    command += [f"page_seconds={PAGE_SECONDS}", f"prepare_seconds={PREPARE_SECONDS}", *given.overrides]
    paths = [str((given.output / "plugin").resolve()), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with (given.output / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said)
        samples = list(watch(process, given.every))
    with (given.output / "memory.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["seconds", "job MB", "descendants MB", "open files"])
        table.writerows([f"{s.seconds:.1f}", f"{s.job:.1f}", f"{s.descendants:.1f}", s.files] for s in samples)
    draw(samples, given.output / "memory.png", f"{given.pages} pages, {sum(poison.values())} of them poison")

    wrong, ends = verdict(results, listing, process.returncode)
    before, after = growth(samples)
    if given.pages >= ENOUGH_PAGES and after > 1.1 * before + 20:
        wrong.append(f"memory grew from {before:.0f} to {after:.0f} MB")
    print(f"{samples[-1].seconds:.0f} s; ends: {dict(ends)}")
    print(f"memory: {before:.0f} MB in the second quarter, {after:.0f} MB in the last; open files at most", end=" ")
    print(max(s.files for s in samples))
    print("\n".join(wrong) or "every good page is there and well, and every file that cannot be read is named")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
