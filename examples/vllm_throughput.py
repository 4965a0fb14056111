"""What drafts gain in vLLM: accepted tokens and the ratio of wall times, for one page at a time and for 16 at once.

    python examples/vllm_throughput.py examples/ten_pages.pdf --rounds 3 engine.dtype=fp32
    python examples/vllm_throughput.py examples/ten_pages.pdf engine.url=http://127.0.0.1:8000

Sides, in turn: requests as any client sends them, and the same with the drafter's text as drafts. Both ask the
same engine; without engine.url the first also asks a vLLM without speculation beside it. Drafts are ready before.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from hsdkit_plugins.engines._vllm.asked import ask
from hsdkit_plugins.engines._vllm.offline import OfflineVllm
from hsdkit_plugins.engines._vllm.reading import read

from hsdkit import Pipeline, compose
from hsdkit.documents import find_inputs
from hsdkit.protocols import DecodeRequest, DecodeSettings
from hsdkit.results import SequenceResult

Side = Callable[[Sequence[DecodeRequest]], Sequence[SequenceResult]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inputs", nargs="+", help="documents, folders or globs, and options as KEY=VALUE")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--tokens", type=int, default=300, help="most tokens of a page")
    given = parser.parse_intermixed_args()
    pipeline = Pipeline(compose(["engine=vllm", "drafter=pdftext", *(g for g in given.inputs if "=" in g)]))
    requests = drafted(pipeline, [g for g in given.inputs if "=" not in g])
    sides: dict[str, Side] = {
        "plain": plain(pipeline.engine, given.tokens),
        "drafted": lambda asked: pipeline.engine.decode(asked, DecodeSettings(max_new_tokens=given.tokens)).sequences,
    }
    stock = None
    if not pipeline.config.engine.options.url:
        arguments = pipeline.engine._arguments(str(pipeline.target.checkpoint.folder))
        for ours in ("scheduler_cls", "speculative_config"):
            del arguments[ours]
        pipeline.engine.load()
        stock = OfflineVllm(arguments)
        sides = {"vLLM without speculation": plain(pipeline.engine, given.tokens, stock)} | sides
    try:
        for batch in given.batches:
            measure(batch, requests, sides, given.rounds)
    finally:
        pipeline.engine.close()
        if stock is not None:
            stock.close()


def drafted(pipeline: Pipeline, inputs: list[str]) -> list[DecodeRequest]:
    """A request for every page, with its drafts."""
    target, requests = pipeline.target, []
    for path in find_inputs(inputs):
        with pipeline.open(path) as document:
            for number in document.numbers:
                page = document.page(number)
                drafts = target.page_drafts(pipeline.drafter.draft(page).regions, page.image)
                image = target.view(page.image)
                requests.append(DecodeRequest(image, target.prompt(None), drafts, target.separator))
    return requests


def plain(engine: Any, tokens: int, vllm: OfflineVllm | None = None) -> Side:
    """Requests without a word to our scheduler."""
    settings = DecodeSettings(max_new_tokens=tokens)

    def one(request: DecodeRequest) -> SequenceResult:
        asked = replace(ask(request, engine.target, settings, tokens), message=None)
        where = vllm or engine._ready
        return read(where.ask, asked, settings, engine._codec, engine._image_token, lambda _: None).sequence

    def side(requests: Sequence[DecodeRequest]) -> Sequence[SequenceResult]:
        with ThreadPoolExecutor(len(requests)) as threads:
            return list(threads.map(one, requests))

    return side


def measure(batch: int, requests: list[DecodeRequest], sides: dict[str, Side], rounds: int) -> None:
    """Every side reads the same pages, `batch` at once."""
    number = max(batch, min(4, len(requests)))
    pages = [requests[i % len(requests)] for i in range(number)]
    groups = [pages[i : i + batch] for i in range(0, number, batch)]
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    found: dict[str, list[SequenceResult]] = {}
    for side in sides.values():
        side(groups[0])  # the first of a kind is slower
    for turn in range(rounds):
        for name in list(sides) if turn % 2 == 0 else reversed(list(sides)):
            start = time.perf_counter()
            found[name] = [s for group in groups for s in sides[name](group)]
            seconds[name].append(time.perf_counter() - start)
    texts = {name: [s.tokens for s in sequences] for name, sequences in found.items()}
    reference = next(iter(sides))
    print(f"\nbatch {batch}: {number} pages, {sum(map(len, texts[reference]))} tokens, {rounds} rounds")
    for name, sequences in found.items():
        steps = [step for s in sequences for step in s.steps]
        accepted = sum(step.accepted for step in steps)
        told = f"{accepted} of them drafted, {len(steps)} steps, AAL {accepted / len(steps):.2f}" if steps else ""
        median = statistics.median(seconds[name])
        ratio = statistics.median(a / b for a, b in zip(seconds[reference], seconds[name], strict=True))
        same = "same tokens" if texts[name] == texts[reference] else "TOKENS DIFFER"
        print(f"{name:26} {median:7.2f} s  ratio {ratio:.2f}  {same}  {told}", flush=True)


if __name__ == "__main__":
    main()
