"""Boxes in structured drafts: numbers that are a little off cost little, and what they have in common is learned."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from formats import DIALECTS, codec, drafts_of, page, separator_of, written
from hypothesis import given, settings
from hypothesis import strategies as st
from simulate import characters, licence, subwords, tokens_per_step

from hsdkit.decoding.codec import TokenizerCodec
from hsdkit.decoding.matching import build
from hsdkit.decoding.matching.boxes import Boxes
from hsdkit.decoding.matching.cursor import Cursor
from hsdkit.decoding.matching.drafttext import DraftText
from hsdkit.protocols import DecodeSettings
from hsdkit.regions import Box, Label, Region

STRUCTURED = ["records", "grounding", "grounding, a block a line", "doctags"]
CODECS = {"single digits": codec, "subwords": subwords, "characters": characters}


def long_page(seed: int = 0) -> tuple[Region, ...]:
    """Thirty paragraphs in two columns."""
    dice = random.Random(seed)
    regions, top = [], 20
    for number, text in enumerate(licence()[:30]):
        left = 60 if number < 15 else 420
        top = 20 if number == 15 else top
        height = 30 + dice.randrange(30)
        box = Box(left, top, left + 320 + dice.randrange(2), top + height)
        regions.append(Region(box, Label.TEXT, text[: dice.choice((60, 120, 200))]))
        top += height + 8
    return tuple(regions)


def moved(regions: tuple[Region, ...], by: tuple[int, int, int, int], jitter: int = 0) -> tuple[Region, ...]:
    dice = random.Random(4)

    def shift(box: Box) -> Box:
        values = zip((box.x0, box.y0, box.x1, box.y1), by, strict=True)
        return Box(*(v + d + dice.randint(-jitter, jitter) for v, d in values))

    return tuple(replace(r, box=shift(r.box)) for r in regions)


def gain(name: str, drafted: tuple[Region, ...], text_codec: TokenizerCodec, nodes: int = 127) -> float:
    dialect = DIALECTS[name]
    output = text_codec.encode(written(long_page(), dialect))
    matcher = build(DecodeSettings(), drafts_of(drafted, dialect), text_codec, separator_of(dialect))
    return tokens_per_step(matcher, output, nodes)


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize(("nodes", "least"), [(15, 8.2), (31, 12.4), (127, 17.0)])
def test_boxes_off_by_up_to_three_pixels_leave_a_multiple_of_the_steps_of_matching_text(
    name: str, nodes: int, least: float
) -> None:
    """Read as text alone they give 7.9 to 9.3, 10.3 to 12.3 and 12.1 to 15.1 tokens a step."""
    found = gain(name, moved(long_page(), (0, 0, 0, 0), jitter=3), codec(), nodes)
    print(f"{name}, {nodes} nodes: {found:.1f} tokens a step")
    assert found > least


@pytest.mark.parametrize("name", STRUCTURED)
def test_a_constant_shift_is_learned(name: str) -> None:
    """As text alone: 11.2 to 13.6."""
    found = gain(name, moved(long_page(), (-2, 1, 3, -1)), codec())
    print(f"{name}: {found:.1f} tokens a step")
    assert found > 27


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("shift", [(-8, 7, 8, -7), (40, 40, 40, 40)])
def test_a_large_shift_is_learned_or_does_no_harm(name: str, shift: tuple[int, int, int, int]) -> None:
    """Beyond what is expected of any drafter, and beyond what is taken for the same box."""
    found = gain(name, moved(long_page(), shift), codec())
    print(f"{name}, {shift}: {found:.1f} tokens a step")
    assert found > (20 if max(shift) < 40 else 6)


def test_where_boxes_have_nothing_in_common_the_likeliest_number_is_drafted_all_the_same() -> None:
    _, boxes = boxes_of("[50, 50, 90, 90]", codec())
    output = bytearray()
    for shift in range(-12, 13):
        output += b"[%d, %d, %d, %d] " % (50 + shift, 50 - shift, 90 + shift, 90 - shift)
        boxes.watch(output)
    assert all(boxes.options(number) for number in boxes.numbers)


def test_the_end_of_a_box_of_tags_begins_no_box() -> None:
    _, boxes = boxes_of("<loc_2><loc_3><loc_4><loc_9>", codec())
    assert boxes.begun(bytearray(b"<text><loc_2><loc_3><loc_4>"), [0])
    assert boxes.begun(bytearray(b"<text><loc_1><loc_2><loc_3><loc_4>"), [0]) == []


@pytest.mark.parametrize("name", STRUCTURED)
def test_regions_in_another_order_are_found_by_their_boxes(name: str) -> None:
    """As text alone: 6.9 to 9.7."""
    drafted = list(moved(long_page(), (0, 0, 0, 0), jitter=2))
    random.Random(1).shuffle(drafted)
    found = gain(name, tuple(drafted), codec())
    print(f"{name}: {found:.1f} tokens a step")
    assert found > 8


@pytest.mark.parametrize("text_codec", CODECS)
def test_any_tokenizer_gains(text_codec: str) -> None:
    """Also those that put several digits, or the space before them, into one token."""
    made = CODECS[text_codec]()
    paper = build(
        DecodeSettings(matching="paper"),
        drafts_of(moved(long_page(), (0, 0, 0, 0), jitter=3), DIALECTS["records"]),
        made,
        separator_of(DIALECTS["records"]),
    )
    output = made.encode(written(long_page(), DIALECTS["records"]))
    found = gain("records", moved(long_page(), (0, 0, 0, 0), jitter=3), made)
    print(f"{text_codec}: {found:.1f} tokens a step, {tokens_per_step(paper, output):.1f} with paper matching")
    assert found > 2 * tokens_per_step(paper, output)


def boxes_of(text: str, text_codec: TokenizerCodec) -> tuple[DraftText, Boxes]:
    draft = DraftText([text], text_codec)
    return draft, Boxes(draft, text_codec)


def test_every_way_reads_on_behind_the_number_as_the_draft_does() -> None:
    text = 'x", "bbox": [99, 100, 300, 405], "category": "Text"'
    draft, boxes = boxes_of(text, codec())
    paths = boxes.paths(Cursor(0, [], 0, 0), 60, 0.9, 0.99)
    spelled = [b"".join(map(codec().token_bytes, path.cursor.seam)).decode() for path in paths]
    assert spelled[0].startswith('x", "bbox": [')
    assert paths[0].fork == 0
    assert any(s.startswith('x", "bbox": [100, 1') for s in spelled)  # one digit more than the draft has
    assert any(s.startswith('x", "bbox": [99, 100, 3') for s in spelled)
    for path in paths:
        assert len(path.cursor.places) == len(path.cursor.seam)
        assert list(path.cursor.places) == sorted(path.cursor.places)
        assert path.cursor.places[-1] == draft.starts[path.cursor.token] or path is paths[0]
        assert 0 < path.first <= 0.9


def test_probabilities_follow_what_was_written() -> None:
    _, boxes = boxes_of("[10, 20, 30, 40] and [10, 60, 30, 80]", codec())
    before = dict(boxes.options(boxes.numbers[0]))
    boxes.watch(bytearray(b"[12, 20, 30, 43] "))
    after = dict(boxes.options(boxes.numbers[4]))
    assert before[10] > before[12]
    assert after[12] > after[10] > 0
    assert sum(after.values()) <= 1.0001
    boxes.watch(bytearray(b"[12, 20, 30, 43] [500, 500, 900, 900]"))  # like none of the draft's: teaches nothing
    assert dict(boxes.options(boxes.numbers[4])) == after


def test_a_text_without_boxes_has_no_ways() -> None:
    draft, boxes = boxes_of("Plain words [1, 2] and numbers 10, 20, 30, 40.", codec())
    assert boxes.numbers == []
    assert boxes.paths(Cursor(0, [], 0, 0), 60, 0.9, 0.99) == []
    assert boxes.begun(bytearray(b"[10, 20, "), [0]) == []
    assert draft.tokens


PIECES = st.sampled_from(
    ["[10, 20, 30, 40]", "[9", "[1, 2, ", "99", ", ", "]", "<loc_7><loc_8><loc_90><loc_4>", "<loc_7>", "a", "\n"]
)


@pytest.mark.parametrize("name", CODECS)
@given(drafts=st.lists(st.lists(PIECES, max_size=5).map("".join), max_size=4), output=st.lists(PIECES, max_size=9),
       limit=st.integers(1, 40))  # fmt: skip
@settings(max_examples=30)
def test_any_draft_and_output_can_be_matched(name: str, drafts: list[str], output: list[str], limit: int) -> None:
    made = CODECS[name]()
    matcher = build(DecodeSettings(), tuple(drafts), made, '"}, ')
    assert matcher is not None
    tokens = made.encode("".join(output))
    done = 0
    while done < len(tokens):
        for candidate in matcher.propose(limit):
            assert 0 < len(candidate.tokens) <= limit
            assert 0 < candidate.first <= 1
            assert 0 <= candidate.fork < len(candidate.tokens) or candidate.fork == limit
        step = 1 + done % 3
        matcher.update(tokens[done : done + step], 0, "")
        done += step


def test_the_page_of_formats_gains_in_all_structured_dialects() -> None:
    for name in STRUCTURED:
        dialect = DIALECTS[name]
        output = codec().encode(written(page(), dialect))
        matcher = build(
            DecodeSettings(), drafts_of(moved(page(), (1, 1, -1, 2)), dialect), codec(), separator_of(dialect)
        )
        assert tokens_per_step(matcher, output) > 15
