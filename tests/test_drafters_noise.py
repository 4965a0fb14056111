"""Noise on drafts: as much as asked for, the same on every run, and never a draft that cannot be used."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hsdkit_plugins.drafters._noise.confusable import confusable
from hsdkit_plugins.drafters._noise.image import ImageNoise, degraded, turned_upright
from hsdkit_plugins.drafters._noise.layout import LayoutNoise
from hsdkit_plugins.drafters._noise.markup import glyphs
from hsdkit_plugins.drafters._noise.recognition import RecognitionNoise, misread_region
from hsdkit_plugins.drafters._noise.seeds import numbers
from hsdkit_plugins.drafters.noise import Noise, NoiseConfig
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from rapidfuzz.distance import Levenshtein

from hsdkit.config import compose
from hsdkit.documents import Page
from hsdkit.draft_files import SavedDraft, save_drafts
from hsdkit.drafting import sound
from hsdkit.errors import ConfigError, DrafterError, PluginError
from hsdkit.regions import Box, Draft, Format, Label, Region
from hsdkit.textlayer import TextLayer

PROSE = (
    "the quick brown fox jumps over a lazy dog while the committee discussed 1,024 reports (3.5%) of modern rates; "
    "Clara read them on Monday, No. 17."
)
WORDS = PROSE.split()
TABLE = (
    '<table><tr><th>Revenue &amp; cost</th><th colspan="2">in 2024</th></tr>'
    "<tr><td>a < b</td><td>1,024</td><td></td></tr><tr><td>$x^{2}$</td><td>7.5</td><td>end</td></tr></table>"
)
FORMULA = (
    r"\frac{\partial f}{\partial x} = \sum_{i=1}^{n} x_i^2y^2 \left( \alpha x + \frac12 \right) "
    r"\begin{array}{cc} a & b \\[2pt] c & d \end{array} \hspace{1em} \hat x^\prime"
)
BOX = Box(100, 100, 900, 500)


def prose(words: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(words))


REGIONS = (
    Region(Box(100, 40, 700, 80), Label.TITLE, "On pages", level=1, score=0.5),
    Region(BOX, Label.TEXT, prose(80)),
    Region(Box(100, 520, 900, 640), Label.LIST, "- first item\n  - nested item\n1. numbered"),
    Region(Box(100, 660, 900, 800), Label.TABLE, TABLE, "html"),
    Region(Box(100, 820, 900, 880), Label.FORMULA, FORMULA, "latex"),
    Region(Box(100, 900, 900, 980), Label.FIGURE),
    Region(Box(100, 1000, 900, 1100), Label.TEXT, "文档解析模型在大规模数据集上进行训练，因此日本人未能了解土木工程。"),
)


def page(number: int = 1, seed: int = 0, **more: Any) -> Page:
    """A page with its own print, 1000 x 1200."""
    image = Image.new("RGB", (1000, 1200), "white")
    draw = ImageDraw.Draw(image)
    for y in range(50, 1150, 40):
        draw.text((60, y), prose(12, seed + y), fill="black")
    return Page(number, image, "a.pdf", **more)


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A file with the same draft of pages 1 to 3."""
    drafts = [SavedDraft("a.pdf", n, 1000, 1200, Draft(REGIONS, "pdftext", 0.25, ("a note",))) for n in (1, 2, 3)]
    save_drafts(tmp_path / "d.json", drafts)
    return str(tmp_path / "d.json")


def noise(saved: str, **groups: Any) -> Noise:
    return Noise(NoiseConfig("replay", {"path": saved}, **groups))


ALL = {
    "recognition": RecognitionNoise(0.1, space_loss=0.1, line_loss=0.1, cell_swaps=0.3),
    "layout": LayoutNoise(jitter=0.05, merge=0.3, split=0.3, drop=0.1, reorder=0.3),
    "image": ImageNoise(jpeg=50, contrast=0.2),
}


def test_no_noise_changes_nothing_at_all(saved: str):
    for seed in (0, 7):
        assert replace(noise(saved, seed=seed).draft(page()), seconds=0.25) == Draft(
            REGIONS, "pdftext", 0.25, ("a note",)
        )


def test_one_strength_alone_leaves_the_rest_as_it_was(saved: str):
    draft = noise(saved, recognition=RecognitionNoise(0.1)).draft(page())
    assert [replace(r, text="") for r in draft.regions] == [replace(r, text="") for r in REGIONS]
    assert draft.regions[1].text != REGIONS[1].text
    moved = noise(saved, layout=LayoutNoise(jitter=0.02)).draft(page())
    assert [r.text for r in moved.regions] == [r.text for r in REGIONS]
    assert all(a.box != b.box for a, b in zip(moved.regions, REGIONS, strict=True))


def test_the_draft_says_what_was_done_to_it(saved: str):
    draft = noise(saved, recognition=RecognitionNoise(0.05), seed=3).draft(page())
    assert draft.drafter == "noise(pdftext)"
    assert draft.notes == (
        "a note",
        "noise: recognition.char_error_rate=0.05, recognition.deletions=0.15, recognition.insertions=0.1 (seed 3)",
    )
    assert "insertions" not in noise(saved, layout=LayoutNoise(drop=0.5)).draft(page()).notes[-1]


# -- the same again


def test_the_order_of_pages_does_not_matter(saved: str):
    pages = [page(n, seed=n) for n in (1, 2, 3)]
    first = noise(saved, **ALL)
    forward = [first.draft(p).regions for p in pages]
    backward = [noise(saved, **ALL).draft(p).regions for p in reversed(pages)]
    assert forward == backward[::-1]
    assert len(set(forward)) == 3


def test_another_process_makes_the_same_errors(saved: str):
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "import test_drafters_noise as t\n"
        "print(ascii(t.noise(sys.argv[2], **t.ALL).draft(t.page()).regions))"
    )
    here = str(Path(__file__).parent)
    out = subprocess.run(
        [sys.executable, "-c", code, here, saved], capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": "5", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert out.stdout.strip() == ascii(noise(saved, **ALL).draft(page()).regions)


def test_another_seed_makes_other_errors(saved: str):
    assert len({noise(saved, **ALL, seed=s).draft(page()).regions for s in range(4)}) == 4


def test_more_noise_of_one_kind_leaves_the_other_kinds_as_they_were(saved: str):
    drop = LayoutNoise(drop=0.4)
    kept = [r.box for r in noise(saved, layout=drop).draft(page()).regions]
    misread = noise(saved, layout=drop, recognition=RecognitionNoise(0.2)).draft(page()).regions
    assert [r.box for r in misread] == kept
    whole = noise(saved, recognition=RecognitionNoise(0.2)).draft(page()).regions
    assert set(misread) <= set(whole)


# -- as much as asked for


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


# -- never malformed


class Tags(HTMLParser):
    """The tags of a table, and whether each is closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(f"<{tag} {attrs}>")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.tags.append(f"</{tag}>")


def check_latex(text: str) -> None:
    depth = 0
    for match in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        assert depth >= 0
    assert depth == 0
    assert not re.search(r"[\^_]\s*(?:[}&^_]|\\\\|\\right|\\end|$)", text)
    assert not re.search(r"\^(?:\{[^{}]*\}|[^{\\])\s*\^", text)


strengths = st.floats(0, 1)
recognition = st.builds(
    RecognitionNoise, strengths, st.floats(0, 0.5), st.floats(0, 0.5), strengths, strengths, strengths
)
layout = st.builds(LayoutNoise, strengths, strengths, strengths, strengths, strengths)
texts = st.one_of(
    st.text(max_size=60), st.text(st.sampled_from("ab \n\t|-1.<>&;$\\{}^_文"), max_size=40),
    st.sampled_from([TABLE, FORMULA, "- a\n- b", prose(30)]),
)  # fmt: skip
boxes = st.builds(lambda x, y, w, h: Box(x, y, x + w, y + h), *[st.floats(-50, 1300)] * 2, *[st.floats(0, 1000)] * 2)
any_region = st.builds(
    Region, boxes, st.sampled_from(list(Label)), texts, st.sampled_from(["text", "html", "latex"]),
    st.none() | st.integers(1, 6), st.none() | st.floats(0, 1),
)  # fmt: skip


class Fixed:
    """A base whose draft the test decides."""

    name = "fixed"

    def __init__(self, draft: Any) -> None:
        self.made = draft

    def draft(self, page: Page) -> Any:
        return self.made


SMALL = Page(1, Image.new("RGB", (100, 120)), "a.pdf")


@settings(max_examples=60, deadline=None)
@given(st.lists(any_region, max_size=6), recognition, layout, st.integers(0, 9))
def test_any_noise_on_any_draft_gives_a_sound_draft(regions, how, where, seed):
    drafter = Noise(NoiseConfig("pdftext", {}, seed, layout=where, recognition=how))
    drafter.base = Fixed(Draft(tuple(regions)))
    draft = drafter.draft(SMALL)
    assert sound(draft) == (draft, ())
    assert all(r.label in {x.label for x in regions} for r in draft.regions)


@settings(max_examples=40, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 999))
def test_misread_cells_and_formulas_still_parse(rate: float, spaces: float, seed: int):
    how = RecognitionNoise(rate, space_loss=spaces)
    table = misread_region(Region(BOX, Label.TABLE, TABLE, "html"), how, seed, "p", 0).text
    assert Tags(table).tags == Tags(TABLE).tags
    assert table.count("&amp;") == 1
    for cell in re.findall(r"\$.*?\$", table):
        check_latex(cell.strip("$"))
    formula = misread_region(Region(BOX, Label.FORMULA, FORMULA, "latex"), how, seed, "p", 0).text
    commands = re.compile(r"\\(?:[A-Za-z]+|.)")
    assert commands.findall(formula) == commands.findall(FORMULA)
    check_latex(formula)
    items = misread_region(REGIONS[2], how, seed, "p", 0).text.split("\n")
    assert [re.match(r"\s*(?:-|1\.) ", i)[0] for i in items] == ["- ", "  - ", "1. "]


@settings(max_examples=30, deadline=None)
@given(strengths, strengths, strengths, st.integers(0, 99))
def test_tables_stay_tables_when_rows_are_lost_cells_swapped_and_regions_cut(lines, swaps, cut, seed):
    drafter = Noise(
        NoiseConfig(
            "pdftext", {}, seed,
            layout=LayoutNoise(split=cut), recognition=RecognitionNoise(0.2, line_loss=lines, cell_swaps=swaps),
        )
    )  # fmt: skip
    drafter.base = Fixed(Draft((REGIONS[3],)))
    for region in drafter.draft(SMALL).regions:
        assert Tags(region.text).open == []
        assert region.text.startswith("<table>")
        assert region.text.endswith("</table>")


@given(st.sampled_from(REGIONS), texts, st.sampled_from(["text", "html", "latex"]))
def test_the_pieces_of_a_text_are_the_text(region: Region, text: str, form: Format):
    assert "".join(t for t, _ in glyphs(replace(region, text=text, format=form))) == text


def test_what_looks_alike_is_never_the_character_itself():
    for c in map(chr, [*range(33, 127), *range(0xC0, 0x180), *range(0x4E00, 0x4E80), *range(0xAC00, 0xAC10)]):
        assert c not in confusable(c)
        assert all(len(other) in (1, 2) for other in confusable(c))
    assert "0" in confusable("O")
    assert "已" in confusable("己")
    assert "e" in confusable("é")


def test_malformed_regions_of_the_base_are_left_out_and_told():
    drafter = Noise(NoiseConfig("pdftext", recognition=RecognitionNoise(0.5)))
    drafter.base = Fixed(Draft((Region(Box(0, 0, float("nan"), 1), Label.TEXT, "x"), REGIONS[1])))
    draft = drafter.draft(page())
    assert len(draft.regions) == 1
    assert "malformed" in " ".join(draft.notes)


# -- the page, as the base sees it


class Looking(Fixed):
    def draft(self, page: Page) -> Draft:
        self.page = page
        if page.read_text:
            _ = page.text_layer
        return Draft((Region(BOX, Label.TEXT, "seen"),), "looking")


@pytest.mark.parametrize(
    "strength",
    [{"blur": 2.0}, {"noise": 20}, {"jpeg": 80}, {"resolution": 0.5}, {"skew": 2.0}, {"contrast": 0.5}],
    ids=str,
)
def test_the_base_drafts_a_degraded_copy_of_the_same_page(strength: dict[str, Any]):
    before = page(2, read_pdf=lambda: b"%PDF")
    pixels = np.asarray(before.image).copy()
    drafter = Noise(NoiseConfig("pdftext", image=ImageNoise(**strength)))
    drafter.base = looking = Looking(None)
    drafter.draft(before)
    seen = looking.page
    assert (seen.number, seen.source, seen.image.size, seen.image.mode) == (2, "a.pdf", (1000, 1200), "RGB")
    assert seen.pdf is None  # else a drafter that is fed PDFs would see the clean page
    assert np.mean(np.abs(np.asarray(seen.image, float) - pixels)) > 0.3
    assert np.array_equal(np.asarray(before.image), pixels)


def test_stronger_image_noise_is_further_from_the_page():
    clean = page().image.crop((0, 0, 500, 300))

    def distance(how: ImageNoise) -> float:
        noisy = degraded(clean, how, numbers(0, "p", "image"))
        return float(np.abs(np.asarray(noisy, float) - np.asarray(clean, float)).mean())

    for name, weak, strong in (("blur", 1, 3), ("noise", 5, 25), ("jpeg", 20, 95), ("resolution", 0.3, 0.8),
                               ("contrast", 0.2, 0.8)):  # fmt: skip
        assert 0 < distance(ImageNoise(**{name: weak})) < distance(ImageNoise(**{name: strong})), name


def test_boxes_found_on_a_skewed_page_are_turned_back():
    image = Image.new("RGB", (1000, 1200), "white")
    ImageDraw.Draw(image).rectangle((700, 200, 719, 219), fill="black")
    skewed = np.asarray(degraded(image, ImageNoise(skew=3), numbers(0, "p", "image")).convert("L"))
    ys, xs = np.nonzero(skewed < 128)
    assert xs.mean() > 720  # clockwise: what is above the middle moves to the right
    found = turned_upright(Box(xs.min(), ys.min(), xs.max() + 1, ys.max() + 1), 3, 1000, 1200)
    assert ((found.x0 + found.x1) / 2, (found.y0 + found.y1) / 2) == pytest.approx((710, 210), abs=1)


def test_a_base_that_reads_the_text_layer_is_told_to_be_out_of_reach_of_image_noise():
    drafter = Noise(NoiseConfig("pdftext", image=ImageNoise(blur=2)))
    drafter.base = Looking(None)
    assert "text layer" not in " ".join(drafter.draft(page()).notes)
    layer = TextLayer((), (), ())
    assert "drafter 'pdftext' read the PDF's text layer, which image noise does not change" in drafter.draft(
        page(read_text=lambda: layer)
    ).notes  # fmt: skip


def test_what_the_base_expects_to_take_and_its_failures_pass_through(saved: str):
    drafter = noise(saved, **ALL)
    assert drafter.expected_seconds(page()) == 0.0
    drafter.base.expected_seconds = lambda page: 7.5  # type: ignore[attr-defined]
    assert drafter.expected_seconds(page()) == 7.5
    with pytest.raises(DrafterError, match=r"a\.pdf, page 9: no draft of it"):
        drafter.draft(page(9))


# -- configuration


def settings_of(*overrides: str) -> NoiseConfig:
    options = compose(["drafter=noise", "drafter.base=pdftext", *overrides]).drafter.options
    assert isinstance(options, NoiseConfig)
    return options


def test_strengths_and_options_of_the_base_are_set_by_dotted_keys(tmp_path: Path):
    keys = (
        "drafter.recognition.char_error_rate=0.05", "drafter.image.blur=2", "drafter.layout={drop: 0.1, split: 0.2}",
        "drafter.base_options.least_score=0.3", "drafter.seed=4",
    )  # fmt: skip
    config = settings_of(*keys)
    assert config.recognition == RecognitionNoise(0.05)
    assert config.image == ImageNoise(blur=2)
    assert config.layout == LayoutNoise(drop=0.1, split=0.2)
    assert Noise(config).base.config.least_score == 0.3  # type: ignore[attr-defined]
    (tmp_path / "mine.yaml").write_text(compose(["drafter=noise", "drafter.base=pdftext", *keys]).to_yaml())
    again = compose([f"experiment={tmp_path / 'mine.yaml'}"]).drafter.options
    assert again == config


def test_noise_can_be_put_on_noise():
    config = settings_of(
        "drafter.base=noise", "drafter.base_options.base=pdftext", "drafter.base_options.image.blur=2",
        "drafter.base_options.base_options.least_score=0.3",
    )  # fmt: skip
    inner = Noise(config).base
    assert isinstance(inner, Noise)
    assert inner.config.image == ImageNoise(blur=2)
    assert inner.config.base_options == {"least_score": 0.3}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("drafter.image.blurr=2", "has no option 'image.blurr': did you mean drafter.image.blur?"),
        ("drafter.blur=2", "did you mean drafter.image.blur?"),
        ("drafter.image={nois: 2}", "has no option 'image.nois': did you mean drafter.image.noise or"),
        ("drafter.image={noise: much}", "drafter.image.noise='much' is not a number"),
        ("drafter.image=2", "drafter.image='2' is not a mapping"),
        ("drafter.base_options.least_scor=1", "did you mean drafter.base_options.least_score?"),
        ("drafter.base_options.least_score=x", "drafter.base_options.least_score='x' is not a number"),
        ("drafter.image.jpeg=100", "image.jpeg=100: must be between 0 and 99"),
        ("drafter.image.skew=90", "image.skew=90: must be between -45 and 45"),
        ("drafter.layout.drop=2", "layout.drop=2: must be between 0 and 1"),
        ("drafter.recognition.char_error_rate=5", "recognition.char_error_rate=5: must be between 0 and 1"),
        ("drafter.recognition={deletions: 0.8, insertions: 0.7}", "together 1.5, above 1"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(override: str, said: str):
    with pytest.raises(ConfigError) as caught:
        settings_of(override)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_base_is_refused_with_the_nearest():
    with pytest.raises(PluginError, match=r"drafter\.base=rapidorc: no drafter named 'rapidorc': did you mean 'rapid"):
        settings_of("drafter.base=rapidorc")


def test_base_drafts_are_cached_whatever_the_noise(saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from hsdkit.draft_cache import cached

    monkeypatch.setenv("HSDKIT_HOME", str(tmp_path / "home"))
    asked = []

    class Costly(Fixed):
        cache_key = "costly 1"

        def draft(self, page: Page) -> Draft:
            asked.append(page.number)
            return Draft(REGIONS, "costly")

    texts = set()
    for rate in (0.0, 0.05, 0.1):
        drafter = noise(saved, recognition=RecognitionNoise(rate))
        drafter.base = Costly(None)
        wrapped = cached(drafter)
        texts.add(wrapped.draft(page()).regions[1].text)
    assert asked == [1]
    assert len(texts) == 3
