"""Metrics on hand-counted examples."""

from __future__ import annotations

import pytest

from hsdkit.metrics.edit import edit_share, edits
from hsdkit.metrics.teds import teds
from hsdkit.metrics.words import bleu, has_chinese, meteor, precision_recall_f1, words


def html(*rows: str) -> str:
    return f"<html><body><table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table></body></html>"


SQUARE = html("<td>ab</td><td>c</td>", "<td>d</td><td>e</td>")


def test_edits_count_characters_and_items() -> None:
    assert edits("kitten", "sitting") == 3
    assert edits([1, 2, 3], [1, 3]) == 1
    assert edit_share("abcd", "abxd") == 0.25
    assert edit_share("", "") == 0


def test_edit_share_above_its_cutoff_is_never_below_it() -> None:
    assert edit_share("abcd", "wxyz", 0.25) >= 0.25
    assert edit_share("abcdefgh", "abcdefgx", 0.25) == 0.125


@pytest.mark.parametrize(
    ("predicted", "score", "structure"),
    [
        (SQUARE, 1, 1),
        # One of two characters of one cell is wrong: 0.5 of the 6 nodes below the table.
        (html("<td>ax</td><td>c</td>", "<td>d</td><td>e</td>"), 1 - 0.5 / 6, 1),
        # A cell is missing.
        (html("<td>ab</td><td>c</td>", "<td>d</td>"), 1 - 1 / 6, 1 - 1 / 6),
        # Another span is another cell, whatever it holds.
        (html('<td colspan="2">ab</td><td>c</td>', "<td>d</td><td>e</td>"), 1 - 1 / 6, 1 - 1 / 6),
        # Tags inside cells count as one character each: 2 more than the 2 there are.
        (html("<td><b>ab</b></td><td>c</td>", "<td>d</td><td>e</td>"), 1 - 0.5 / 7, None),
        ("", 0, 0),
        ("<p>no table</p>", 0, 0),
        ("\x00", 0, 0),
    ],
)
def test_teds(predicted: str, score: float, structure: float | None) -> None:
    assert teds(predicted, SQUARE) == pytest.approx(score)
    if structure is not None:
        assert teds(predicted, SQUARE, structure_only=True) == pytest.approx(structure)


def test_teds_refuses_spans_that_are_no_numbers() -> None:
    with pytest.raises(ValueError, match="two"):
        teds(html('<td colspan="two">a</td>'), SQUARE)


def test_words_are_cut_by_white_space_or_by_jieba() -> None:
    assert words("a  b\nc", chinese=False) == ["a", "b", "c"]
    assert words("北京大学", chinese=True) == ["北京大学"]
    assert has_chinese("a 北")
    assert not has_chinese("a，")


def test_sets_of_words() -> None:
    assert precision_recall_f1(["a", "b", "c", "d"], ["a", "b", "x"]) == pytest.approx((2 / 3, 1 / 2, 4 / 7))
    assert precision_recall_f1([], ["a"]) == (0, 0, 0)
    assert precision_recall_f1(["a"], []) == (0, 0, 0)


def test_bleu_and_meteor_of_the_same_and_of_nothing() -> None:
    text = ["the", "harbour", "was", "closed", "for", "nine", "weeks"]
    assert bleu(text, text) == pytest.approx(1)
    assert bleu(text, []) == 0
    # One chunk of 7 matches: 1 - 0.5 * (1 / 7) ** 3.
    assert meteor(text, text) == pytest.approx(1 - 0.5 / 7**3)
    assert meteor(text, []) == 0
