"""One sequence as it arrives from a vLLM engine, in whichever way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from time import perf_counter
from types import SimpleNamespace
from typing import Any

from hsdkit_plugins.engines._vllm.asked import Asked
from hsdkit_plugins.engines._vllm.message import Record, read_record

from hsdkit.decoding.row import Row
from hsdkit.errors import TargetError
from hsdkit.protocols import DecodeSettings
from hsdkit.results import SequenceResult


@dataclass(frozen=True, slots=True)
class Chunk:
    """What an engine hands over at once. `tokens` are new; `prompt` is the whole prompt as it was read, image tokens
    included, with the first chunk; `finish_reason` and `stop_reason` come with the last."""

    tokens: Sequence[int] = ()
    prompt: Sequence[int] = ()
    finish_reason: str | None = None
    stop_reason: Any = None


@dataclass(frozen=True, slots=True)
class Read:
    """A finished sequence. `record` is None where it was ended from here, and where no scheduler of ours has run.
    `first` is when its first token came (`perf_counter`)."""

    sequence: SequenceResult
    record: Record | None
    first: float


#: Asks an engine: an iterator that, closed early, makes the engine forget the request.
Ask = Callable[[Asked], Iterator[Chunk]]


def read(
    ask: Ask, asked: Asked, settings: DecodeSettings, codec: Any, image_token: int, tell: Callable[[str], None]
) -> Read:
    """Ask and read to the end. Raises `TargetError` when the engine gives up, or makes another prompt than we do."""
    row: Row | None = None
    record: Record | None = None
    first = 0.0
    model: Any = SimpleNamespace(codec=codec, eos_ids=frozenset(asked.ends))
    with closing(ask(asked)) as chunks:  # type: ignore[type-var]
        for chunk in chunks:
            if row is None:
                check_prompt(asked.ids, chunk.prompt, image_token)
                row = Row(model, settings, None, list(chunk.prompt), 0)
            if chunk.tokens:
                first = first or perf_counter()
                tell(row.emit(list(chunk.tokens)))
            if chunk.finish_reason is not None:
                if chunk.finish_reason not in ("stop", "length"):
                    raise TargetError(f"engine=vllm gave a sequence up: {chunk.finish_reason}")
                record = read_record(chunk.stop_reason)
                row.finish_reason = row.finish_reason or ("eos" if chunk.finish_reason == "stop" else "length")
                break
            if row.finish_reason is not None:  # the time is up, or it repeats itself
                break
    if row is None or not row.tokens or row.finish_reason is None:
        raise TargetError("engine=vllm broke a sequence off before it was finished")
    if record is not None:
        row.steps.extend(record.steps)
    return Read(row.result(image_token), record, first)


def check_prompt(ours: Sequence[int], theirs: Sequence[int], image_token: int) -> None:
    """Raises `TargetError` when the engine's prompt is not ours with the image's tokens in it."""
    at = list(ours).index(image_token)
    before, after = list(ours[:at]), list(ours[at + 1 :])
    given = list(theirs)
    fits = len(given) > len(before) + len(after)
    if not fits or given[: len(before)] != before or given[len(given) - len(after) :] != after:
        raise TargetError(
            "engine=vllm makes another prompt of chat template and image than the target does: it serves another "
            "model, or with another chat template; start it as `hsdkit serve-command` says"
        )
