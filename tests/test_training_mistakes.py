"""Texts with mistakes in them: what is to be learned is the page's own text, in its order, at its places."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

mistakes = pytest.importorskip("training.mistakes")
from training.pen import Page  # noqa: E402 (only where the fonts are)

GLYPHS = st.lists(st.sampled_from([*"abcdeé19 .$\n#", "<td>", "</td>", "<table>"]), min_size=1, max_size=200)


def _page(glyphs):
    return Page(np.empty((0, 0), np.uint8), glyphs, list(range(len(glyphs))))


@settings(max_examples=200, deadline=None)
@given(GLYPHS, st.integers(0, 10**6))
def test_what_is_right_is_the_page_in_order(glyphs, seed):
    spoiled, right = mistakes.with_mistakes(_page(glyphs), random.Random(seed), share=0.7)
    assert len(spoiled.glyphs) == len(spoiled.cells) == len(right)
    assert all(cell in range(len(glyphs)) for cell in spoiled.cells)
    kept = [cell for cell, fine in zip(spoiled.cells, right, strict=True) if fine]
    assert kept == sorted(set(kept))
    assert [glyphs[cell] for cell in kept] == [g for g, fine in zip(spoiled.glyphs, right, strict=True) if fine]


@given(GLYPHS, st.integers(0, 10**6))
def test_no_mistakes_at_share_zero_and_the_same_ones_for_a_seed(glyphs, seed):
    page = _page(glyphs)
    assert mistakes.with_mistakes(page, random.Random(seed), share=0.0)[0].glyphs == glyphs
    once, again = (mistakes.with_mistakes(page, random.Random(seed), share=0.5) for _ in range(2))
    assert once[0].glyphs == again[0].glyphs
    assert once[1] == again[1]


def test_texts_become_longer_shorter_and_misspelled_and_never_end_early():
    text = "first second third fourth fifth sixth seventh eighth ninth tenth"
    seen = set()
    for seed in range(300):
        spoiled, _ = mistakes.with_mistakes(_page([*text, "."]), random.Random(seed), share=0.1)
        assert spoiled.text.endswith(".")
        seen.add(np.sign(len(spoiled.text) - len(text) - 1) if spoiled.text != f"{text}." else "right")
    assert seen == {"right", -1, 0, 1}
