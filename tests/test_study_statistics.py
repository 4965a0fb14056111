"""Bootstrap intervals against cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from hsdkit.study.statistics import mean_interval, ratio_interval


def test_the_interval_of_a_mean_is_that_of_the_normal_law() -> None:
    values = np.random.default_rng(1).normal(10, 2, 400)
    found = mean_interval(list(values))
    half = 1.96 * values.std(ddof=1) / 20
    assert found.value == pytest.approx(values.mean())
    assert found.low == pytest.approx(values.mean() - half, abs=0.15 * half)
    assert found.high == pytest.approx(values.mean() + half, abs=0.15 * half)


def test_a_ratio_that_every_page_shares_has_no_spread() -> None:
    pages = [[1.0], [2.0], [7.0]]
    found = ratio_interval([[2 * s for s in p] for p in pages], pages)
    assert (found.value, found.low, found.high) == pytest.approx((2, 2, 2))
    assert found.excludes(1)


def test_pairing_by_page_finds_what_totals_would_hide() -> None:
    rng = np.random.default_rng(2)
    pages = rng.lognormal(0, 1.5, 40)  # pages differ a hundredfold, the two runs by 5%
    found = ratio_interval([[1.05 * s] for s in pages], [[s] for s in pages * rng.normal(1, 0.01, 40)])
    assert 1.03 < found.low < found.value < found.high < 1.07


def test_the_same_run_twice_is_within_noise_about_as_often_as_said() -> None:
    rng = np.random.default_rng(3)
    pages = rng.lognormal(0, 0.5, 20)
    noise = lambda: [[s * f for f in rng.normal(1, 0.1, 3)] for s in pages]  # noqa: E731
    wrong = sum(ratio_interval(noise(), noise(), seed=i, resamples=400).excludes(1) for i in range(60))
    assert wrong <= 8  # 3 expected; 9 or more in 0.3% of the draws


def test_rounds_are_noise_too() -> None:
    one_page = ratio_interval([[2.0, 2.2, 1.8]], [[1.0, 1.3, 0.9]])
    assert one_page.value == 2
    assert one_page.low < 2 < one_page.high


def test_the_median_over_rounds_ignores_a_disturbed_one() -> None:
    assert ratio_interval([[2.0, 2.0, 50.0]], [[1.0, 1.0, 1.0]]).value == 2


def test_the_seed_fixes_the_interval() -> None:
    values = [1.0, 2.1, 5.3, 3.2, 9.7, 4.4]
    assert mean_interval(values, seed=1) == mean_interval(values, seed=1) != mean_interval(values, seed=2)
    over, under = [[v] for v in values], [[v] for v in (1.0, 1.5, 2.0, 4.0, 7.0, 3.0)]
    assert ratio_interval(over, under, seed=1) == ratio_interval(over, under, seed=1) != ratio_interval(over, under)


def test_one_measurement_has_no_interval() -> None:
    assert ratio_interval([[3.0]], [[2.0]]).low == ratio_interval([[3.0]], [[2.0]]).high == 1.5
    assert mean_interval([4.0]).low == 4


@pytest.mark.parametrize(("over", "under"), [([], []), ([[1.0]], [[1.0], [1.0]]), ([[]], [[1.0]])])
def test_pages_that_do_not_pair_up_are_refused(over: list[list[float]], under: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="pair up"):
        ratio_interval(over, under)
