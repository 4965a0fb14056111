"""Continuous batching: rows of many callers share verification steps; they join where there is room, leave as they end.

No threads here: `SharedLoop` brings calls of many threads to one scheduler.
"""

from __future__ import annotations

import logging
import sys
from collections import deque
from time import perf_counter

import torch

from hsdkit.decoding.budget import MAX_PACKED
from hsdkit.decoding.cache import HEADROOM, RaggedCache
from hsdkit.decoding.call import Group, Member
from hsdkit.decoding.protocol import TargetModel
from hsdkit.decoding.step import VerificationStep, first_tokens

log = logging.getLogger(__name__)

#: Where rows have not even so many slots left for what a step verifies, some are put aside.
LEAST_ROOM = 16


class Scheduler:
    """`step` admits at most one group, as a prefill holds up all rows, and makes one verification step.

    Groups are admitted in the order they came, whole, and none overtakes another: whoever waits is served, however many
    come after. At most `max_rows` rows run together, in at most `max_tokens` slots of the cache (rows x the longest);
    one row alone may have more. Rows that grow beyond that are put aside, the youngest first, and come back when there
    is room. Memory that runs out all the same lowers `max_tokens`.
    """

    def __init__(self, model: TargetModel, max_rows: int = sys.maxsize, max_tokens: int = sys.maxsize) -> None:
        self.max_rows = max_rows
        self.max_tokens = max_tokens
        self._model = model
        self._waiting: deque[Group] = deque()
        self._members: list[Member] = []
        self._cache = RaggedCache(max_tokens)
        #: Rows put aside with their caches; the last were put aside last, and are the oldest.
        self._aside: list[tuple[list[Member], RaggedCache]] = []
        #: Rows that have to leave before a prefill that did not fit into memory is tried again.
        self._crowded = sys.maxsize
        self._torn = False

    @property
    def rows(self) -> int:
        """Rows that run now."""
        return len(self._members)

    @property
    def slots(self) -> int:
        """Tokens of all running rows that the cache has room for."""
        return len(self._members) * self._cache.capacity

    def add(self, group: Group) -> None:
        self._waiting.append(group)

    @torch.inference_mode()
    def step(self) -> None:
        """Admit what there is room for; one verification step; let go of what has ended. The results are with the
        calls, and so are the errors of each."""
        self.drop_ended()
        if self._aside:
            self._bring_back()
        elif self._waiting:
            self._admit()
        if self._members:
            self._verify()

    def abort(self, error: BaseException) -> None:
        """After `step` was interrupted by `error`: if rows were just being changed they are lost, and their calls fail
        with it; else they can go on."""
        if self._torn:
            for member in (*self._members, *(m for members, _ in self._aside for m in members)):
                member.call.fail(error)
            self._members, self._aside, self._cache = [], [], RaggedCache(self.max_tokens)
            self._torn = False

    def _fits(self, rows: int, longest: int) -> bool:
        together = rows + len(self._members)
        if not self._members:
            return True
        if together > self.max_rows or len(self._members) >= self._crowded:
            return False
        return together * (max(longest, self._cache.longest) + HEADROOM) <= self.max_tokens

    def _admit(self) -> None:
        group = self._waiting[0]
        if not self._fits(len(group), group.prompts.longest):
            return
        cache = RaggedCache(self.max_tokens)
        begun = perf_counter()
        try:
            prefill = self._model.prefill(group.prompts, cache)
            rows = group.rows(self._model, prefill)
            members = [Member(group.call, group.first + i, row) for i, row in enumerate(rows)]
            first_tokens(members, prefill.logits)
        except Exception as error:  # whatever model or processors do, the rows of others go on
            if self._members and _out_of_memory(error):
                self._crowded = len(self._members)
            else:
                self._waiting.popleft()
                group.call.fail(error)
            return
        self._torn = True
        self._waiting.popleft()
        self._crowded = sys.maxsize
        self._join(members, cache)
        vision = prefill.encode_seconds
        spent = perf_counter() - begun - vision
        group.call.begin(group.first, rows, prefill.image_token, group.prompts.seconds + vision, spent)
        self._torn = False

    def _join(self, members: list[Member], cache: RaggedCache) -> None:
        """Those of the rows that have not ended with their first token."""
        going = [i for i, member in enumerate(members) if member.going]
        if not going:
            return
        if len(going) < len(members):
            cache.select_rows(going)
        if self._members:
            self._cache.join(cache)
        else:
            self._cache = cache
        self._members += [members[i] for i in going]

    def _verify(self) -> None:
        rows = len(self._members)
        room = self.max_tokens // rows - self._cache.longest
        if rows > 1 and room < LEAST_ROOM:
            fitting = self.max_tokens // (self._cache.longest + HEADROOM // 2)
            self._put_aside(min(max(1, fitting), rows - 1))
            return
        step = VerificationStep(self._model, self._members, self._cache)
        step.draft(min(room, MAX_PACKED) if rows > 1 else MAX_PACKED)
        try:
            step.verify()
        except Exception as error:  # no row has changed
            if rows == 1 or not _out_of_memory(error):
                for member in self._members:
                    member.call.fail(error)
                self.drop_ended()
                return
            self.max_tokens = min(self.max_tokens, self.slots) // 2
        else:
            self._torn = True
            step.settle()
            self.drop_ended()
            self._torn = False
            return
        log.warning("out of memory with %d rows: from now on at most %d tokens at once", rows, self.max_tokens)
        del step  # and what it holds of the pass
        self._put_aside(rows // 2)

    def _put_aside(self, first: int) -> None:
        """The rows from `first` on, the youngest, into main memory."""
        self._torn = True
        self._aside.append((self._members[first:], self._cache.split_off(first)))
        del self._members[first:]
        self._torn = False

    def _bring_back(self) -> None:
        """Of those put aside the oldest."""
        members, cache = self._aside[-1]
        if self._fits(len(members), cache.longest):
            self._torn = True
            self._aside.pop()
            cache.come_back()
            self._join(members, cache)
            self._torn = False

    def drop_ended(self) -> None:
        """Let go of rows that have ended, and of all of a call that has failed. The cache drops them at once: it
        costs about as much as one more pass would spend on reading them."""
        self._waiting = deque(group for group in self._waiting if group.call.error is None)
        self._aside = [(members, cache) for members, cache in self._aside if any(m.going for m in members)]
        going = [i for i, member in enumerate(self._members) if member.going]
        if len(going) == len(self._members):
            return
        if going:
            self._cache.select_rows(going)
        else:
            self._cache = RaggedCache(self.max_tokens)
        self._members = [self._members[i] for i in going]


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)
