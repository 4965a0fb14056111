"""Noise on drafts: as much as asked for."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hsdkit_plugins.drafters._noise.layout import LayoutNoise
from hsdkit_plugins.drafters._noise.recognition import RecognitionNoise, misread_region
from noisy import BOX, noise, page, prose, save
from rapidfuzz.distance import Levenshtein

from hsdkit.draft_files import SavedDraft, save_drafts
from hsdkit.regions import Box, Draft, Label, Region


@pytest.fixture
def saved(tmp_path: Path) -> str:
    return save(tmp_path)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("text", [prose(4000), "文档解析模型在大规模数据集上进行训练，因此日本人未能了解。" * 500])
def test_the_measured_error_rate_is_the_asked_one(rate: float, text: str):
    region = Region(BOX, Label.TEXT, text)
    got = misread_region(region, RecognitionNoise(rate), 0, "page", 0).text
    measured = Levenshtein.distance(text, got) / len(text)
    # Four standard errors, and up to 6% of the errors cancel out or meet (a deletion beside an insertion).
    bound = 4 * (rate * (1 - rate) / len(text)) ** 0.5
    assert 0.94 * rate - bound <= measured <= rate + bound


def test_the_kinds_of_errors_have_their_shares():
    text = prose(4000)
    region = Region(BOX, Label.TEXT, text)

    def edits(how: RecognitionNoise) -> dict[str, int]:
        found = Levenshtein.editops(text, misread_region(region, how, 0, "page", 0).text)
        return {tag: sum(op.tag == tag for op in found) for tag in ("replace", "delete", "insert")}

    only_lost = edits(RecognitionNoise(0.05, deletions=1, insertions=0))
    assert only_lost["delete"] > 0.95 * sum(only_lost.values())
    only_added = edits(RecognitionNoise(0.05, deletions=0, insertions=1))
    assert only_added["insert"] > 0.8 * sum(only_added.values())  # at a space nothing is added: it is lost
    mixed = edits(RecognitionNoise(0.05))
    assert mixed["replace"] > 0.5 * sum(mixed.values())


def test_the_errors_of_a_low_rate_are_among_those_of_a_higher_one():
    region = Region(BOX, Label.TEXT, prose(400))
    low, high = (misread_region(region, RecognitionNoise(r, 0, 0), 0, "p", 0).text.split() for r in (0.02, 0.06))
    words = region.text.split()
    assert Levenshtein.distance(words, low) < Levenshtein.distance(words, high)
    assert Levenshtein.distance(low, high) <= Levenshtein.distance(words, high)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_spaces_lines_and_cells_are_lost_and_swapped_as_often_as_asked(rate: float):
    text = prose(3000)
    spaces = misread_region(Region(BOX, Label.TEXT, text), RecognitionNoise(space_loss=rate), 0, "p", 0).text
    assert spaces.replace(" ", "") == text.replace(" ", "")
    assert 1 - spaces.count(" ") / text.count(" ") == pytest.approx(rate, abs=0.04)
    items = "\n".join(f"- item {i}" for i in range(1000))
    kept = misread_region(Region(BOX, Label.LIST, items), RecognitionNoise(line_loss=rate), 0, "p", 0).text
    assert set(kept.split("\n")) <= set(items.split("\n"))
    assert 1 - len(kept.split("\n")) / 1000 == pytest.approx(rate, abs=0.06)
    rows = "".join("<tr>" + "".join(f"<td>{r}.{c}</td>" for c in range(10)) + "</tr>" for r in range(100))
    table = Region(BOX, Label.TABLE, f"<table>{rows}</table>", "html")
    swapped = misread_region(table, RecognitionNoise(cell_swaps=rate), 0, "p", 0).text
    cells = [re.findall(r"<td>(.*?)</td>", t) for t in (table.text, swapped)]
    assert sorted(cells[0]) == sorted(cells[1])
    assert np.mean([a != b for a, b in zip(*cells, strict=True)]) == pytest.approx(rate, abs=0.12 * rate + 0.05)
    fewer = misread_region(table, RecognitionNoise(line_loss=rate), 0, "p", 0).text
    assert 1 - fewer.count("<tr>") / 100 == pytest.approx(rate, abs=0.15)


def test_lines_of_a_paragraph_are_lost_whole():
    # 120 words in 12 lines of print
    text = prose(120)
    size = 0.4 * 1.0 * len(text) / 12
    region = Region(Box(0, 0, 10 * size, 120), Label.TEXT, text)
    kept = misread_region(region, RecognitionNoise(line_loss=0.4), 2, "p", 0).text
    words, left = text.split(), kept.split()
    assert 20 < len(left) < 110
    gaps = [op for op in Levenshtein.opcodes(words, left) if op.tag != "equal"]
    assert all(op.tag == "delete" for op in gaps)
    assert len(gaps) <= 12


@pytest.mark.parametrize("width", [5e-324, 1e-9, 0.0, 1e300])
def test_a_sliver_of_a_box_has_no_more_lines_than_letters(width: float):
    region = Region(Box(0, 0, width, 1000), Label.TEXT, prose(30))
    assert len(misread_region(region, RecognitionNoise(line_loss=0.5), 0, "p", 0).text) <= len(region.text)


@pytest.mark.parametrize(
    ("many", "form"),
    [("$" + "_" * 40_000, "text"), ("\\(" * 40_000, "text"), ("<!--" * 20_000, "html"), ("<tr>" * 20_000, "html"),
     ("<td>" * 20_000, "html"), ("\\\\[" * 20_000, "latex")],
    ids=["dollar", "parenthesis", "comment", "row", "cell", "break"],
)  # fmt: skip
def test_beginnings_without_an_end_take_linear_time(many: str, form: Any):
    """Looking for the end of each would take minutes."""
    region = Region(BOX, Label.TEXT, many, form)
    start = time.process_time()
    misread_region(region, RecognitionNoise(0.1, line_loss=0.1, cell_swaps=0.1), 0, "p", 0)
    assert time.process_time() - start < 8


def test_layout_strengths_are_shares(saved: str):
    many = tuple(Region(Box(10, i, 900, i + 9), Label.TEXT, prose(12, i)) for i in range(1000))
    save_drafts(Path(saved), [SavedDraft("a.pdf", 1, 1000, 1200, Draft(many))])

    def regions(**how: float) -> tuple[Region, ...]:
        return noise(saved, layout=LayoutNoise(**how)).draft(page()).regions

    assert len(regions(drop=0.3)) == pytest.approx(700, abs=60)
    assert len(regions(merge=0.3)) == pytest.approx(700, abs=60)
    halves = regions(split=0.3)
    assert len(halves) == pytest.approx(1300, abs=60)
    text = " ".join(r.text for r in many)
    assert " ".join(r.text for r in halves) == text
    assert " ".join(r.text for r in regions(merge=0.3)) == text
    order = [int(r.box.y0) for r in regions(reorder=0.3)]
    assert sorted(order) == list(range(1000))
    assert sum(a < b for a, b in pairwise(order)) < 800
    off = [(a.box.x1 - b.box.x1) / b.box.width for a, b in zip(regions(jitter=0.05), many, strict=True)]
    assert np.std(off) == pytest.approx(0.05, rel=0.15)
