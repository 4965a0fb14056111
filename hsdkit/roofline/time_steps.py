"""Measures verification steps as the decoding loop makes them, on the very model, behind a made-up text with made-up
drafts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from time import perf_counter, process_time

import numpy as np
import torch

from hsdkit.decoding.budget import Budget
from hsdkit.decoding.cache import RaggedCache
from hsdkit.decoding.call import Call, Member
from hsdkit.decoding.protocol import Candidate, TargetModel
from hsdkit.decoding.row import Row
from hsdkit.decoding.step import VerificationStep
from hsdkit.protocols import DecodeSettings
from hsdkit.roofline.calibrate import in_turn, usual

#: No step sees as much as the one before, and rows of a batch differ in length as those of a run do.
_VARIED, _APART = 32, 7

_SETTINGS = DecodeSettings(max_new_tokens=2**40, stop_loops=False)


def step_seconds(
    model: TargetModel, rows: Sequence[int], widths: Sequence[int], cached: Sequence[int], patience: float
) -> dict[tuple[int, int, int], float]:
    """Seconds in the model by (rows, width, cached tokens), all of which rise and start at one row and one token. All
    kinds take turns for about `patience` seconds, three times at least, so that a busy moment of the machine does not
    hit one of them alone; steps of one token follow each other, as in plain decoding."""
    found: dict[tuple[int, int, int], list[float]] = {(r, k, c): [] for r in rows for k in widths for c in cached}
    batches = {r: _MadeUp(model, r, cached[-1] + widths[-1]) for r in rows}
    begun = perf_counter()
    rounds = 0
    while rounds < 3 or perf_counter() - begun < patience:
        rounds += 1
        for r, batch in batches.items():
            for c in cached:
                batch.step(1, c)  # the caches hold what came before
                for width in in_turn(widths):
                    found[r, width, c].append(batch.step(width, c))
    return usual(found)


class _Guesses:
    """A matcher that proposes a chain of `width` - 1 tokens, nearly all of them wrong."""

    def __init__(self, model: TargetModel, width: int) -> None:
        known = (token for token in range(2 * width + len(model.eos_ids)) if token not in model.eos_ids)
        self._chain = [token for token, _ in zip(known, range(width - 1), strict=False)]

    def propose(self, limit: int) -> list[Candidate]:
        return [Candidate(self._chain, "", 0.5, 0.9)] if self._chain else []

    def update(self, tokens: Sequence[int], accepted: int, source: str) -> None:
        """Learns nothing."""


class _MadeUp:
    """Rows with made-up tokens in the cache (zeros cost what keys and values cost), for steps of any width."""

    def __init__(self, model: TargetModel, rows: int, room: int) -> None:
        self._model = model
        self._cache = RaggedCache()
        self._cache.begin_prompt([1] * rows, 1, capacity=room + _VARIED)
        first = torch.zeros((rows, 1), dtype=torch.int64)
        with torch.inference_mode():
            model.verify(first, first, None, self._cache)
        self._shorter = _APART * np.arange(rows)
        self._longer = cycle(range(_VARIED))

    @torch.inference_mode()
    def step(self, width: int, cached: int) -> float:
        """Seconds in the model of a step of `width` packed tokens behind about `cached` ones of the longest row."""
        self._cache.lengths[:] = np.maximum(1, cached - self._shorter) + next(self._longer)
        call = Call(len(self._shorter), _SETTINGS, Budget(width, None))
        members = []
        for i, length in enumerate(self._cache.lengths.tolist()):
            row = Row(self._model, _SETTINGS, _Guesses(self._model, width), [0] * length, length)
            row.emit([0])
            members.append(Member(call, i, row))
        step = VerificationStep(self._model, members, self._cache)
        step.draft()
        begun, begun_alone = perf_counter(), process_time()
        step.verify()
        spent, alone = perf_counter() - begun, process_time() - begun_alone
        step.settle()
        # Of one thread, its own time on a core: what others do on the machine does not count.
        return step.verifying * (alone / spent if torch.get_num_threads() == 1 else 1.0)
