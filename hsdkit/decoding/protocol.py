"""The two narrow interfaces of the decoding loop: the model it verifies with, and the matcher it drafts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from hsdkit.protocols import DecodeRequest

if TYPE_CHECKING:
    import torch

    from hsdkit.decoding.cache import RaggedCache


class Codec(Protocol):
    """Text to ids and back, byte exact. `token_bytes` of all emitted tokens joined are the UTF-8 of the output text;
    special tokens (end tokens) have no bytes."""

    def encode(self, text: str) -> list[int]: ...

    def token_bytes(self, token: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Prompts:
    """Requests made ready for the model: what its forward pass takes (`inputs`, on the CPU), the number of tokens of
    each, without padding, and the `seconds` that took."""

    inputs: dict[str, Any]
    lengths: list[int]
    seconds: float

    @property
    def longest(self) -> int:
        return max(self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class Prefill:
    """After the prompts: `logits` (B, V) for the first new token of each row, `lengths` (B,) cached tokens of each row,
    `positions` (B,) the position of the first new token (max over axes of the prompt's positions, plus 1), `prompts`
    the prompt ids of each row without padding, `encode_seconds` the time in the vision tower. Tokens of id
    `image_token` stand for the image."""

    logits: torch.Tensor
    lengths: list[int]
    positions: list[int]
    prompts: list[list[int]]
    encode_seconds: float
    image_token: int | None = None


class TargetModel(Protocol):
    """All the loop knows of a model (B rows, K packed tokens a row, V vocabulary)."""

    codec: Codec
    eos_ids: frozenset[int]

    def prepare(self, requests: Sequence[DecodeRequest]) -> Prompts:
        """Preprocessing, without the model: may run in any thread, beside passes."""
        ...

    def prefill(self, prompts: Prompts, cache: RaggedCache) -> Prefill: ...

    def verify(
        self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, cache: RaggedCache
    ) -> torch.Tensor:
        """Logits (B, K, V) of packed trees: `tokens` and `positions` (B, K) int64, `mask` (B, 1, K, L) bool, True where
        a node may look, L the cache's view including the K new slots; None when every token sees everything. All lie
        on the CPU."""
        ...


@dataclass(slots=True)
class Candidate:
    """A guess at the next tokens, likeliest first. `first` is the estimated probability that its first token is
    accepted, `rest` that a token is accepted given its parent was: a node at depth d (1-based) survives with
    first * rest ** (d - 1). A guess that leaves an earlier one after `fork` tokens states `first` for the token behind
    them: first * rest ** (d - 1 - fork)."""

    tokens: list[int]
    source: str
    first: float
    rest: float
    fork: int = 0


class Matcher(Protocol):
    """Proposes continuations of one sequence from its drafts and learns from how they fared."""

    def propose(self, limit: int) -> list[Candidate]:
        """Ranked candidates for what follows the tokens seen so far; none is longer than `limit` tokens."""
        ...

    def update(self, tokens: Sequence[int], accepted: int, source: str) -> None:
        """Tokens just emitted, of which the first `accepted` came from a candidate of that source ("" for none)."""
        ...
