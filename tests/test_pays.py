"""Estimates behind the decision to draft: ink to characters, and the reason to leave a draft out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont

from hsdkit.ink import printed_characters
from hsdkit.pays import PRIOR_SPEEDUP, Experience, reason_to_skip


def text_page(
    size: int, text: str = "The quick brown fox jumps over the lazy dog. " * 3, lines: int = 12
) -> np.ndarray:
    font = ImageFont.load_default(size)
    width = int(font.getlength(text)) + 40
    image = Image.new("L", (width, lines * size * 2 + 40), 255)
    draw = ImageDraw.Draw(image)
    for i in range(lines):
        draw.text((20, 20 + i * size * 2), text, fill=0, font=font)
    return np.asarray(image)


@pytest.mark.parametrize("size", [12, 16, 24, 40])
def test_characters_are_estimated_within_a_factor_of_two_at_any_size(size: int):
    true = len("The quick brown fox jumps over the lazy dog. " * 3) * 12
    assert true / 2 < printed_characters(text_page(size)) < true * 2


def test_white_on_black_is_the_same_as_black_on_white():
    page = text_page(16)
    assert printed_characters(255 - page) == pytest.approx(printed_characters(page), rel=0.05)


def test_a_blank_page_has_no_characters():
    assert printed_characters(np.full((300, 200), 255, np.uint8)) == 0
    assert printed_characters(np.zeros((0, 0), np.uint8)) == 0


def test_noise_is_bounded_by_the_area_of_the_page():
    noise = np.random.default_rng(0).integers(0, 256, (540, 100)).astype(np.uint8)
    assert printed_characters(noise) <= 540 * 100 / 54


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0.1, 20))
def test_a_draft_is_left_out_exactly_when_it_costs_more_than_it_saves(drafting: float, plain: float, speedup: float):
    saving = max(0.0, plain - plain / speedup)
    reason = reason_to_skip(drafting, plain, speedup)
    if abs(drafting - saving) > 1e-6 * max(drafting, saving):
        assert (reason is not None) == (drafting > saving)


def test_the_reason_gives_both_numbers():
    reason = reason_to_skip(10, 6, 3)
    assert reason is not None
    assert "about 10 s" in reason
    assert "save about 4 s" in reason
    assert "the 6 s" in reason


def test_experience_replaces_assumptions():
    new = Experience()
    assert (new.speedup, new.tokens_for(100, 0.25)) == (PRIOR_SPEEDUP, 25)
    seen = new.after(50_000, 50_000, 6.0).after(50_000, 50_000, None)
    assert seen.speedup == pytest.approx(6, rel=0.02)
    assert seen.tokens_for(100, 0.25) == pytest.approx(100, rel=0.02)


def test_one_short_page_overturns_nothing():
    seen = Experience().after(300, 10, 0.5)
    assert 2.5 < seen.speedup < PRIOR_SPEEDUP
    assert 80 < seen.tokens_for(100, 1.0) < 100
