"""dots.ocr's page output: records from a drafter's regions and back, and how far drafted records are accepted."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hsdkit_plugins.targets.dots_ocr import CATEGORIES, PROFILE, DotsTarget
from models import target_of
from models_dots import make_dots
from PIL import Image
from simulate import licence, misread, tokens_per_step

from hsdkit.decoding.codec import TokenizerCodec
from hsdkit.decoding.matching import build
from hsdkit.decoding.tree import PrefixTree
from hsdkit.protocols import DecodeRequest, DecodeSettings
from hsdkit.regions import Box, Label, Region

#: An image in whole cells: the model sees it as it is.
PAGE = Image.new("RGB", (42 * 28, 56 * 28), "white")

MIXED = (
    Region(Box(10, 10, 200, 30), Label.TITLE, "Harbour report"),
    Region(Box(10, 40, 290, 60), Label.TEXT, 'He said "no"\nto C:\\temp'),
    Region(Box(10, 70, 290, 90), Label.LIST, "- one\n- two"),
    Region(Box(10, 95, 290, 110), Label.FIGURE),
    Region(Box(10, 120, 290, 140), Label.TABLE, "<table><tr><td>a</td></tr></table>", "html"),
    Region(Box(10.4, 150.6, 290, 160), Label.FORMULA, r"\frac{x}{2}", "latex"),
    Region(Box(10, 180, 290, 195), Label.PAGE_NUMBER, "港 3"),
)

#: As the model writes them: spacing, escapes, marks and delimiters of outputs that users have published.
WRITTEN = (
    '[{"bbox": [10, 10, 200, 30], "category": "Title", "text": "# Harbour report"}, '
    '{"bbox": [10, 40, 290, 60], "category": "Text", "text": "He said \\"no\\" to C:\\\\temp"}, '
    '{"bbox": [10, 70, 290, 90], "category": "List-item", "text": "* one\\n* two"}, '
    '{"bbox": [10, 95, 290, 110], "category": "Picture"}, '
    '{"bbox": [10, 120, 290, 140], "category": "Table", "text": "<table><tr><td>a</td></tr></table>"}, '
    '{"bbox": [10, 151, 290, 160], "category": "Formula", "text": "$$ \\\\frac{x}{2} $$"}, '
    '{"bbox": [10, 180, 290, 195], "category": "Page-footer", "text": "港 3"}]'
)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> DotsTarget:
    """The processor takes the whole page; its tokenizer sets digits apart, as the published one does."""
    folder = make_dots(tmp_path_factory.mktemp("dots"))
    return target_of(PROFILE, folder, max_pixels=PAGE.width * PAGE.height)


def test_a_page_draft_is_written_as_the_model_writes_a_page(target: DotsTarget) -> None:
    drafts = target.page_drafts(MIXED, PAGE)
    assert len(drafts) == len(MIXED)
    assert target.separator.join(drafts) == WRITTEN
    assert [r["category"] for r in json.loads(WRITTEN)] == [CATEGORIES[r.label] for r in MIXED]


def test_what_was_read_in_a_crop_takes_the_drafters_place(target: DotsTarget) -> None:
    drafts = target.page_drafts(MIXED, PAGE, {1: "He said “no”"})
    assert json.loads(target.separator.join(drafts))[1]["text"] == "He said “no”"


def test_every_label_has_one_of_the_categories_of_the_prompt(target: DotsTarget) -> None:
    assert set(CATEGORIES) == set(Label)
    listed = target.prompt(None).split("The possible categories are [")[1].split("]")[0]
    assert {f"'{name}'" for name in CATEGORIES.values()} == set(listed.split(", "))


def test_an_output_names_its_regions_and_becomes_markdown(target: DotsTarget) -> None:
    read = target.regions(WRITTEN, PAGE)
    for region, back in zip(MIXED, read, strict=True):
        corners = [(b.x0, b.y0, b.x1, b.y1) for b in (region.box, back.box)]
        assert corners[1] == pytest.approx(corners[0], abs=0.5)
        assert CATEGORIES[back.label] == CATEGORIES[region.label]
        if region.format != "text":
            assert (back.text, back.format) == (region.text, region.format)
    table = "<table><tr><td>a</td></tr></table>"
    text = f'# Harbour report\n\nHe said "no" to C:\\temp\n\n- one\n- two\n\n{table}\n\n$$\n\\frac{{x}}{{2}}\n$$'
    assert target.clean(WRITTEN) == text, "pictures and page numbers are left out"
    assert target.clean(WRITTEN[: WRITTEN.index(" said")], "length") == "# Harbour report\n\nHe"


@pytest.mark.parametrize("size", [(827, 1169), (1654, 2339), (60, 40), (2000, 5)])
def test_boxes_are_in_pixels_of_the_image_that_the_model_sees(target: DotsTarget, size: tuple[int, int]) -> None:
    image = Image.new("RGB", size, "white")
    grid = target.inputs([DecodeRequest(image, "")])["image_grid_thw"][0]
    given = target.prepare(image)
    x, y = target.box_scale(image)
    assert (given.height * y, given.width * x) == pytest.approx((14 * int(grid[1]), 14 * int(grid[2])))
    whole = (Region(Box(0, 0, size[0], size[1]), Label.TEXT, "all"),)
    (draft,) = target.page_drafts(whole, image)
    assert json.loads(draft)[0]["bbox"] == [0, 0, round(size[0] * x), round(size[1] * y)]
    (read,) = target.regions(draft, image)
    assert read.box.x1 == pytest.approx(size[0], abs=0.6 / x)
    assert read.box.y1 == pytest.approx(size[1], abs=0.6 / y)


# -- an oracle that writes the page: how far its records are drafted


def regions_of_a_page() -> list[Region]:
    rng = random.Random(5)
    labels = [Label.TITLE, Label.TEXT, Label.TEXT, Label.HEADING, Label.TEXT, Label.LIST, Label.FIGURE, Label.CAPTION]
    regions, y = [], 60
    for index, paragraph in enumerate(licence()):
        label, x, height = labels[index % len(labels)], rng.choice([96, 97, 600]), rng.randint(14, 26)
        text = "" if label is Label.FIGURE else paragraph[: rng.randint(20, 300)]
        regions.append(Region(Box(x, y, x + rng.randint(300, 480), y + height), label, text))
        y += height + rng.randint(4, 12)
    return regions


def moved(regions: Sequence[Region], by: int) -> list[Region]:
    """The regions with every edge up to `by` pixels off."""
    rng = random.Random(1)

    def edge(value: float) -> float:
        return value + rng.randint(-by, by)

    boxes = [Box(edge(r.box.x0), edge(r.box.y0), edge(r.box.x1), edge(r.box.y1)) for r in regions]
    return [replace(region, box=box) for region, box in zip(regions, boxes, strict=True)]


class Oracle:
    def __init__(self, target: DotsTarget) -> None:
        self.target, self.codec = target, TokenizerCodec(target.tokenizer)
        self.truth = regions_of_a_page()
        self.output = self.codec.encode(target.separator.join(target.page_drafts(self.truth, PAGE)))

    def tokens_a_step(self, drafts: tuple[str, ...], separator: str) -> float:
        return tokens_per_step(build(DecodeSettings(), drafts, self.codec, separator), self.output)

    def with_records(self, regions: Sequence[Region]) -> float:
        return self.tokens_a_step(self.target.page_drafts(regions, PAGE), self.target.separator)

    def with_text_alone(self, regions: Sequence[Region]) -> float:
        return self.tokens_a_step(tuple(self.target.render(r) for r in regions if r.readable), "\n\n")


@pytest.fixture(scope="module")
def oracle(target: DotsTarget) -> Oracle:
    return Oracle(target)


def test_records_with_exact_boxes_are_accepted_whole(oracle: Oracle) -> None:
    """Of 128 tokens a step, boxes, keys and text alike."""
    assert oracle.with_records(oracle.truth) > 110
    assert oracle.with_text_alone(oracle.truth) < 10


@pytest.mark.parametrize(("by", "tokens"), [(1, 45), (3, 32)])
def test_boxes_some_pixels_off_cost_less_than_a_step_an_edge(oracle: Oracle, by: int, tokens: int) -> None:
    """158 tokens a record, of which the box is some twenty."""
    regions = moved(oracle.truth, by)
    assert oracle.with_records(regions) > tokens
    assert oracle.with_records(regions) > 4 * oracle.with_text_alone(regions)


def test_so_do_they_with_reading_errors(oracle: Oracle) -> None:
    rng = random.Random(2)
    regions = [replace(r, text=misread(r.text, 0.02, rng)) for r in moved(oracle.truth, 3)]
    assert oracle.with_records(regions) > 3 * oracle.with_text_alone(regions)


def test_at_a_boundary_the_next_record_is_any_region_not_read_yet(oracle: Oracle) -> None:
    shuffled = list(oracle.truth)
    random.Random(3).shuffle(shuffled)
    assert oracle.with_records(shuffled) > 40


def test_after_a_record_the_next_regions_box_key_and_text_are_drafted(oracle: Oracle) -> None:
    target, codec = oracle.target, oracle.codec
    drafts = target.page_drafts(oracle.truth, PAGE)
    matcher = build(DecodeSettings(), drafts, codec, target.separator)
    assert matcher is not None
    written = codec.encode(target.separator.join(drafts[:2]))
    matcher.update(written, 0, "")
    tree = PrefixTree(matcher.propose(127), 127).pack(written[-1], 127)
    node, accepted = 0, b""
    for token in oracle.output[len(written) :]:
        if (child := tree.child(node, token)) is None:
            break
        node, accepted = child, accepted + codec.token_bytes(token)
    box = oracle.truth[2].box
    edges = f"{box.x0:.0f}, {box.y0:.0f}, {box.x1:.0f}, {box.y1:.0f}"
    head = f'"}}, {{"bbox": [{edges}], "category": "Text", "text": "'
    assert accepted.decode().startswith(head)
    assert len(accepted) > len(head) + 40
