"""The page generator is deterministic, and what it writes down is what it drew, where it drew it."""

import random
from itertools import pairwise

import numpy as np
import pytest

pages = pytest.importorskip("training.pages")
canvas = pytest.importorskip("training.canvas")
words = pytest.importorskip("training.words")

pytestmark = pytest.mark.skipif(
    not (canvas.FONT_ROOT / "lato").exists() or not words.DICTIONARY.exists(),
    reason="needs the Debian fonts and the word list named in training/README.md",
)


def _draw(seed: int, **spec: object):
    return pages.draw_page(pages.PageSpec(320, 256, **{"degraded": False, "pdf": False, **spec}), random.Random(seed))


def test_the_same_seed_gives_the_same_page():
    one, two = (_draw(3, degraded=True) for _ in range(2))
    assert one.text == two.text
    assert one.cells == two.cells
    assert np.array_equal(one.image, two.image)
    assert _draw(4).text != one.text


def test_every_glyph_has_a_cell_with_ink():
    page = _draw(5, kinds=("paragraph",), crop=True)
    assert len(page.glyphs) == len(page.cells)
    cells = page.image.reshape(16, 16, 20, 16).transpose(0, 2, 1, 3).reshape(320, -1)
    dark = cells.min(1) < 160
    drawn = [dark[cell] for glyph, cell in zip(page.glyphs, page.cells, strict=True) if glyph.isalnum()]
    assert len(drawn) > 10
    assert np.mean(drawn) > 0.97


def test_two_columns_are_written_one_after_the_other():
    page = _draw(6, columns=2, kinds=("paragraph",))
    rows = [cell // 20 for cell in page.cells]
    assert sum(a - b > 5 for a, b in pairwise(rows)) == 1
    assert max(cell % 20 for cell in page.cells) > 14


def test_tables_are_closed_and_rectangular():
    for seed in range(30):
        text = _draw(seed, kinds=("table",), crop=True).text
        assert text.count("<table>") == text.count("</table>") == 1
        assert text.count("<td") == text.count("</td>")


def test_dense_targets_name_the_first_glyphs_of_a_cell():
    page = pages.Page(np.zeros((16, 32), np.uint8), ["a", "b", "\n\n", "c"], [0, 0, 1, 1])
    targets = pages.dense_targets(page, 2, 2)
    classes = pages.GLYPH_CLASS
    assert targets.tolist() == [[classes["a"], classes["b"]], [classes["\n\n"], classes["c"]]]


def test_held_words_are_never_trained_on():
    assert not set(words.vocabulary("train")) & set(words.vocabulary("held"))
    assert len(words.vocabulary("held")) > 1000


def test_formulas_are_written_as_balanced_latex():
    texts = [_draw(seed, kinds=("formula",), crop=True).text for seed in range(12)]
    formulas = [text for text in texts if text]
    assert len(formulas) > 6
    for text in formulas:
        assert text.startswith("$$\n")
        assert text.endswith("\n$$")
        assert text.count("{") == text.count("}")
    assert any("\\frac{" in text for text in formulas)
    assert any("^{" in text or "_{" in text for text in formulas)
