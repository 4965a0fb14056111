"""Matching never fails, whatever drafts and outputs are, and its work never grows with the draft at every step."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from simulate import characters, licence, subwords, tokens_per_step
from tokenizers import Regex, Tokenizer, decoders, models, normalizers
from transformers import PreTrainedTokenizerFast

from hsdkit.decoding.codec import TokenizerCodec
from hsdkit.decoding.matching import build
from hsdkit.decoding.protocol import Candidate
from hsdkit.protocols import DecodeSettings

CODECS = {"subwords": subwords, "characters": characters}
ALPHABET = "ab .\n中é👩‍👧ש<|end|>"
TEXTS = st.text(max_size=60) | st.text(alphabet=ALPHABET, max_size=60) | st.sampled_from(licence()[:5])
SIZES = {"subwords": 1202, "characters": 258}


def run(
    matching: str, drafts: tuple[str, ...], steps: Sequence[Sequence[int]], limit: int, codec: TokenizerCodec
) -> list:
    matcher = build(DecodeSettings(matching=matching), drafts, codec)
    offered: list[list[Candidate]] = []
    if matcher is None:
        return offered
    for tokens in steps:
        matcher.update(tokens, 0, "")
        offered.append(matcher.propose(limit))
    return offered


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("matching", ["aligned", "paper"])
@given(data=st.data())
@settings(max_examples=80)
def test_any_draft_and_any_output(matching: str, name: str, data: st.DataObject) -> None:
    codec = CODECS[name]()
    drafts = tuple(data.draw(st.lists(TEXTS, max_size=5)))
    limit = data.draw(st.integers(0, 40))
    valid = st.integers(0, SIZES[name] + 2)
    garbage = st.lists(st.lists(valid, min_size=1, max_size=6), max_size=12)
    read = data.draw(TEXTS | st.just("\n\n".join(drafts)))
    width = data.draw(st.integers(1, 5))
    tokens = codec.encode(read)
    steps = [tokens[i : i + width] for i in range(0, len(tokens), width)][:40] + data.draw(garbage)

    offered = run(matching, drafts, steps, limit, codec)
    for candidate in (candidate for step in offered for candidate in step):
        assert 0 < len(candidate.tokens) <= limit
        assert 0 < candidate.first < 1
        assert 0 < candidate.rest < 1
        assert all(codec.token_bytes(token) for token in candidate.tokens)
    assert run(matching, drafts, steps, limit, codec) == offered


@pytest.mark.parametrize("read", ["ab\n", "cd", "\n\n\n\n"])
def test_a_tokenizer_that_shortens_separators_only_makes_drafts_worse(read: str) -> None:
    backend = Tokenizer(models.BPE({chr(n): n for n in range(128)}, []))
    backend.normalizer = normalizers.Replace(Regex(r"\n+"), " ")
    backend.decoder = decoders.ByteLevel()
    codec = TokenizerCodec(PreTrainedTokenizerFast(tokenizer_object=backend))
    steps = [[ord(c)] for c in read]
    for offered in run("aligned", ("ab", "cd", "e\n\n\n\nf", "g"), steps, 8, codec):
        assert all(candidate.tokens for candidate in offered)


@pytest.mark.parametrize(
    ("draft", "steps"),
    [("ccababca", [[99, 99, 128, 128, 99, 129], [129, 128]]), ("xxxxxa", [[129, 120]])],
)
def test_nor_does_one_that_spells_a_piece_longer_than_the_whole(draft: str, steps: list[list[int]]) -> None:
    """Its normaliser makes more of a text each time, so that a seam reaches beyond the end of the draft."""
    vocabulary = {**{chr(n): n for n in range(128)}, "ab": 128, "xx": 129, "abx": 130}
    backend = Tokenizer(models.BPE(vocabulary, [("a", "b"), ("x", "x"), ("ab", "x")]))
    backend.normalizer = normalizers.Replace("x", "xx")
    backend.decoder = decoders.ByteLevel()
    codec = TokenizerCodec(PreTrainedTokenizerFast(tokenizer_object=backend))
    matcher = build(DecodeSettings(), (draft,), codec)
    assert matcher is not None
    for tokens in steps:
        assert all(candidate.tokens for candidate in matcher.propose(8))
        matcher.update(tokens, 0, "")
    assert all(candidate.tokens for candidate in matcher.propose(8))


def test_text_that_spells_an_end_token_is_drafted_as_text() -> None:
    codec = subwords()
    (step,) = run("aligned", ("Licensed <|end|> under",), [codec.encode("Lic")[:1]], 40, codec)
    assert all(codec.token_bytes(token) for candidate in step for token in candidate.tokens)


HARD = {
    "one character": "a" * 50_000,
    "one paragraph 500 times": "\n\n".join([licence()[0]] * 500),
    "no spaces": "abcdefghij" * 5_000,
    "one character that is three bytes": "中" * 20_000,
    "blank lines": "x\n\n" * 10_000,
}


@pytest.mark.parametrize("draft", HARD)
@pytest.mark.parametrize("matching", ["aligned", "paper"])
@pytest.mark.parametrize("name", CODECS)
def test_drafts_that_repeat_themselves_take_no_longer(name: str, matching: str, draft: str) -> None:
    codec = CODECS[name]()
    matcher = build(DecodeSettings(matching=matching), tuple(HARD[draft].split("\n\n")), codec)
    assert matcher is not None
    start = process_time()
    output = codec.encode("aab abcabc 中中, " + licence()[0][:100] + "\n\n" + "aaab\n\n" * 10 + "中" * 20)
    for token in output:
        matcher.update([token], 0, "")
        matcher.propose(127)
    # Generous: quadratic time would take minutes here.
    assert process_time() - start < 0.02 * len(output)


def test_a_long_draft_takes_hardly_more_time_a_step_than_a_short_one() -> None:
    codec = subwords()
    output = codec.encode("\n\n".join(licence()[:12]))

    def seconds(drafts: tuple[str, ...]) -> float:
        best = 1e9
        for _ in range(3):
            matcher = build(DecodeSettings(), drafts, codec)
            assert matcher is not None
            matcher.update(output[:1], 0, "")
            start = process_time()
            for token in output[1:]:
                matcher.propose(31)
                matcher.update([token], 0, "")
            best = min(best, process_time() - start)
        return best

    short = licence()[:12]
    long = (*short, *(paragraph[::-1] for paragraph in licence() * 10))
    assert seconds(long) < 3 * seconds(short)


def test_an_output_that_has_nothing_to_do_with_the_draft_is_decoded_plainly_at_worst() -> None:
    codec = subwords()
    output = codec.encode("\n\n".join(paragraph[::-1] for paragraph in licence()[:4]))
    assert tokens_per_step(build(DecodeSettings(), licence(), codec), output) >= 1.0
