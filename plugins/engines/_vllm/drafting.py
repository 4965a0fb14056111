"""One request inside a vLLM engine: proposes the likeliest chain of draft tokens, and keeps what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
from hsdkit_plugins.engines._vllm.message import Message, Record

from hsdkit.decoding.guard import LoopGuard
from hsdkit.decoding.matching import build
from hsdkit.decoding.protocol import Candidate, Codec, Matcher
from hsdkit.decoding.row import REJECTED
from hsdkit.results import Step


@dataclass(slots=True, weakref_slot=True)
class Drafting:
    """`vocabulary` is how many tokens the model knows: a tokenizer may have more, and one of those would end the
    engine. `note` says why there are no drafts."""

    message: Message = field(default_factory=lambda: Message(self_lookup=False, width=0))
    codec: Codec | None = None
    vocabulary: int = 0
    note: str = ""
    host: float = 0.0
    prefill: float | None = None
    begun: float = field(default_factory=perf_counter)
    steps: list[Step] = field(default_factory=list)
    _matcher: Matcher | None = None
    _guard: LoopGuard | None = None
    _proposed: Candidate | None = None

    def __post_init__(self) -> None:
        message = self.message
        if self.codec is not None and message.width != 0:
            self._matcher = build(message.settings, message.drafts, self.codec, message.separator)
        self._guard = LoopGuard() if message.stop_loops else None

    def propose(self, room: int) -> tuple[list[int], np.ndarray]:
        """At most `room` tokens, likeliest chain, and the probability of each that it is accepted."""
        self._proposed = None
        if self._matcher is None or room < 1:
            return [], np.zeros(0)
        start = perf_counter()
        # Forks state the chance of their own tail only; the chains before them are complete.
        whole = [c for c in self._matcher.propose(room) if not c.fork and c.tokens]
        best = max(whole, key=lambda c: c.first, default=None)
        tokens = [] if best is None else best.tokens[:room]
        known = next((i for i, token in enumerate(tokens) if not 0 <= token < self.vocabulary), len(tokens))
        del tokens[known:]
        self.host += perf_counter() - start
        if best is None or not tokens:
            return [], np.zeros(0)
        self._proposed = best
        return tokens, best.first * best.rest ** np.arange(len(tokens))

    def emitted(self, tokens: Sequence[int], verified: Sequence[int], ended: bool, seconds: float) -> None:
        """A step that verified the draft tokens `verified` and emitted `tokens`; the first call is the prefill."""
        if self.prefill is None:
            self.prefill = perf_counter() - self.begun
            self._learn(tokens, 0, "", ended)
            return
        accepted = 0
        while accepted < min(len(tokens), len(verified)) and tokens[accepted] == verified[accepted]:
            accepted += 1
        source = self._proposed.source if self._proposed is not None and accepted else ""
        bonus = accepted < len(tokens)
        self.steps.append(Step(len(verified), accepted, bonus, source, seconds, self._rejected(accepted, verified)))
        self._learn(tokens, accepted, source, ended)

    def _learn(self, tokens: Sequence[int], accepted: int, source: str, ended: bool) -> None:
        if self._matcher is not None and not ended:
            start = perf_counter()
            self._matcher.update(tokens, accepted, source)
            self.host += perf_counter() - start

    def _rejected(self, accepted: int, verified: Sequence[int]) -> str | None:
        """How the draft went on behind the accepted tokens (`Step.rejected`)."""
        if self._matcher is None or self.codec is None:
            return None
        tokens = verified if verified or self._proposed is None else self._proposed.tokens
        rest = tokens[accepted : accepted + REJECTED]
        return b"".join(map(self.codec.token_bytes, rest)).decode("utf-8", "replace")

    def loops(self, tokens: Sequence[int]) -> bool:
        """Whether the output only goes on repeating itself (`LoopGuard`)."""
        return self._guard is not None and self._guard.check(tokens) is not None

    def give_up(self, why: str) -> None:
        """From now on without drafts."""
        self._matcher, self._proposed, self.note = None, None, why

    def record(self, limit: int, cost: tuple[float, float]) -> Record:
        return Record(tuple(self.steps), self.prefill or 0.0, self.host, limit, cost, self.note)
