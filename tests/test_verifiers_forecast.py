"""The forecast of whether Stage 1 pays: against counted outcomes, at its limits, and learning from pages."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from hsdkit_plugins.verifiers.forecast import Expectations, ImageCost, decode_seconds, survival, wrong_characters

from hsdkit.regions import Box, Label, Region
from hsdkit.results import SequenceResult, StageResult, StageTimes, Step


def region(score: float | None, characters: int = 400) -> Region:
    return Region(Box(0, 0, 100, 100), Label.TEXT, "x" * characters, score=score)


def engine(slope: float) -> SimpleNamespace:
    """A pass costs 1 s and `slope` s for every further token."""
    return SimpleNamespace(pass_seconds=lambda tokens: 1 + slope * (tokens - 1))


FLAT, STEEP = engine(0.001), engine(1.0)
LIMIT = 4096


def test_expected_passes_are_those_of_a_simulated_chain() -> None:
    dice, a, width = random.Random(1), 0.8, 8
    tokens = passes = 0
    while tokens < 40_000:
        accepted = 0
        while accepted < width - 1 and dice.random() < a:
            accepted += 1
        tokens, passes = tokens + accepted + 1, passes + 1
    only_this_width = SimpleNamespace(pass_seconds=lambda n: 1.0 if n == width else 1e9)
    assert decode_seconds(only_this_width, tokens, tokens, a) == pytest.approx(passes, rel=0.02)


def test_where_every_token_costs_a_whole_pass_speculation_gains_nothing() -> None:
    assert decode_seconds(STEEP, 500, 500, 0.9) == pytest.approx(500)


def test_perfect_drafts_never_pay_for_stage_1() -> None:
    for e in (FLAT, STEEP):
        assert not Expectations().forecast(e, [(region(1.0), 100)] * 20, 1e5, 500, LIMIT).pays


def test_poor_drafts_of_many_regions_pay_where_wide_passes_are_cheap() -> None:
    regions = [(region(0.9), 100)] * 20
    assert Expectations().forecast(FLAT, regions, 1e5, 500, LIMIT).pays
    assert not Expectations().forecast(STEEP, regions, 1e5, 500, LIMIT).pays
    assert not Expectations(prefill=1.0).forecast(FLAT, regions, 1e5, 500, LIMIT).pays, (
        "crops that cost more than they save"
    )


def test_a_page_that_is_cut_short_is_not_worth_reading_all_its_regions() -> None:
    regions = [(region(0.9), 100)] * 20
    whole, cut = (Expectations().forecast(engine(0.02), regions, 1e5, 500, limit) for limit in (LIMIT, 200))
    assert whole.pays
    assert cut.alone == pytest.approx(whole.alone / 10)
    assert not cut.pays


@pytest.mark.parametrize(
    ("page", "crop", "share", "cost"),
    [(1000, 100, 0.1, 0.2), (273, 273, 0.1, 1.0), (903, 273, 0.0, 0.442), (1000, 50, 0.1, 0.2), (10, 10, 1.0, 0.2)],
)
def test_a_crop_costs_its_area_or_a_whole_view(page: int, crop: int, share: float, cost: float) -> None:
    """What a fifth of the page costs, by what the page and another crop were given: grid models pay by the area, models
    with views of one size for each image."""
    assert ImageCost.between(page, crop, share).share(0.2) == pytest.approx(cost, abs=1e-3)


def test_scores_are_weighted_by_length_and_unknown_ones_are_not_trusted() -> None:
    assert wrong_characters([region(1.0, 300), region(0.8, 100)]) == pytest.approx(0.05)
    assert 0 < wrong_characters([region(None)]) < 0.2
    assert survival(0.0, 4) == 1.0
    assert survival(1.5, 4) == 0.0


def stage(tokens: int, steps: int) -> StageResult:
    sequence = SequenceResult((1,) * tokens, "abcd" * tokens, "eos", (Step(8, 1, True, "draft", 0.01),) * steps)
    return StageResult("page", (sequence,), StageTimes(encode=1.0, prefill=1.0, decode=9.0), steps)


def test_pages_correct_what_is_believed() -> None:
    seen = Expectations()
    before = seen.draft_slips
    for _ in range(20):
        seen.learn(stage(400, 200), 1000, wrong=0.0, engine=FLAT)
    assert seen.prefill == pytest.approx(0.002)
    assert seen.slowness == pytest.approx(9.0 / (200 * FLAT.pass_seconds(9)))
    assert seen.draft_slips > 5 * before
    # What was learned predicts what was seen: two tokens a pass.
    assert 1 / (1 - survival(seen.draft_slips, 4)) == pytest.approx(2, rel=0.05)
    slips = seen.crop_slips
    seen.learn(stage(400, 20), 1000, wrong=None, engine=FLAT)
    assert seen.crop_slips < slips
    assert seen.draft_slips > 5 * before


def test_a_drafter_that_owns_up_to_its_errors_is_not_charged_twice() -> None:
    seen = Expectations(draft_slips=0.0)
    seen.learn(stage(400, 200), 1000, wrong=0.2, engine=FLAT)
    assert seen.draft_slips == 0.0
