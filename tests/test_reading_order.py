"""Reading order on layouts drawn by hand and on random ones."""

import random

from hypothesis import given
from hypothesis import strategies as st

from hsdkit.reading_order import reading_order
from hsdkit.regions import Box

boxes = st.lists(
    st.builds(
        lambda x, y, w, h: Box(x, y, x + w, y + h),
        st.integers(0, 900),
        st.integers(0, 900),
        st.integers(1, 500),
        st.integers(1, 300),
    ),
    max_size=25,
)


def read(layout: dict[str, tuple[float, float, float, float]]) -> str:
    names = list(layout)
    random.Random(0).shuffle(names)
    return "".join(names[i] for i in reading_order([Box(*layout[n]) for n in names]))


def test_one_column_is_read_from_top_to_bottom():
    assert read({"a": (0, 0, 100, 10), "b": (0, 20, 60, 30), "c": (0, 40, 100, 50)}) == "abc"


def test_columns_are_read_one_after_the_other_even_when_their_gaps_line_up():
    layout = {"a": (0, 0, 100, 40), "b": (0, 50, 100, 90), "c": (120, 0, 220, 40), "d": (120, 50, 220, 90)}
    assert read(layout) == "abcd"


def test_a_heading_across_both_columns_ends_them():
    layout = {
        "t": (20, 0, 200, 15),
        "a": (0, 30, 100, 60),
        "b": (120, 30, 220, 60),
        "h": (0, 70, 220, 80),
        "c": (0, 90, 100, 120),
        "d": (120, 90, 220, 120),
    }
    assert read(layout) == "tabhcd"


def test_a_column_that_ends_early_does_not_break_the_other():
    layout = {"a": (0, 0, 100, 40), "b": (0, 50, 100, 90), "c": (0, 100, 100, 140), "d": (120, 0, 220, 60)}
    assert read(layout) == "abcd"


def test_a_picture_over_two_of_three_columns():
    layout = {
        "p": (0, 0, 200, 50),
        "a": (0, 60, 95, 200),
        "b": (105, 60, 200, 200),
        "c": (210, 0, 300, 200),
    }
    assert read(layout) == "pabc"


def test_an_equation_number_follows_its_equation():
    lines = {c: (0, 20 * k, 300, 20 * k + 12) for k, c in enumerate("abcdefgh")}
    layout = lines | {"c": (80, 40, 160, 52), "1": (280, 40, 300, 52), "d": (80, 60, 160, 72), "e": (80, 80, 160, 92)}
    assert read(layout) == "abc1defgh"


def test_overlapping_boxes_keep_their_columns():
    layout = {"a": (0, 0, 104, 42), "b": (0, 38, 102, 90), "c": (100, 2, 220, 45), "d": (101, 41, 220, 90)}
    assert read(layout) == "abcd"


def test_a_box_around_others_comes_first():
    layout = {"o": (0, 0, 300, 100), "a": (10, 10, 100, 90), "b": (120, 10, 290, 90)}
    assert read(layout) == "oab"


@given(boxes)
def test_every_box_appears_once(given):
    assert sorted(reading_order(given)) == list(range(len(given)))


@given(boxes, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(given, rng):
    given = list(dict.fromkeys(given))
    shuffled = rng.sample(given, len(given))
    assert [given[i] for i in reading_order(given)] == [shuffled[i] for i in reading_order(shuffled)]


@given(st.integers(1, 4), st.randoms(use_true_random=False))
def test_columns_of_paragraphs_of_any_height_are_read_one_by_one(columns, rng):
    expected = []
    for column in range(columns):
        y = 0.0
        while y < 400:
            height = rng.randint(30, 120)
            expected.append(Box(column * 120, y, column * 120 + 100, y + height))
            y += height + 10
    shuffled = rng.sample(expected, len(expected))
    assert [shuffled[i] for i in reading_order(shuffled)] == expected
