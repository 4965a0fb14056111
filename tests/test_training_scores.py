"""What the scores of the embedded model mean: tables as trees, blocks in their order, the same pages every time."""

import pytest

pytest.importorskip("apted")
pytest.importorskip("lxml")
evaluate = pytest.importorskip("training.evaluate")
canvas = pytest.importorskip("training.canvas")
words = pytest.importorskip("training.words")

TABLE = "<table><tr><td>a</td><td>bb</td></tr><tr><td>c</td><td>d</td></tr></table>"


def test_teds_counts_cells_rows_and_spans():
    assert evaluate.teds(TABLE, TABLE) == 1
    assert evaluate.teds("no table", TABLE) == 0
    size = 7  # the table, two rows, four cells
    assert evaluate.teds(TABLE.replace("<td>c</td>", ""), TABLE) == pytest.approx(1 - 1 / size)
    assert evaluate.teds(TABLE.replace("bb", "bx"), TABLE) == pytest.approx(1 - 0.5 / size)
    assert evaluate.teds(TABLE.replace("<td>a", '<td colspan="2">a'), TABLE) == pytest.approx(1 - 1 / size)
    assert evaluate.teds(TABLE.removesuffix("</table>"), TABLE) == 1


def test_order_is_right_only_if_the_blocks_come_in_their_order():
    blocks = [f"block number {word} is long enough" for word in ("seventeen", "forty", "ninety-two")]
    assert evaluate.order_right("\n\n".join(blocks), "\n\n".join(blocks))
    assert not evaluate.order_right("\n\n".join(blocks[::-1]), "\n\n".join(blocks))
    assert not evaluate.order_right(blocks[0], "\n\n".join(blocks))


def test_the_held_out_pages_are_always_the_same():
    if not (canvas.FONT_ROOT / "lato").exists() or not words.DICTIONARY.exists():
        pytest.skip("needs the Debian fonts and the word list")
    test = evaluate.TESTS[0]
    assert [p.text for p in evaluate.held_pages(test, 2)] == [p.text for p in evaluate.held_pages(test, 2)]
