"""How far predictions are off: pages predicted from the others, what noise is, what is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from test_roofline_steps import SHAPE, page_stage

from hsdkit.cli.check_output import figures, lines
from hsdkit.errors import DocumentError
from hsdkit.results import StageResult, StageTimes
from hsdkit.roofline import Pass, Records
from hsdkit.roofline.check import Held, check
from hsdkit.roofline.records import PageRecord

DRAFTED, PLAIN = ((7, 3), (4, 4), (9, 0)), ((0, 0),) * 8


class Toy:
    """A pass takes a millisecond a token, a prompt two, an image five."""

    name = "toy"

    def pass_seconds(self, shape: object, p: Pass, dtype: str) -> float:
        return (2e-3 if p.cached == 0 else 1e-3) * p.tokens

    def vision_seconds(self, shape: object, image_tokens: int, dtype: str) -> float:
        return 5e-3 * image_tokens


class Config(Toy):
    def pass_seconds(self, shape: object, p: Pass, dtype: str) -> float:
        return 2.6 * super().pass_seconds(shape, p, dtype)


def stage(steps: Sequence[tuple[int, int]], slower: float, host: float, name: str = "page") -> StageResult:
    """As the toy takes it, slowed down, with so many seconds of the host a pass; prompts by 1.5 all the time."""
    made = page_stage(*steps)
    model = slower * 1e-3 * sum(1 + nodes for nodes, _ in steps)
    host *= len(steps)
    times = StageTimes(1.5 * 5e-3 * 8, 1.5 * 2e-3 * 10, model + host, host)
    return replace(made, name=name, times=times)


def records(*slower: float, rounds: tuple[float, ...] = ()) -> Records:
    """A page for each, of two sides; the drafted one reads a crop before."""
    pages = []
    for number, s in enumerate(slower, 1):
        plain = PageRecord("a.pdf", number, "autoregressive", 0.0, (stage(PLAIN, s, 1e-3),), rounds)
        crop = stage(DRAFTED, s, 4e-3, "regions")
        hsd = PageRecord("a.pdf", number, "hsd", 0.0, (crop, stage(DRAFTED, s, 4e-3)), rounds)
        pages += [plain, hsd]
    return Records(tuple(pages), {}, {})


def errors(found: Sequence[Held]) -> list[float]:
    return [h.error for h in found]


def test_pages_alike_are_predicted_from_each_other() -> None:
    found = check(records(1.3, 1.3, 1.3), SHAPE, Toy(), "fp32", Config())
    assert errors(found) == pytest.approx([0] * 6)
    assert [h.factor for h in found] == pytest.approx([1.3] * 6)
    assert [h.unfitted for h in found] == pytest.approx([1 / 1.3 - 1] * 6)
    assert [h.from_config for h in found] == pytest.approx([1.0] * 6)


def test_crops_are_part_of_decoding_and_the_page_itself_is_not() -> None:
    _, hsd, *_ = check(records(1.0, 1.0), SHAPE, Toy(), "fp32")
    assert hsd.measured == pytest.approx(2 * (23e-3 + 3 * 4e-3) + 1.5 * (5e-3 * 8 + 2e-3 * 10))


def test_a_page_that_something_came_into_is_off_and_the_others_are_not() -> None:
    found = check(records(1.0, 1.0, 9.0, 1.0), SHAPE, Toy(), "fp32")
    assert errors(found)[4] < -0.5
    assert errors(found)[:4] + errors(found)[6:] == pytest.approx([0] * 6)


def test_no_page_is_predicted_from_itself() -> None:
    first = check(records(1.0, 2.0), SHAPE, Toy(), "fp32")
    assert [h.factor for h in first] == pytest.approx([2.0, 2.0, 1.0, 1.0])
    with pytest.raises(DocumentError, match="at least two pages"):
        check(records(1.0), SHAPE, Toy(), "fp32")


def test_pages_without_a_pass_are_left_out() -> None:
    some = records(1.0, 1.0)
    empty = PageRecord("b.pdf", 1, "autoregressive", 0.0, (replace(page_stage(), times=StageTimes(0.1, 0.1)),))
    assert len(check(replace(some, pages=(*some.pages, empty)), SHAPE, Toy(), "fp32")) == 4


def test_what_is_said_names_the_noise_of_the_rounds() -> None:
    found = check(records(1.0, 1.0, rounds=(0.016, 0.032, 0.012)), SHAPE, Toy(), "fp32", Config())
    plain = found[0]
    assert (plain.measured, plain.noise, plain.within_rounds) == pytest.approx((0.016, 1.0, True))
    text = "\n".join(lines(found, own=True))
    assert "| a.pdf | 1 | autoregressive | 8 | 0.016 | 0.016 | 0.012-0.032 | +0% | +0% | +160% |" in text
    assert "autoregressive: all pages together +0.0%, mean size of an error 0.0%, largest +0%; 2 of 2 pages" in text
    assert "the worst round of a page is 100% off its median in the mean, 100% at most" in text
    assert "Held out: every page in turn, on all sides" in text
    assert figures(found)[0]["rounds"] == [0.016, 0.032, 0.012]


def test_errors_above_the_aim_are_counted_and_those_within_the_rounds_named() -> None:
    found = check(records(1.0, 1.0, 9.0, 1.0, rounds=(0.001, 0.2)), SHAPE, Toy(), "fp32")
    assert "3 of 4 pages within 15%, of the others 1 between the page's own rounds" in "\n".join(lines(found, own=True))
    single = "\n".join(lines(check(records(1.0, 1.0), SHAPE, Toy(), "fp32"), own=False))
    assert "off its median" not in single
    assert "from the model's config and this CPU as measured just now" in single
