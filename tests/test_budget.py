"""Cost curves and the choice of the width of a step."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hsdkit_plugins.engines.threads import fastest_threads
from hypothesis import given
from hypothesis import strategies as st

from hsdkit.decoding.budget import (
    HOPELESS,
    MAX_PACKED,
    PROBE_EVERY,
    PROBE_WIDTH,
    Budget,
    CostCurve,
    MeasuredCosts,
    choose_width,
)

FLAT = CostCurve((1, 128), (1.0, 1.0))  # a GPU: width is free
STEEP = CostCurve((1, 2, 128), (1.0, 2.0, 128.0))  # every token costs a pass
CPU = CostCurve((1, 8, 32, 128), (2.4, 3.3, 4.8, 10.9))


def costs(curve: CostCurve, rows: int = 1) -> np.ndarray:
    return curve.at(rows * np.arange(1, MAX_PACKED + 1))


def chain(length: int, rate: float) -> np.ndarray:
    return rate ** np.arange(1, length + 1)


def test_a_free_width_is_used_and_a_dear_one_not() -> None:
    assert choose_width([chain(200, 0.9)], costs(FLAT)) == MAX_PACKED
    assert choose_width([chain(200, 0.9)], costs(STEEP)) == 1


def test_the_width_follows_how_good_the_drafts_are() -> None:
    widths = [choose_width([chain(127, rate)], costs(CPU)) for rate in (0.02, 0.5, 0.9, 0.99)]
    assert widths == sorted(widths)
    assert widths[0] == 1 < widths[1] < widths[3]


@given(
    st.lists(st.lists(st.floats(0, 1), max_size=150), min_size=1, max_size=4),
    st.sampled_from([FLAT, STEEP, CPU]),
)
def test_the_width_chosen_has_the_highest_expected_tokens_per_second(rows: list[list[float]], curve: CostCurve) -> None:
    seconds = costs(curve, len(rows))

    def rate(width: int) -> float:
        return sum(1 + sum(sorted(row, reverse=True)[: width - 1]) for row in rows) / seconds[width - 1]

    longest = min(MAX_PACKED, 1 + max(map(len, rows)))
    chosen = choose_width([np.array(row) for row in rows], seconds)
    assert rate(chosen) == pytest.approx(max(rate(width) for width in range(1, longest + 1)))


def test_a_fixed_width_ignores_cost_but_not_what_there_is_to_verify() -> None:
    assert Budget(64, None).width([chain(127, 0.01)]) == 64
    assert Budget(64, None).width([chain(9, 0.01), chain(3, 0.01)]) == 10
    assert Budget(1, None).width([chain(9, 0.9)]) == 1


def test_hopeless_drafts_are_left_out_but_tried_again_now_and_then() -> None:
    budget = Budget(None, CPU)
    widths = [budget.width([chain(20, 0.01)]) for _ in range(10 * PROBE_EVERY)]
    assert widths.count(PROBE_WIDTH) == 10
    assert set(widths) == {1, PROBE_WIDTH}


def test_nothing_is_probed_where_there_are_no_drafts() -> None:
    budget = Budget(None, CPU)
    assert {budget.width([np.zeros(0)]) for _ in range(3 * PROBE_EVERY)} == {1}


def test_what_steps_spend_outside_the_model_widens_them() -> None:
    """Host work is paid once a step, so more tokens should share it."""
    lean, loaded = Budget(None, CPU), Budget(None, CPU)
    for _ in range(20):
        lean.spent(1, 8, 3.3, 0.0)
        loaded.spent(1, 8, 3.3, 30.0)
    assert loaded.width([chain(127, 0.9)]) > lean.width([chain(127, 0.9)])


def test_trees_dearer_than_measured_are_narrowed_to_single_tokens() -> None:
    budget = Budget(None, CPU)
    assert budget.width([chain(20, 0.5)]) > 1
    for _ in range(50):
        budget.spent(1, 1, 2.4, 0.0)
        budget.spent(1, 8, 3.3 * 3, 0.0)
    assert budget.width([chain(20, 0.5)]) == 1


def test_measuring_takes_the_fastest_run_and_stops_at_hopeless_widths() -> None:
    calls: list[int] = []

    def run(width: int) -> float:
        calls.append(width)
        noise = 5.0 if len(calls) % 3 == 0 else 0.0
        return 0.001 * (1 + (width - 1) * 2) + noise * 0.001

    curve = CostCurve.measure(run, rows=2)
    assert curve.tokens == (2, 4, 8, 16, 32)
    assert curve.seconds == pytest.approx((0.001, 0.003, 0.007, 0.015, 0.031))
    assert curve.seconds[-1] > HOPELESS * curve.seconds[0]
    beyond = curve.at(np.array([64]))[0]
    assert beyond == pytest.approx(0.063)  # the last slope goes on


def test_a_slow_model_is_not_measured_for_long() -> None:
    spent: list[float] = []

    def run(width: int) -> float:
        spent.append(1.0 + width)
        return spent[-1]

    curve = CostCurve.measure(run, rows=1)
    assert curve.tokens == (1, 2, 4, 8, 16)
    assert len(spent) == 6


@pytest.mark.parametrize(("shared", "expected"), [(0.5, 3), (2.0, 1), (1000.0, 1)])
def test_threads_are_shared_only_where_that_is_faster(
    shared: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, runs = [3], []
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads[0])
    monkeypatch.setattr(torch, "set_num_threads", lambda number: threads.__setitem__(0, number))

    def run(width: int) -> float:
        runs.append(threads[0])
        return width * (shared if threads[0] == 3 else 1.0)

    assert fastest_threads(run) == expected
    assert threads == [3]
    assert len(runs) == (2 if shared > 100 else 24)


def test_costs_are_measured_for_few_numbers_of_rows_and_interpolated_between() -> None:
    measured: list[int] = []

    def measure(rows: int) -> CostCurve:
        measured.append(rows)
        return CostCurve((rows, 128 * rows), (1.0 + rows, 1.0 + 128 * rows))  # a second, and one for each token

    costs = MeasuredCosts(measure, 12)
    for rows in (1, 2, 3, 4, 1, 5, 9, 12, 7):
        assert costs.by_width(rows) == pytest.approx(1 + rows * np.arange(1, MAX_PACKED + 1))
    assert measured == [1, 4, 12]
    assert costs.known(2) is None
    assert costs.curve(2).tokens == (2, 256)
    assert measured == [1, 4, 12, 2]


def test_rows_of_other_budgets_in_a_pass_are_paid_for() -> None:
    """Beside many others a wide step costs more, as they are padded to its width."""
    alone, beside = (Budget(None, CPU).width([chain(127, 0.9)], rows) for rows in (1, 30))
    assert alone > beside
