"""The parts of matching: drafts as one text, the belief about the place in it, cursors, look-up, and the policies."""

from __future__ import annotations

import pytest
from simulate import characters, subwords

from hsdkit.decoding.matching import build
from hsdkit.decoding.matching.belief import advance, ranked
from hsdkit.decoding.matching.cursor import open_cursor
from hsdkit.decoding.matching.drafttext import DraftText
from hsdkit.decoding.matching.ngrams import OwnText
from hsdkit.decoding.matching.paper import PaperMatcher
from hsdkit.decoding.matching.rates import Calibration, Rate
from hsdkit.errors import ConfigError
from hsdkit.protocols import DecodeSettings


def place(text: bytes, position: int, written: bytes) -> int:
    return ranked(advance({position: 0.0}, text, written))[0][0]


@pytest.mark.parametrize(
    ("draft", "written", "rest"),
    [
        (b"the World is", b"the World", b" is"),
        (b"the W0r1d is", b"the World", b" is"),  # replaced
        (b"the Wrld is", b"the World", b" is"),  # dropped
        (b"the Wo'rld is", b"the World", b" is"),  # one too many
        (b"theWorld is", b"the World", b" is"),  # lost space
        (b"the W orld is", b"the World", b" is"),
        (b"World is", b"# World", b" is"),
        ("die Größe ist".encode(), "die Große".encode(), b" ist"),
        ("中文字符。".encode(), "中丈字".encode(), "符。".encode()),
    ],
)
def test_the_belief_follows_the_output_over_a_reading_error(draft: bytes, written: bytes, rest: bytes) -> None:
    assert draft[place(draft, 0, written) :] == rest


def test_the_belief_stays_within_the_draft() -> None:
    belief = {0: 0.0}
    for _ in range(50):
        belief = advance(belief, b"ab", b"abxyz")
        assert belief
        assert all(0 <= position <= 2 for position in belief)


def test_probabilities_of_places_add_up() -> None:
    places = ranked(advance({0: 0.0}, b"aaabaaac", b"axa"))
    assert sum(weight for _, weight in places) == pytest.approx(1.0)
    assert [weight for _, weight in places] == sorted((weight for _, weight in places), reverse=True)


def test_regions_are_joined_by_a_blank_line_and_found_again() -> None:
    draft = DraftText(["\nOne.\n", "", "  \n", "Two wörds", "Three"], subwords())
    assert draft.text.decode() == "One.\n\nTwo wörds\n\nThree"
    regions = [draft.text[a:b].decode() for a, b in zip(draft.region_starts, draft.region_ends, strict=True)]
    assert regions == ["One.", "Two wörds", "Three"]
    assert [draft.region_of(position) for position in (0, 4, 5, 6, 17, 18, 23)] == [0, 0, 0, 1, 1, 2, 2]


def test_drafts_without_text_are_no_draft() -> None:
    draft = DraftText(["", "\n"], subwords())
    assert (draft.tokens, draft.text, draft.region_starts) == ([], b"", [])


def test_a_cursor_in_a_word_goes_on_as_the_target_would_write() -> None:
    codec = subwords()
    true = codec.encode("any Contribution intentionally submitted")
    draft = DraftText(["any C0ntribution intentionally submitted"], codec)
    assert codec.token_bytes(true[2]) == b" Contribution"
    cursor = open_cursor(draft, draft.text.index(b" int"), true[:3], codec)
    assert true[3:] == cursor.seam + draft.tokens[cursor.token :]
    # Tokens inside a word depend on what stands before them.
    half = codec.encode("any C")
    cursor = open_cursor(draft, draft.text.index(b"ntrib"), half, codec)
    assert (
        cursor.seam + draft.tokens[cursor.token :]
        == codec.encode("any Cntribution intentionally submitted")[len(half) :]
    )


def test_a_cursor_says_when_the_last_token_speaks_against_the_draft() -> None:
    codec = subwords()
    draft = DraftText(["the Contributions"], codec)
    written = codec.encode("the Contribution")  # who means "Contributions" may write another token
    assert codec.encode("the Contributions")[: len(written)] != written
    assert not open_cursor(draft, len(b"the Contribution"), written, codec).agrees


def test_a_cursor_inside_a_character_is_no_error() -> None:
    codec = characters()
    draft = DraftText(["中文 text"], codec)
    for position in range(len(draft.text) + 1):
        cursor = open_cursor(draft, position, codec.encode("中")[:2], codec)
        assert 0 <= cursor.token <= len(draft.tokens)


def test_own_text_is_looked_up_by_its_longest_context() -> None:
    own = OwnText(3)
    own.extend([1, 2, 3, 4, 9, 2, 3, 4, 5, 7, 1, 2, 3, 4])
    (place, common), *others = own.lookup()
    assert (own.tokens[place], common) == (9, 4)
    assert [own.tokens[other] for other, _ in others] == [5]


def test_own_text_backs_off_to_shorter_contexts() -> None:
    own = OwnText(3)
    own.extend([1, 2, 3, 8, 2])
    assert own.lookup() == [(2, 1)]
    own.extend([5])
    assert own.lookup() == []


def test_own_text_looked_up_often_or_once_gives_the_same() -> None:
    tokens = [1, 2, 1, 2, 3, 1, 2, 3, 3, 1, 2, 1, 2, 3]
    often, once = OwnText(3), OwnText(3)
    for token in tokens:
        often.extend([token])
        found = often.lookup()
    once.extend(tokens)
    assert once.lookup() == found


def test_a_rate_begins_at_its_prior_and_learns() -> None:
    rate = Rate(0.9, 10.0, memory=50.0)
    assert rate.value == pytest.approx(0.9)
    for _ in range(500):
        rate.observe(1, 2)
    assert rate.value == pytest.approx(0.5, abs=0.08)
    rate.observe(10_000, 10_000)
    assert rate.value > 0.98


def test_a_calibration_makes_overconfident_guesses_humble() -> None:
    calibration = Calibration(1.0, 5.0)
    for number in range(400):
        calibration.observe(0.8, number % 5 == 0)
    assert calibration.apply(0.8) == pytest.approx(0.2, abs=0.03)


def test_paper_waits_for_a_whole_window_and_takes_every_hit() -> None:
    matcher = PaperMatcher([[1, 2, 3, 4, 5], [0, 2, 3, 9], [2, 3]], n=2)
    assert matcher.propose(10) == []
    matcher.update([2], 0, "")
    assert matcher.propose(10) == []
    matcher.update([3], 0, "")
    assert [candidate.tokens for candidate in matcher.propose(10)] == [[4, 5], [9]]
    assert [candidate.tokens for candidate in matcher.propose(1)] == [[4]]


def test_paper_has_neither_back_off_nor_memory_of_a_place() -> None:
    matcher = PaperMatcher([[1, 2, 3, 4, 5, 6, 7]], n=3)
    matcher.update([1, 2, 8], 2, "draft")  # 8 for 3
    assert matcher.propose(10) == []
    matcher.update([4], 0, "")
    assert matcher.propose(10) == []
    matcher.update([5], 0, "")
    assert matcher.propose(10) == []
    matcher.update([6], 0, "")
    assert [candidate.tokens for candidate in matcher.propose(10)] == [[7]]


def test_nothing_to_match_is_no_matcher() -> None:
    codec = subwords()
    assert build(DecodeSettings(matching="aligned", self_lookup=False), ("", " \n"), codec) is None
    assert build(DecodeSettings(matching="paper"), (), codec) is None
    assert build(DecodeSettings(matching="aligned"), (), codec) is not None


def test_settings_that_cannot_work_are_named() -> None:
    with pytest.raises(ConfigError, match="aligned, paper or suffix"):
        build(DecodeSettings(matching="exact"), ("a",), subwords())
    with pytest.raises(ConfigError, match="n=0"):
        build(DecodeSettings(n=0), ("a",), subwords())


def test_the_first_step_reads_the_draft_from_its_start() -> None:
    codec = subwords()
    matcher = build(DecodeSettings(), ("Licensed under the License", "Another region"), codec)
    assert matcher is not None
    tokens = codec.encode("Licensed under the License\n\nAnother region")
    matcher.update(tokens[:1], 0, "")
    assert matcher.propose(50)[0].tokens == tokens[1:]


def test_the_first_token_of_another_region_leads_there() -> None:
    codec = subwords()
    matcher = build(DecodeSettings(), ("Licensed under the License", "Contribution terms apply"), codec)
    assert matcher is not None
    tokens = codec.encode("Contribution terms apply")
    matcher.update(tokens[:1], 0, "")
    assert tokens[1:] in [candidate.tokens[: len(tokens) - 1] for candidate in matcher.propose(50)]


def test_heads_of_unread_regions_are_offered_after_a_blank_line() -> None:
    codec = characters()
    matcher = build(DecodeSettings(), ("Alpha first", "Beta second", "Gamma third"), codec)
    assert matcher is not None
    written = codec.encode("Alpha first, and more\n\n")
    matcher.update(written[:1], 0, "")
    for token in written[1:]:
        matcher.propose(16)
        matcher.update([token], 0, "")
    offered = {codec.text(candidate.tokens)[:4] for candidate in matcher.propose(16)}
    assert {"Beta", "Gamm"} <= offered
    assert "Alph" not in offered
