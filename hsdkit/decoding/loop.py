"""The decoding loop of one caller alone: admitted at once, then one verification step after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hsdkit.decoding.budget import Budget
from hsdkit.decoding.call import Call, Group
from hsdkit.decoding.protocol import Matcher, TargetModel
from hsdkit.decoding.scheduler import Scheduler
from hsdkit.protocols import Decoded, DecodeRequest, DecodeSettings, OnText


def decode(
    model: TargetModel,
    requests: Sequence[DecodeRequest],
    settings: DecodeSettings,
    matchers: Sequence[Matcher | None],
    budget: Budget,
    processors: Sequence[Any] = (),
    on_text: OnText | None = None,
) -> Decoded:
    """Decode all requests together, row b with the drafts of `matchers[b]` (None: plainly, one token a step).

    `processors` are `transformers` logits processors, applied as `generate` applies them. Raises `TargetError` when the
    model computes NaN.
    """
    scheduler = Scheduler(model)
    call = Call(len(requests), settings, budget, processors, on_text)
    scheduler.add(Group(call, 0, model.prepare(requests), matchers))
    while not call.done:
        scheduler.step()
    return call.decoded()
