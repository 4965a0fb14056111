"""What page images go through before the model sees them."""

from __future__ import annotations

import numpy as np
import pytest
from hsdkit_plugins.targets import tiny
from hsdkit_plugins.targets.images import ink, without_blank_foot
from PIL import Image


def page(last_ink: int | None, paper: int = 255) -> Image.Image:
    """100 x 200 px; a line of ink that ends at row `last_ink`."""
    pixels = np.full((200, 100), paper, np.uint8)
    if last_ink is not None:
        pixels[last_ink - 8 : last_ink + 1, 10:90:2] = 20
    return Image.fromarray(pixels).convert("RGB")


@pytest.mark.parametrize("paper", [255, 190])
def test_blank_paper_below_the_text_is_cut(paper: int) -> None:
    image = page(120, paper)
    cut = without_blank_foot(image, 8)
    assert cut.size == (100, 129)
    assert np.array_equal(np.asarray(cut), np.asarray(image)[:129])


@pytest.mark.parametrize("last_ink", [195, None])
def test_full_and_empty_pages_stay_whole(last_ink: int | None) -> None:
    image = page(last_ink)
    assert without_blank_foot(image, 8) is image


@pytest.mark.parametrize(("size", "times"), [((100, 200), 1), ((300, 600), 2)])
def test_the_ink_of_a_page_is_looked_for_once_and_once_more_when_it_is_scaled(
    size: tuple[int, int], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[Image.Image] = []
    monkeypatch.setattr(tiny, "ink", lambda image: (looked.append(image), ink(image))[1])
    target = tiny.TinyTarget(tiny.TinyConfig())
    image = page(120).resize(size)
    view = target.view(image)
    assert (view is image) == (times == 1)
    for _ in range(2):
        target.prepare(view)
        target.notes(image)
    assert len(looked) == times
