"""How fast the machine is just now: the start of plain decoding of one page, before and after a measurement.

Cells of a sweep are measured one after another and compared with a baseline of some time ago. What else the machine did
meanwhile, or how warm it ran, would pass for speed; the probe shows it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from statistics import fmean
from typing import Any

from hsdkit.bench import VerifierSide
from hsdkit.pipeline import Pipeline
from hsdkit.regions import Draft
from hsdkit.study.sources import Source, open_all

#: Tokens decoded, and how often.
TOKENS, TIMES = 24, 2


def shortened(options: Any) -> Any:
    """A verifier's options with a probe's limit, where it has one."""
    return replace(options, max_new_tokens=TOKENS) if hasattr(options, "max_new_tokens") else options


def probe(pipeline: Pipeline, sources: Sequence[Source]) -> float | None:
    """Mean seconds for the first page that can be decoded, by the pipeline's own verifier; None when none can."""
    side = VerifierSide("probe", pipeline.verifier, pipeline.target, pipeline.engine)
    with ExitStack() as stack:
        documents, _ = open_all(pipeline, sources, stack)
        for document in documents:
            for number in document.numbers:
                try:
                    page = document.page(number)
                    return fmean(_timed(side, page) for _ in range(TIMES))
                except Exception:  # the measurement itself says what is wrong with a page
                    continue
    return None


def _timed(side: VerifierSide, page: Any) -> float:
    start = time.perf_counter()
    side.run(page, Draft())
    return time.perf_counter() - start


def drift(then: Sequence[float | None], now: Sequence[float | None]) -> float | None:
    """How many times longer the probe takes now; None where it was not measured."""
    before, after = [s for s in then if s], [s for s in now if s]
    return (sum(after) / len(after)) / (sum(before) / len(before)) if before and after else None
