"""A draft in the model's own output language is accepted further than a plain one: an oracle of each format, which
writes the page without a mistake, and the steps it takes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from formats import DIALECTS, codec, drafts_of, page, separator_of, written
from simulate import tokens_per_step

from hsdkit.decoding.matching import build
from hsdkit.protocols import BLANK_LINE, DecodeSettings
from hsdkit.regions import Box, Region


def gain(drafts: tuple[str, ...], output: str, separator: str, matching: str = "aligned", nodes: int = 127) -> float:
    matcher = build(DecodeSettings(matching=matching), drafts, codec(), separator)
    return tokens_per_step(matcher, codec().encode(output), nodes)


def plain() -> tuple[str, ...]:
    """The page as a drafter gives it."""
    return tuple(r.text for r in page() if r.text)


def shifted(regions: tuple[Region, ...], pixels: int) -> tuple[Region, ...]:
    """The regions with each coordinate off by up to so many pixels."""
    dice = random.Random(11)

    def moved(box: Box) -> Box:
        return Box(*(v + dice.randint(-pixels, pixels) for v in (box.x0, box.y0, box.x1, box.y1)))

    return tuple(replace(r, box=moved(r.box)) for r in regions)


@pytest.mark.parametrize("matching", ["aligned", "paper"])
@pytest.mark.parametrize("name", DIALECTS)
def test_a_draft_in_the_models_dialect_is_accepted_at_least_as_far_as_a_plain_one(name: str, matching: str) -> None:
    dialect = DIALECTS[name]
    output, separator = written(page(), dialect), separator_of(dialect)
    dialect_gain = gain(drafts_of(page(), dialect), output, separator, matching)
    plain_gain = gain(plain(), output, BLANK_LINE, matching)
    print(f"{name}, {matching}: {plain_gain:.1f} tokens a step from plain text, {dialect_gain:.1f} in its dialect")
    assert dialect_gain >= plain_gain
    if matching == "aligned":
        assert dialect_gain > 60


@pytest.mark.parametrize("name", ["records", "grounding", "grounding, a block a line", "doctags"])
def test_boxes_that_are_slightly_off_leave_most_of_it(name: str) -> None:
    dialect = DIALECTS[name]
    output, separator = written(page(), dialect), separator_of(dialect)
    off = gain(drafts_of(shifted(page(), 3), dialect), output, separator)
    plain_gain = gain(plain(), output, BLANK_LINE)
    print(f"{name}: {plain_gain:.1f} tokens a step from plain text, {off:.1f} from boxes off by up to 3 px")
    assert off > 1.5 * plain_gain
    assert off > 6.3
