"""What travels with a request: `Message` to the vLLM engine (drafts as text), `Record` back (what became of them).

A message is one string under one key of `SamplingParams.extra_args` (`vllm_xargs` over HTTP). A record comes back in
the `stop_reason` of a request's last output, the one field that streams and HTTP hand through as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from hsdkit.protocols import BLANK_LINE, MAX_N, DecodeSettings
from hsdkit.results import Step

KEY = "hsdkit"
#: Of both formats; whoever reads another one ignores it.
FORMAT = 1
#: A page's draft is a few thousand characters. The engine tokenises it while other requests wait.
MOST_CHARACTERS = 400_000
MOST_DRAFTS, MOST_TAGS, LONGEST_TAG = 4096, 4096, 256
#: Ways to match that a vLLM engine can use: `suffix` makes trees, and vLLM verifies chains.
MATCHINGS = ("aligned", "paper")


@dataclass(frozen=True, slots=True)
class Message:
    """How to draft for one request.

    drafts, separator, matching, n, self_lookup, stop_loops: as in `DecodeRequest` and `DecodeSettings`.
    width: most draft tokens of a step; None for as many as their cost justifies, 0 for plain decoding.
    written: special tokens that are text of the model's output language.
    """

    drafts: tuple[str, ...] = ()
    separator: str = BLANK_LINE
    matching: str = "aligned"
    n: int = 3
    self_lookup: bool = True
    stop_loops: bool = True
    width: int | None = None
    written: tuple[str, ...] = ()

    @property
    def settings(self) -> DecodeSettings:
        """What a matcher is built with."""
        return DecodeSettings(matching=self.matching, n=self.n, self_lookup=self.self_lookup)

    def pack(self) -> dict[str, str]:
        """The extra arguments of a request."""
        return {KEY: json.dumps({"format": FORMAT} | asdict(self), ensure_ascii=False)}


def read_message(extra_args: Mapping[str, Any] | None) -> Message | None:
    """The message in a request's extra arguments, None where there is none. Anybody can send one: raises `ValueError`
    for what is no message or too large."""
    packed = (extra_args or {}).get(KEY)
    if packed is None:
        return None
    if not isinstance(packed, str):
        raise ValueError(f"is a {type(packed).__name__}, not a string")
    if len(packed) > 8 * MOST_CHARACTERS:  # a character takes up to six as JSON
        raise ValueError(f"has {len(packed)} characters")
    try:
        given = json.loads(packed)
    except (ValueError, RecursionError) as e:
        raise ValueError(f"is no JSON: {e}") from None
    if not isinstance(given, dict) or given.pop("format", None) != FORMAT:
        raise ValueError(f"is not of format {FORMAT}")
    if unknown := given.keys() - {f.name for f in fields(Message)}:
        raise ValueError(f"has unknown parts: {', '.join(sorted(unknown))[:80]}")
    for name, most, longest in (("drafts", MOST_DRAFTS, MOST_CHARACTERS), ("written", MOST_TAGS, LONGEST_TAG)):
        given[name] = _texts(given.get(name, []), name, most, longest)
    message = Message(**given)
    _check(message)
    return message


def _texts(value: Any, name: str, most: int, longest: int) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"has {name} that are no list of texts")
    if len(value) > most or sum(map(len, value)) > MOST_CHARACTERS or any(len(text) > longest for text in value):
        raise ValueError(f"has too many {name}, or too long ones")
    return tuple(value)


def _check(message: Message) -> None:
    kinds = {"separator": str, "matching": str, "n": int, "self_lookup": bool, "stop_loops": bool}
    for name, kind in kinds.items():
        if type(getattr(message, name)) is not kind:
            raise ValueError(f"has a {name} that is no {kind.__name__}")
    if message.width is not None and (type(message.width) is not int or message.width < 0):
        raise ValueError("has a width that is no number of tokens")
    if message.matching not in MATCHINGS or not 1 <= message.n <= MAX_N or len(message.separator) > LONGEST_TAG:
        raise ValueError(f"asks for matching={message.matching:.20}, n={message.n}: not known here")


@dataclass(frozen=True, slots=True)
class Record:
    """What became of one request.

    steps: one a verification step. prefill: seconds from its arrival in the scheduler to its first token. host: seconds
    of matching. limit: draft tokens the engine can verify in a step. cost: seconds of a step, and of each token in it.
    note: why drafts were not used, "" where they were.
    """

    steps: tuple[Step, ...] = ()
    prefill: float = 0.0
    host: float = 0.0
    limit: int = 0
    cost: tuple[float, float] = (0.0, 0.0)
    note: str = ""

    def to_text(self) -> str:
        steps = [[s.nodes, s.accepted, int(s.bonus), s.source, round(s.seconds, 6), s.rejected] for s in self.steps]
        parts = {f.name: getattr(self, f.name) for f in fields(self)} | {"steps": steps}
        return json.dumps({KEY: FORMAT} | parts, ensure_ascii=False, separators=(",", ":"))


def read_record(stop_reason: Any) -> Record | None:
    """The record in a `stop_reason`; None where there is none that we know: then no scheduler of ours has run."""
    if not isinstance(stop_reason, str) or not stop_reason.startswith('{"' + KEY):
        return None
    try:
        given = json.loads(stop_reason)
        if given.pop(KEY) != FORMAT:
            return None
        steps = tuple(
            Step(int(n), int(a), bool(b), str(source), float(seconds), rejected)
            for n, a, b, source, seconds, rejected in given.pop("steps")
        )
        a, b = map(float, given.pop("cost"))
        return Record(steps=steps, cost=(a, b), **given)
    except (ValueError, TypeError, KeyError):
        return None
