"""How many tokens a step the matchers win on drafts with reading errors: the claims made for `aligned`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from simulate import characters, licence, misread, subwords, tokens_per_step

from hsdkit import Pipeline, compose
from hsdkit.decoding.codec import TokenizerCodec
from hsdkit.decoding.matching import build
from hsdkit.protocols import DecodeSettings

PAPER, ALIGNED = DecodeSettings(matching="paper"), DecodeSettings(matching="aligned")
CODECS = {"subwords": subwords, "characters": characters}


def gain(codec: TokenizerCodec, paragraphs: tuple[str, ...], errors: float, nodes: int = 127) -> tuple[float, float]:
    """Tokens a step with `paper` and with `aligned`, on the same drafts of a text."""
    rng = random.Random(7)
    drafts = tuple(misread(paragraph, errors, rng) for paragraph in paragraphs)
    output = codec.encode("\n\n".join(paragraphs))
    paper = tokens_per_step(build(PAPER, drafts, codec), output, nodes)
    return paper, tokens_per_step(build(ALIGNED, drafts, codec), output, nodes)


@pytest.mark.parametrize("nodes", [15, 127])
@pytest.mark.parametrize("errors", [0.01, 0.03, 0.05])
def test_aligned_takes_1_8_times_as_many_tokens_a_step_on_misread_drafts(errors: float, nodes: int) -> None:
    paper, aligned = gain(subwords(), licence(), errors, nodes)
    assert aligned >= 1.8 * paper


@pytest.mark.parametrize("errors", [0.01, 0.03, 0.05])
def test_aligned_does_so_on_single_characters_too(errors: float) -> None:
    paper, aligned = gain(characters(), licence()[:20], errors)
    assert aligned >= 1.8 * paper


@pytest.fixture(scope="module")
def written_by_tiny() -> tuple[TokenizerCodec, tuple[str, ...]]:
    """The embedded model's codec, and the paragraphs it wrote for some example pages, its mistakes included."""
    pipeline = Pipeline(compose({"drafter": "pdftext", "pages": "1-4"}))
    booklet = pipeline.parse(Path(__file__).parent.parent / "examples" / "ten_pages.pdf")
    paragraphs = [p for page in booklet.pages for p in page.text.split("\n\n")]
    return TokenizerCodec(pipeline.target.tokenizer), tuple(paragraphs)


@pytest.mark.parametrize("nodes", [23, 127])
@pytest.mark.parametrize("errors", [0.01, 0.03, 0.05])
def test_aligned_does_so_on_what_the_embedded_model_writes(
    written_by_tiny: tuple[TokenizerCodec, tuple[str, ...]], errors: float, nodes: int
) -> None:
    paper, aligned = gain(*written_by_tiny, errors, nodes)
    assert aligned >= 1.8 * paper


def test_aligned_is_never_behind_on_what_the_embedded_model_writes(
    written_by_tiny: tuple[TokenizerCodec, tuple[str, ...]],
) -> None:
    paper, aligned = gain(*written_by_tiny, 0.0)
    assert aligned >= paper


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("nodes", [7, 31, 127])
def test_aligned_is_never_behind_on_perfect_drafts(codec: str, nodes: int) -> None:
    paper, aligned = gain(CODECS[codec](), licence()[:20], 0.0, nodes)
    assert aligned >= paper
    assert aligned > 0.9 * (nodes + 1)


def test_regions_out_of_order_cost_little() -> None:
    codec, paragraphs = subwords(), licence()
    output = codec.encode("\n\n".join(paragraphs))
    shuffled = list(paragraphs)
    random.Random(3).shuffle(shuffled)
    steps = len(output) / tokens_per_step(build(ALIGNED, tuple(shuffled), codec), output)
    in_order = len(output) / tokens_per_step(build(ALIGNED, paragraphs, codec), output)
    assert steps - in_order < 2 * len(paragraphs)


def test_marks_that_the_draft_lacks_cost_about_a_step_each() -> None:
    codec, paragraphs = subwords(), licence()
    output = codec.encode("\n\n".join(f"## {paragraph}" for paragraph in paragraphs))
    steps = len(output) / tokens_per_step(build(ALIGNED, paragraphs, codec), output)
    assert steps < 3 * len(paragraphs)


def test_a_text_that_repeats_itself_is_drafted_from_itself() -> None:
    codec = subwords()
    output = codec.encode("\n\n".join(licence()[:3] * 3))
    lookup = build(ALIGNED, (), codec)
    assert lookup is not None
    assert tokens_per_step(lookup, output) > 2.5
    assert tokens_per_step(None, output) == 1.0


def test_a_useless_draft_leaves_the_look_up_in_its_own_text() -> None:
    codec = subwords()
    output = codec.encode("\n\n".join(licence()[:3] * 3))
    alone = tokens_per_step(build(ALIGNED, (), codec), output)
    beside = tokens_per_step(build(ALIGNED, ("Qzx jvk 0193 — " * 200,), codec), output)
    assert beside > 0.8 * alone


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("errors", [0.01, 0.05, 0.15])
def test_stated_probabilities_come_true(codec: str, errors: float) -> None:
    """The engine spends nodes by what the candidates state: first tokens must hold about as often as they say."""
    text_codec = CODECS[codec]()
    paragraphs = licence()[:25]
    rng = random.Random(5)
    output = text_codec.encode("\n\n".join(paragraphs))
    matcher = build(ALIGNED, tuple(misread(p, errors, rng) for p in paragraphs), text_codec)
    assert matcher is not None
    stated, came_true, done = 0.0, 0, 1
    matcher.update(output[:1], 0, "")
    while done < len(output):
        candidates = matcher.propose(31)
        for candidate in candidates[:1]:
            stated += candidate.first
            came_true += candidate.tokens[0] == output[done]
        tree = {tuple(c.tokens[: k + 1]) for c in candidates for k in range(len(c.tokens))}
        accepted = 0
        while tuple(output[done : done + accepted + 1]) in tree and done + accepted + 1 < len(output):
            accepted += 1
        matcher.update(output[done : done + accepted + 1], accepted, "")
        done += accepted + 1
    assert came_true == pytest.approx(stated, rel=0.15)
