"""With tau=1 structured drafts, whose boxes fork at their numbers, change nothing either, in batches of ragged rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from formats import DIALECTS, drafts_of, separator_of
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from models import SimpleTarget, page

from hsdkit.protocols import DecodeRequest, DecodeSettings
from hsdkit.regions import Box, Label, Region

TOKENS = 48


@pytest.mark.parametrize("name", ["records", "grounding", "grounding, a block a line", "doctags"])
@pytest.mark.parametrize("architecture", ["qwen2_5_vl", "hunyuan_vl"])
def test_forks_never_change_the_output(
    architecture: str, name: str, random_target: Callable[[str], SimpleTarget]
) -> None:
    torch.set_num_threads(1)
    target = random_target(architecture)
    engine = TransformersEngine(TransformersConfig(), target)
    settings = DecodeSettings(max_new_tokens=TOKENS, max_packed=64, stop_loops=False)
    plain = [DecodeRequest(page(64 + 32 * k, 64, seed=k), "The table"[: 3 + 3 * k]) for k in range(3)]
    expected = [sequence.tokens for sequence in engine.decode(plain, settings).sequences]
    requests = [replace(r, drafts=_drafts(target, tokens, name)) for r, tokens in zip(plain, expected, strict=True)]
    requests = [replace(r, separator=separator_of(DIALECTS[name])) for r in requests]
    result = engine.decode(requests, settings)
    assert [sequence.tokens for sequence in result.sequences] == expected
    assert sum(step.nodes for sequence in result.sequences for step in sequence.steps) > 0


def _drafts(target: SimpleTarget, tokens: tuple[int, ...], name: str) -> tuple[str, ...]:
    """What the model will say, cut into records whose boxes it never writes."""
    pieces = [target.tokenizer.decode(tokens[k : k + 12]) for k in range(0, TOKENS, 12)]
    boxes = [Box(10 + 7 * k, 20 + 40 * k, 300 + k, 52 + 40 * k) for k in range(len(pieces))]
    regions = tuple(Region(box, Label.TEXT, text) for box, text in zip(boxes, pieces, strict=True))
    return pieces[0], *drafts_of(regions, DIALECTS[name])
