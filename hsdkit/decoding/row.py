"""One sequence while it is decoded: its tokens, their text, its matcher, its end."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic

from hsdkit.decoding.codec import TextStream
from hsdkit.decoding.guard import LoopGuard
from hsdkit.decoding.protocol import Matcher, TargetModel
from hsdkit.decoding.tree import PackedTree, PrefixTree
from hsdkit.protocols import DecodeSettings
from hsdkit.results import FinishReason, SequenceResult, Step

#: Tokens of a rejected draft that are recorded: enough to tell whether it said the same in another way.
REJECTED = 8


class Row:
    """`first_position` is the position id of the first new token; the prompt is kept for logits processors."""

    def __init__(
        self,
        model: TargetModel,
        settings: DecodeSettings,
        matcher: Matcher | None,
        prompt: list[int],
        first_position: int,
    ) -> None:
        self.prompt = prompt
        self.tokens: list[int] = []
        self.steps: list[Step] = []
        self.finish_reason: FinishReason | None = None
        self._first_position = first_position
        self._limit = settings.max_new_tokens
        self._deadline = settings.deadline
        self._matcher = matcher
        self._asked = False
        self._token_bytes = model.codec.token_bytes
        self._eos = model.eos_ids
        self._pieces: list[str] = []
        self._text = TextStream(model.codec)
        self._guard = LoopGuard() if settings.stop_loops else None

    @property
    def root_position(self) -> int:
        """Position id of the last emitted token, the root of the next tree."""
        return self._first_position + len(self.tokens) - 1

    def draft(self, limit: int) -> PrefixTree:
        """The tree of the matcher's candidates, no deeper than `limit` and than leaves room for the bonus token."""
        limit = min(limit, self._limit - len(self.tokens) - 1)
        self._asked = self._matcher is not None and limit >= 1
        if self._matcher is None or limit < 1:
            return PrefixTree((), 0)
        return PrefixTree(self._matcher.propose(limit), limit, self._eos)

    def rejected(self, proposed: PrefixTree, tree: PackedTree, node: int) -> str | None:
        """How the draft went on behind the last accepted node of the step (`Step.rejected`)."""
        if not self._asked:
            return None
        tokens = tree.behind(node, REJECTED) if len(tree) > 1 else proposed.likeliest(REJECTED)
        return b"".join(map(self._token_bytes, tokens)).decode("utf-8", "replace")

    def emit(self, tokens: Sequence[int], accepted: int = 0, source: str = "") -> str:
        """Append tokens, of which the first `accepted` came from a draft of `source`; returns their text."""
        self.tokens += tokens
        pieces = [self._text.push((token,)) for token in tokens]
        self._pieces += pieces
        if self._guard and (loop := self._guard.check(self.tokens)):
            del self.tokens[loop.keep :], self._pieces[loop.keep :]
            self._text.flush()
            self.finish_reason = "loop"
            return ""
        if tokens[-1] in self._eos:
            self.finish_reason = "eos"
        elif len(self.tokens) >= self._limit:
            self.finish_reason = "length"
        elif self._deadline is not None and monotonic() >= self._deadline:
            self.finish_reason = "time"
        elif self._matcher is not None:
            self._matcher.update(tokens, accepted, source)
        return "".join(pieces)

    def result(self, image_token: int | None = None) -> SequenceResult:
        assert self.finish_reason is not None
        self._pieces[-1] += self._text.flush()
        return SequenceResult(
            tokens=tuple(self.tokens),
            text="".join(self._pieces),
            finish_reason=self.finish_reason,
            steps=tuple(self.steps),
            pieces=tuple(self._pieces),
            prompt_tokens=len(self.prompt),
            image_tokens=0 if image_token is None else self.prompt.count(image_token),
        )
