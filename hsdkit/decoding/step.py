"""One verification step (paper, section 3.2) over the rows of a batch, whoever they belong to:

candidates -> prefix tree -> one forward pass over all rows -> acceptance walk -> keep the accepted path
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import torch

from hsdkit.decoding.acceptance import Verdicts, walk
from hsdkit.decoding.batch import not_a_number, pack_batch, winners
from hsdkit.decoding.budget import MAX_PACKED, Budget
from hsdkit.decoding.cache import RaggedCache
from hsdkit.decoding.call import Member
from hsdkit.decoding.protocol import TargetModel
from hsdkit.decoding.tree import PrefixTree
from hsdkit.results import Step


class VerificationStep:
    """`draft`, `verify`, `settle`, in this order. What fails for one row (its matcher, its logits processors, scores
    that are NaN) fails its call alone; `verify` raises what the pass raises, and nothing has happened then."""

    def __init__(self, model: TargetModel, members: Sequence[Member], cache: RaggedCache) -> None:
        self._begun = perf_counter()
        self._model = model
        self._members = members
        self._cache = cache
        self.verifying = 0.0

    def draft(self, most: int = MAX_PACKED) -> None:
        """Trees of at most `most` packed tokens, root included."""
        self._trees = [_draft(member, most - 1) for member in self._members]
        widths = self._widths()
        self._packed = [
            tree.pack(m.row.tokens[-1], min(widths[m.call.budget], most) - 1)
            for m, tree in zip(self._members, self._trees, strict=True)
        ]
        self.width = max(map(len, self._packed))

    def verify(self) -> None:
        roots = [m.row.root_position for m in self._members]
        tokens, positions, mask = pack_batch(self._packed, roots, self._cache.lengths)
        begun = perf_counter()
        self._cache.begin(tokens.shape[1])
        self._logits = self._model.verify(tokens, positions, mask, self._cache)
        self._best, spoiled = winners(self._logits)
        self.verifying = perf_counter() - begun
        for member, nan in zip(self._members, spoiled, strict=True):
            if nan:
                member.call.fail(not_a_number(self._logits))

    def settle(self) -> None:
        """Walk down the trees, emit what is accepted, keep it in the cache; note what the step took."""
        records = [self._settle(i, member) for i, member in enumerate(self._members)]
        self._cache.keep([path for path, _ in records])
        seconds = perf_counter() - self._begun
        for member, (path, facts) in zip(self._members, records, strict=True):
            nodes, bonus, source, rejected = facts
            member.row.steps.append(Step(nodes, len(path) - 1, bonus, source, seconds, rejected))
        host = seconds - self.verifying
        calls = [m.call for m in self._members]
        for call in dict.fromkeys(calls):
            call.charge(calls.count(call) / len(calls), seconds, host)
        for budget in {call.budget for call in calls}:
            budget.spent(len(calls), self.width, self.verifying, host)

    def _widths(self) -> dict[Budget, int]:
        survivals: dict[Budget, list[Any]] = {}
        for member, tree in zip(self._members, self._trees, strict=True):
            survivals.setdefault(member.call.budget, []).append(tree.survival)
        return {budget: budget.width(own, len(self._members)) for budget, own in survivals.items()}

    def _settle(self, i: int, member: Member) -> tuple[list[int], tuple[int, bool, str, str | None]]:
        row, call, tree = member.row, member.call, self._packed[i]
        path: list[int] = [0]
        facts: tuple[int, bool, str, str | None] = (len(tree) - 1, False, "", None)
        if call.error is not None:
            return path, facts
        try:
            path, bonus = self._walk(i, member)
            source = tree.source(path[-1])
            facts = len(tree) - 1, bonus is not None, source, row.rejected(self._trees[i], tree, path[-1])
            emitted = [tree.tokens[node] for node in path[1:]] + ([] if bonus is None else [bonus])
            call.tell(member.number, row.emit(emitted, len(path) - 1, source))
        except Exception as error:  # logits processors may raise anything: their call fails alone
            call.fail(error)
        return path, facts

    def _walk(self, i: int, member: Member) -> tuple[list[int], int | None]:
        call, row = member.call, member.row
        context = row.prompt + row.tokens if call.processors else ()
        verdicts = Verdicts(self._logits[i], self._best[i], call.processors, context)
        return walk(self._packed[i], verdicts, call.settings.tau, self._model.eos_ids)


def _draft(member: Member, limit: int) -> PrefixTree:
    try:
        return member.row.draft(limit)
    except Exception as error:  # a matcher may raise anything: its call fails alone
        member.call.fail(error)
        return PrefixTree((), 0)


def first_tokens(members: Sequence[Member], logits: torch.Tensor) -> None:
    """Emit the first token of rows that have just been prefilled, from `logits` (B, V)."""
    best, spoiled = winners(logits)
    if any(spoiled):
        raise not_a_number(logits)
    for b, member in enumerate(members):
        verdicts = Verdicts(logits[b, None], best[b : b + 1], member.call.processors, member.row.prompt)
        member.call.tell(member.number, member.row.emit([verdicts.best(0, [])]))
