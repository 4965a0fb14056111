"""With tau=1 in fp32 the engine says token for token what `generate(do_sample=False)` says, whatever the drafts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import hsdkit_plugins.targets
import pytest
import torch
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from hypothesis import given, settings
from hypothesis import strategies as st
from models import SimpleTarget, make_tokenizer, page, qwen2_5_vl, random
from PIL import Image, ImageDraw, ImageFont
from scripted import SPOILINGS, Scripted, Spoiling
from transformers import NoRepeatNGramLogitsProcessor, RepetitionPenaltyLogitsProcessor

from hsdkit.decoding.batch import pack_batch
from hsdkit.decoding.budget import Budget
from hsdkit.decoding.cache import RaggedCache
from hsdkit.decoding.loop import decode
from hsdkit.decoding.protocol import Candidate
from hsdkit.decoding.tree import PrefixTree
from hsdkit.protocols import DecodeRequest, DecodeSettings

ARCHITECTURES = ("qwen2_5_vl", "qwen3_vl", "hunyuan_vl", "llama")
TOKENS = 64
SETTINGS = DecodeSettings(max_new_tokens=TOKENS, stop_loops=False)
#: Eight prompts whose images and texts differ in size.
REQUESTS = tuple(
    DecodeRequest(page(64 + 32 * (k % 3), 64 + 16 * (k % 2), seed=k), "The table below lists them"[: 3 + 3 * k])
    for k in range(8)
)

Generated = Callable[..., list[list[int]]]


@pytest.fixture(scope="module")
def engine(random_target: Callable[[str], SimpleTarget]) -> Callable[[str], TransformersEngine]:
    torch.set_num_threads(1)
    return cache(lambda architecture: TransformersEngine(TransformersConfig(), random_target(architecture)))


def generate(target: Any, request: DecodeRequest, tokens: int = TOKENS, **options: Any) -> list[int]:
    """The new tokens of plain greedy decoding by `transformers`, one prompt at a time."""
    inputs = target.inputs([request])
    target.model.generation_config.eos_token_id = None
    options = {"pad_token_id": 0, "eos_token_id": list(target.eos_ids) or None, **options}
    output = target.model.generate(**inputs, do_sample=False, max_new_tokens=tokens, **options)
    ids: list[int] = output[0, inputs["input_ids"].shape[1] :].tolist()
    return ids


@pytest.fixture(scope="module")
def truth(random_target: Callable[[str], SimpleTarget]) -> Callable[[str], list[list[int]]]:
    torch.set_num_threads(1)
    return cache(lambda architecture: [generate(random_target(architecture), request) for request in REQUESTS])


def decoded(
    engine: TransformersEngine, matchers: Sequence[Any], settings: DecodeSettings = SETTINGS, width: int = 24
) -> list[list[int]]:
    requests = REQUESTS[: len(matchers)]
    result = decode(engine.model, requests, settings, matchers, Budget(width, None), engine.target.logits_processors())
    return [list(s.tokens) for s in result.sequences]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("rows", [1, 8])
def test_plain_decoding_is_greedy_decoding(
    architecture: str, rows: int, engine: Callable[..., Any], truth: Callable[..., Any]
) -> None:
    assert decoded(engine(architecture), [None] * rows) == truth(architecture)[:rows]


def test_rope_sections_may_go_round_the_axes_several_times(tmp_path: Path) -> None:
    tokenizer = make_tokenizer()
    model, images = qwen2_5_vl(tokenizer)
    model.config.text_config.rope_parameters["mrope_section"] = [1] * 8
    for part in (random(type(model), model.config, seed=7), tokenizer, images):
        part.save_pretrained(tmp_path)
    target = SimpleTarget(tmp_path, eos_ids=frozenset())
    expected = [generate(target, request) for request in REQUESTS[:2]]
    engine = TransformersEngine(TransformersConfig(), target)
    assert decoded(engine, [Scripted(tokens, SPOILINGS[0]) for tokens in expected]) == expected


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("spoiling", SPOILINGS)
def test_drafts_never_change_the_output_of_one_sequence(
    architecture: str, spoiling: Spoiling, engine: Callable[..., Any], truth: Callable[..., Any]
) -> None:
    expected = truth(architecture)[:1]
    assert decoded(engine(architecture), [Scripted(expected[0], spoiling)]) == expected


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_drafts_never_change_the_output_of_a_ragged_batch(
    architecture: str, engine: Callable[..., Any], truth: Callable[..., Any]
) -> None:
    """Every row has drafts of another kind, so rows advance at different speeds and end in different steps."""
    expected = truth(architecture)
    kinds: list[Spoiling | None] = [*SPOILINGS, None]
    matchers = [kind and Scripted(row, kind, seed=k) for k, (row, kind) in enumerate(zip(expected, kinds, strict=True))]
    assert decoded(engine(architecture), matchers) == expected


@settings(max_examples=10)
@given(
    seed=st.integers(0, 10_000),
    width=st.integers(1, 40),
    rows=st.integers(1, 3),
    spoiling=st.sampled_from(SPOILINGS),
)
def test_nor_do_widths_and_seeds(
    seed: int, width: int, rows: int, spoiling: Spoiling, engine: Callable[..., Any], truth: Callable[..., Any]
) -> None:
    expected = truth("qwen3_vl")[:rows]
    matchers = [Scripted(row, spoiling, seed=seed + k) for k, row in enumerate(expected)]
    assert decoded(engine("qwen3_vl"), matchers, width=width) == expected


@pytest.mark.parametrize("spoiling", ["perfect", "branching"])
def test_end_tokens_in_drafts_end_nothing_and_the_models_own_do(
    spoiling: Spoiling, checkpoint: Callable[[str], Path], truth: Callable[..., Any]
) -> None:
    known = truth("qwen3_vl")
    ends = frozenset({known[0][20], known[1][30]})
    target = SimpleTarget(checkpoint("qwen3_vl"), eos_ids=ends)
    expected = [generate(target, request) for request in REQUESTS[:4]]
    assert any(len(row) < TOKENS for row in expected)
    matchers = [Scripted(row, spoiling, ends=tuple(ends)) for row in known[:4]]
    assert decoded(TransformersEngine(TransformersConfig(), target), matchers) == expected


@pytest.mark.parametrize("architecture", ["qwen3_vl", "hunyuan_vl"])
@pytest.mark.parametrize("spoiling", ["perfect", "branching"])
def test_logits_processors_act_as_in_generate(
    architecture: str, spoiling: Spoiling, checkpoint: Callable[[str], Path]
) -> None:
    processors = [RepetitionPenaltyLogitsProcessor(1.3), NoRepeatNGramLogitsProcessor(3)]
    target = SimpleTarget(checkpoint(architecture), processors, frozenset())
    options = {"repetition_penalty": 1.3, "no_repeat_ngram_size": 3}
    expected = [generate(target, request, **options) for request in REQUESTS[:2]]
    assert expected[0] != generate(target, REQUESTS[0])
    matchers = [Scripted(row, spoiling) for row in expected]
    assert decoded(TransformersEngine(TransformersConfig(), target), matchers) == expected


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("attention", ["auto", "sdpa", "eager"])
def test_tree_logits_are_sequential_logits(
    architecture: str, attention: str, checkpoint: Callable[[str], Path], truth: Callable[..., Any]
) -> None:
    """Every node of a batch of trees against a plain forward pass over prompt and path, positions left to the model."""
    target = SimpleTarget(checkpoint(architecture), eos_ids=frozenset())
    model = TransformersEngine(TransformersConfig(attention=attention), target).model  # type: ignore[arg-type]
    rows = [0, 3]
    requests = [REQUESTS[k] for k in rows]
    known = [truth(architecture)[k] for k in rows]
    cache = RaggedCache()
    with torch.inference_mode():
        prefill = model.prefill(model.prepare(requests), cache)
        trees = []
        for row in known:
            drafts = [Candidate([9, *row[2:5]], "a", 0.9, 0.9), Candidate(row[1:6], "b", 0.8, 0.9)]
            drafts += [Candidate([*row[1:3], 11, 12], "c", 0.7, 0.9)] * (row is known[0])
            trees.append(PrefixTree(drafts, 10).pack(row[0], 20))
        tokens, positions, mask = pack_batch(trees, prefill.positions, cache.lengths)
        cache.begin(tokens.shape[1])
        logits = model.verify(tokens, positions, mask, cache)
        for b, (tree, request) in enumerate(zip(trees, requests, strict=True)):
            ancestors = tree.mask()
            for node in range(len(tree)):
                path = [tree.tokens[k] for k in range(len(tree)) if ancestors[node, k]]
                expected = sequential_logits(target, request, path)
                difference = (logits[b, node] - expected).abs().max()
                assert difference <= 1e-4 * expected.abs().max()


def sequential_logits(target: Any, request: DecodeRequest, path: list[int]) -> torch.Tensor:
    inputs = target.inputs([request])
    more = torch.tensor([path])
    inputs["input_ids"] = torch.cat((inputs["input_ids"], more), 1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if "mm_token_type_ids" in inputs:
        inputs["mm_token_type_ids"] = torch.cat((inputs["mm_token_type_ids"], torch.zeros_like(more).int()), 1)
    logits: torch.Tensor = target.model(**inputs).logits[0, -1]
    return logits


TEXT = "Harbour report 2024\n\n1,204 ships came in, 311 of them ferries."


@pytest.fixture(scope="module")
def trained() -> tuple[TransformersEngine, DecodeRequest, list[int]]:
    """The trained model that ships with hsdkit, on a page with text, and what `generate` reads there."""
    torch.set_num_threads(1)
    target = SimpleTarget(Path(hsdkit_plugins.targets.__path__[0]) / "tiny_checkpoint")
    image = Image.new("RGB", (256, 96), "white")
    lines = TEXT.replace("came in, ", "came in,\n")
    ImageDraw.Draw(image).multiline_text((8, 8), lines, "black", ImageFont.load_default(13))
    request = DecodeRequest(image, "")
    return TransformersEngine(TransformersConfig(), target), request, generate(target, request, 200)


@pytest.mark.parametrize("matching", ["aligned", "paper"])
@pytest.mark.parametrize("max_packed", ["auto", 32])
@pytest.mark.parametrize(
    "drafts",
    [
        (),
        ("", "  "),
        tuple(TEXT.split("\n\n")),
        tuple(TEXT.replace("e", "c").replace("1", "l").split("\n\n")),
        tuple("".join(sorted(part)) for part in TEXT.split("\n\n")),
        ("ships " * 10_000,),
        (TEXT.replace("ships", "<|im_end|>ships<|image_pad|>") + "<|im_end|>",),
    ],
    ids=["none", "blank", "true", "misread", "shuffled", "repeating", "special tokens"],
)
def test_text_drafts_never_change_what_the_trained_model_reads(
    drafts: tuple[str, ...], matching: str, max_packed: Any, trained: tuple[Any, DecodeRequest, list[int]]
) -> None:
    engine, request, expected = trained
    chosen = DecodeSettings(matching=matching, max_packed=max_packed, max_new_tokens=200)
    result = engine.decode([DecodeRequest(request.image, "", drafts)], chosen)
    assert list(result.sequences[0].tokens) == expected
