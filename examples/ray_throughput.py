"""Pages a second with one Ray worker and with two (or other numbers), in turn, and whether they write the same.

    python examples/ray_throughput.py scans/ --workers 1 2 --rounds 3 drafter=pdftext

Each worker has one core. A few pages for each worker are read once before the time begins, so that starting Ray and
loading models is not in it.
"""

from __future__ import annotations

import argparse
import hashlib
import statistics
import time
from contextlib import closing

from hsdkit import compose
from hsdkit.documents import find_inputs, open_document
from hsdkit.parallel import PageTask
from hsdkit.ray.cluster import connected
from hsdkit.ray.workers import Workers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="documents, folders or globs, and options as KEY=VALUE")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ray", default=None, help="address of the cluster")
    given = parser.parse_intermixed_args()
    overrides = [g for g in given.inputs if "=" in g]
    tasks = []
    for path in find_inputs([g for g in given.inputs if "=" not in g]):
        with open_document(path) as document:
            tasks += [PageTask(path, number, f"{path}, page {number}") for number in document.numbers]

    rates: dict[int, list[float]] = {n: [] for n in given.workers}
    digests = set()
    with connected(given.ray):
        for turn in range(given.rounds):
            for n in given.workers if turn % 2 == 0 else reversed(given.workers):
                rate, digest = measure(overrides, tasks, n)
                rates[n].append(rate)
                digests.add(digest)
                print(f"{n} workers: {rate:.2f} pages/s, texts {digest[:12]}", flush=True)
    for n, found in rates.items():
        ratio = statistics.median(found) / statistics.median(rates[given.workers[0]])
        print(f"{n} workers: median {statistics.median(found):.2f} pages/s of {len(found)} rounds, ratio {ratio:.2f}")
    print("same texts in all rounds" if len(digests) == 1 else "TEXTS DIFFER")


def measure(overrides: list[str], tasks: list[PageTask], workers: int) -> tuple[float, str]:
    """(pages a second, digest of all texts). The pages that warm the workers up are read again at the end."""
    from hsdkit.ray.stream import parse_pages

    warm, texts, start = 4 * workers, {}, 0.0
    with closing(parse_pages(compose(overrides), [*tasks[:warm], *tasks], Workers(workers, workers, 1))) as results:
        for done, (task, result) in enumerate(results, 1):
            texts[str(task.key)] = f"{result.error} {result.text}"
            if done == warm:
                start = time.perf_counter()
    rate = len(tasks) / (time.perf_counter() - start)
    return rate, hashlib.sha256("\0".join(texts[key] for key in sorted(texts)).encode()).hexdigest()


if __name__ == "__main__":
    main()
