"""DeepSeek-OCR 1 and 2 and Unlimited-OCR: published files, resolution modes, pixels, exactness, grounding, refusals."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import reference_deepseek as reference
import torch
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from hsdkit_plugins.targets import deepseek_ocr, deepseek_ocr2, unlimited_ocr
from hsdkit_plugins.targets.no_repeat import NoRepeatNgrams
from hsdkit_plugins.targets.views import Mode, views
from models import page, target_of
from models_deepseek import MAKE
from PIL import Image
from safetensors.torch import load_file
from scripted import SPOILINGS, Scripted
from transformers import DeepseekOcr2ImageProcessorPil
from transformers.models.unlimited_ocr.generation_unlimited_ocr import (
    UnlimitedOcrSlidingWindowNoRepeatNgramLogitsProcessor,
)

from hsdkit.decoding.budget import Budget
from hsdkit.decoding.loop import decode
from hsdkit.errors import TargetError
from hsdkit.protocols import DecodeRequest, DecodeSettings
from hsdkit.regions import Box, Label, Region

PROFILES = {p.name: p for p in (deepseek_ocr.PROFILE, deepseek_ocr2.PROFILE, unlimited_ocr.PROFILE)}
#: The cheapest mode each model has.
CHEAP = {"deepseek_ocr": "tiny", "deepseek_ocr2": "small", "unlimited_ocr": "base"}
#: So many tokens that Unlimited-OCR's window (12 here) has passed them several times.
TOKENS = 48


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Any:
    torch.set_num_threads(1)
    base = tmp_path_factory.mktemp("deepseek")
    return cache(lambda name: MAKE[name](base / name, seed=1))


@pytest.fixture(scope="module")
def targets(folders: Any) -> Any:
    """In the cheapest mode, with what `generate` knows: no n-gram ban, no end."""

    def target(name: str) -> Any:
        made = target_of(PROFILES[name], folders(name), mode=CHEAP[name], ngram_size=0)
        if name != "deepseek_ocr2":  # which has queries for its own sizes only
            made.mode = Mode(256)
        made.eos_ids = frozenset()
        return made

    return cache(target)


def requests(target: Any) -> list[DecodeRequest]:
    """The prompts for a page and for a region, and parts of them, so that rows differ in length."""
    prompts = [target.prompt(None), target.prompt(Label.TEXT), target.prompt(None)[:14], "Free"]
    sizes = [(90, 64), (700, 94), (90, 124), (90, 154)]
    return [
        DecodeRequest(page(*size, seed=k), prompt) for k, (size, prompt) in enumerate(zip(sizes, prompts, strict=True))
    ]


def generate(target: Any, request: DecodeRequest, **options: Any) -> list[int]:
    inputs = target.inputs([request])
    target.model.generation_config.eos_token_id = None
    options = {"eos_token_id": None, "pad_token_id": 2, "max_new_tokens": TOKENS} | options
    output = target.model.generate(**inputs, do_sample=False, **options)
    new: list[int] = output[0, inputs["input_ids"].shape[1] :].tolist()
    return new


@pytest.fixture(scope="module")
def truth(targets: Any) -> Any:
    return cache(lambda name: [generate(targets(name), request) for request in requests(targets(name))])


def decoded(target: Any, matchers: list[Any], width: int = 24) -> list[list[int]]:
    engine = TransformersEngine(TransformersConfig(), target)
    settings = DecodeSettings(max_new_tokens=TOKENS, stop_loops=False)
    batch = requests(target)[: len(matchers)]
    result = decode(engine.model, batch, settings, matchers, Budget(width, None), target.logits_processors())
    return [list(s.tokens) for s in result.sequences]


# -- exactness


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("rows", [1, 4])
def test_plain_decoding_is_greedy_decoding(name: str, rows: int, targets: Any, truth: Any) -> None:
    assert len({tuple(row) for row in truth(name)}) > 1, "the images and prompts make no difference"
    assert decoded(targets(name), [None] * rows) == truth(name)[:rows]


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("spoiling", ["noisy", "branching"])
def test_drafts_never_change_the_output(name: str, spoiling: Any, targets: Any, truth: Any) -> None:
    expected = truth(name)
    assert decoded(targets(name), [Scripted(expected[0], spoiling)]) == expected[:1]


@pytest.mark.parametrize("name", PROFILES)
def test_drafts_never_change_the_output_of_a_ragged_batch(name: str, targets: Any, truth: Any) -> None:
    expected = truth(name)
    kinds = [SPOILINGS[k % len(SPOILINGS)] for k in (0, 1, 3, 5)]
    matchers = [Scripted(row, kind, seed=k) for k, (row, kind) in enumerate(zip(expected, kinds, strict=True))]
    assert decoded(targets(name), matchers) == expected


def test_the_window_of_unlimited_ocr_matters_here(folders: Any, targets: Any, truth: Any) -> None:
    """Or else the tests above would pass without it."""
    target = target_of(PROFILES["unlimited_ocr"], folders("unlimited_ocr"), mode="base", ngram_size=0)
    target.mode = Mode(256)
    target.model.config.text_config.sliding_window = 10_000
    assert generate(target, requests(target)[0]) != truth("unlimited_ocr")[0]


@pytest.mark.parametrize("name", PROFILES)
def test_the_models_own_end_token_ends_the_output(name: str, folders: Any, targets: Any, truth: Any) -> None:
    """The checkpoint's end token is `<｜end▁of▁sentence｜>`, id 1, whether it ships generation settings or not."""
    assert target_of(PROFILES[name], folders(name)).eos_ids == {1}
    target = targets(name)
    end = truth(name)[0][5]
    target.eos_ids = frozenset({end})
    try:
        expected = generate(target, requests(target)[0], eos_token_id=[end])
        assert expected[-1] == end
        assert decoded(target, [Scripted(truth(name)[0], "perfect")]) == [expected]
    finally:
        target.eos_ids = frozenset()


# -- the n-gram ban


def test_the_ban_is_that_of_transformers() -> None:
    torch.manual_seed(0)
    stock = UnlimitedOcrSlidingWindowNoRepeatNgramLogitsProcessor(3, 20)
    for length in (1, 2, 3, 10, 60):
        ids = torch.randint(0, 4, (2, length))
        scores = torch.randn(2, 4)
        assert torch.equal(NoRepeatNgrams(3, 20)(ids, scores.clone()), stock(ids, scores.clone()))
    ids = torch.tensor([[1, 2, 1, 2, 1]])
    assert NoRepeatNgrams(2, 5)(ids, torch.zeros(1, 4)).tolist() == [[0, 0, -float("inf"), 0]]
    assert NoRepeatNgrams(2, 5, frozenset({2}))(ids, torch.zeros(1, 4)).tolist() == [[0, 0, 0, 0]]


def test_the_ban_acts_as_in_generate(folders: Any, truth: Any) -> None:
    target = target_of(PROFILES["unlimited_ocr"], folders("unlimited_ocr"), ngram_size=2, ngram_window=9)
    target.mode, target.eos_ids = Mode(256), frozenset()
    request = requests(target)[0]
    target.model.generation_config.no_repeat_ngram_window_size = 9
    expected = generate(target, request, no_repeat_ngram_size=2)
    assert expected != truth("unlimited_ocr")[0]
    assert decoded(target, [Scripted(expected, "branching")]) == [expected]


def test_empty_cells_may_repeat(folders: Any) -> None:
    target = target_of(PROFILES["deepseek_ocr"], folders("deepseek_ocr"))
    (ban,) = target.logits_processors()
    assert (ban.size, ban.window) == (30, 90)
    assert ban.allowed == set(target.tokenizer.convert_tokens_to_ids(["<td>", "</td>"]))


# -- inputs


@pytest.mark.parametrize("name", PROFILES)
@torch.inference_mode()
def test_a_row_of_a_ragged_batch_gives_the_logits_it_gives_alone(name: str, targets: Any) -> None:
    target = targets(name)
    batch = requests(target)
    together = target.inputs(batch)
    lengths = together["attention_mask"].sum(-1).tolist()
    assert len(set(lengths)) > 1
    logits = target.model(**together).logits
    for b, request in enumerate(batch):
        alone = target.inputs([request])
        assert alone["input_ids"][0].tolist() == together["input_ids"][b, : lengths[b]].tolist()
        torch.testing.assert_close(target.model(**alone).logits[0], logits[b, : lengths[b]], atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "mode", "size", "tokens"),
    [
        # The published numbers, one newline a row and a separator on top.
        ("deepseek_ocr", "tiny", (1190, 1684), 64 + 8 + 1),
        ("deepseek_ocr", "small", (1190, 1684), 100 + 10 + 1),
        ("deepseek_ocr", "base", (1190, 1684), 256 + 16 + 1),
        ("deepseek_ocr", "large", (1190, 1684), 400 + 20 + 1),
        ("deepseek_ocr", "gundam", (1190, 1684), 256 + 16 + 1 + 6 * 100 + 30),
        ("deepseek_ocr", "gundam", (640, 300), 256 + 16 + 1),
        ("deepseek_ocr2", "small", (1190, 1684), 144 + 1),
        ("deepseek_ocr2", "base", (1190, 1684), 256 + 1),
        ("deepseek_ocr2", "gundam", (1190, 1684), 256 + 1 + 6 * 144),
        ("unlimited_ocr", "base", (1190, 1684), 256 + 16 + 1),
        ("unlimited_ocr", "gundam", (1190, 1684), 256 + 16 + 1 + 6 * 100 + 30),
    ],
)
def test_modes_have_their_number_of_image_tokens(
    name: str, mode: str, size: tuple[int, int], tokens: int, folders: Any
) -> None:
    target = target_of(PROFILES[name], folders(name), mode=mode, max_tiles=6)
    inputs = target.inputs([DecodeRequest(Image.new("RGB", size, "white"), "x")])
    assert int((inputs["input_ids"] == target.model_config.image_token_id).sum()) == tokens


@pytest.mark.parametrize("name", PROFILES)
@torch.inference_mode()
def test_pages_with_and_without_tiles_in_one_batch(name: str, folders: Any) -> None:
    """What each image is given is as many features as it has tokens: `transformers` raises where it is not."""
    target = target_of(PROFILES[name], folders(name), mode="gundam", max_tiles=2)
    if name != "deepseek_ocr2":
        target.mode = Mode(256, tile=128)
    batch = [DecodeRequest(page(w, h, seed=w), "x") for w, h in ((90, 60), (1600, 700), (64, 64))]
    inputs = target.inputs(batch)
    assert inputs["num_local_patches"] == [0, 2, 0]
    together = target.model(**inputs, logits_to_keep=1).logits
    assert together.shape[0] == 3
    alone = target.model(**target.inputs(batch[1:2]), logits_to_keep=1).logits
    torch.testing.assert_close(alone[0], together[1], atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("size", [(300, 200), (769, 90), (1190, 1684), (801, 2111), (1000, 999)])
def test_pixels_are_those_of_the_stock_processor(size: tuple[int, int]) -> None:
    image = page(*size, seed=size[0])
    stock = DeepseekOcr2ImageProcessorPil()(images=[image], return_tensors="pt")
    seen = views(image, Mode(1024, tile=768), 6)
    assert stock["num_local_patches"].tolist() == [seen.rows * seen.columns]
    torch.testing.assert_close(seen.whole, stock["pixel_values"][0], atol=1e-6, rtol=0)
    if seen.tiles is not None:
        torch.testing.assert_close(seen.tiles, stock["pixel_values_local"], atol=1e-6, rtol=0)


def test_inputs_are_those_of_the_stock_processor(folders: Any) -> None:
    from transformers import AutoProcessor

    target = target_of(PROFILES["deepseek_ocr2"], folders("deepseek_ocr2"))
    stock = AutoProcessor.from_pretrained(folders("deepseek_ocr2"), backend="pil")
    for size in ((1190, 1684), (300, 200)):
        image, prompt = page(*size), target.prompt(None)
        expected = stock(images=image, text=f"<image>\n{prompt}", return_tensors="pt")
        mine = target.inputs([DecodeRequest(image, prompt)])
        ids = expected["input_ids"][0].tolist()
        # The published tokenizer begins with its begin token by itself, the tiny one does not.
        assert mine["input_ids"][0].tolist() == [target.tokenizer.bos_token_id, *ids]
        torch.testing.assert_close(mine["pixel_values"], expected["pixel_values"], atol=1e-6, rtol=0)
        assert mine["num_local_patches"] == expected["num_local_patches"].tolist()


def test_a_page_read_at_less_than_its_size_says_so(folders: Any) -> None:
    image = Image.new("RGB", (1190, 1684))
    tiny = target_of(PROFILES["deepseek_ocr"], folders("deepseek_ocr"), mode="tiny")
    assert tiny.notes(image) == ("page image of 1190 x 1684 px is read at 30% of its size (target.mode=tiny)",)
    assert target_of(PROFILES["deepseek_ocr"], folders("deepseek_ocr")).notes(image) == ()


# -- the model class against its reference


@torch.inference_mode()
def test_the_model_computes_what_the_published_code_computes(folders: Any) -> None:
    folder = folders("deepseek_ocr")
    weights, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    target = target_of(PROFILES["deepseek_ocr"], folder)
    target.mode = Mode(320, tile=192)
    request = DecodeRequest(page(800, 300, seed=3), target.prompt(None))
    inputs = target.inputs([request])
    seen = target.views(request.image)
    assert (seen.columns, seen.rows) == (3, 1)
    image = reference.image_embeddings(weights, config, seen.whole, seen.tiles, seen.columns)
    ids = inputs["input_ids"][0].tolist()
    expected = reference.logits(weights, config, ids, image, target.model_config.image_token_id)
    found = target.model(**inputs).logits[0]
    torch.testing.assert_close(found, expected, atol=1e-3 * float(expected.abs().max()), rtol=1e-3)
    assert found.argmax(-1).tolist() == expected.argmax(-1).tolist()


@pytest.mark.parametrize("name", PROFILES)
def test_saved_again_it_is_the_same_model(name: str, targets: Any, folders: Any, tmp_path: Path) -> None:
    target = targets(name)
    target.model.save_pretrained(tmp_path)
    for file in ("tokenizer.json", "tokenizer_config.json", "processor_config.json"):
        (tmp_path / file).write_bytes((folders(name) / file).read_bytes())
    again = target_of(PROFILES[name], tmp_path)
    before, after = target.model.state_dict(), again.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    kinds = [getattr(t.model.config.text_config, "layer_types", None) for t in (target, again)]
    assert kinds[0] == kinds[1]
    published = {key.split(".")[1] for key in load_file(tmp_path / "model.safetensors") if key.startswith("model.")}
    assert {"sam_model", "projector", "view_seperator", "layers", "embed_tokens"} <= published


# -- prompts, grounding


def test_prompts_are_the_published_ones(folders: Any) -> None:
    one = target_of(PROFILES["deepseek_ocr"], folders("deepseek_ocr"), mode="tiny")
    assert one.prompt(None) == "<|grounding|>Convert the document to markdown."
    assert one.prompt(Label.TABLE) == one.prompt(Label.TEXT) == "Free OCR."
    ids = one.inputs([DecodeRequest(page(), one.prompt(None))])["input_ids"][0].tolist()
    image = one.model_config.image_token_id
    assert ids[:2] == [0, image]
    rest = ids[len(ids) - ids[::-1].index(image) :]
    assert one.tokenizer.decode(rest) == "\n<|grounding|>Convert the document to markdown."
    assert one.tokenizer.convert_tokens_to_ids("<|grounding|>") in rest
    plain = target_of(PROFILES["deepseek_ocr2"], folders("deepseek_ocr2"), grounding=False)
    assert plain.prompt(None) == "Free OCR."
    assert plain.page_drafts(REGIONS, Image.new("RGB", (999, 1998))) == ("# Harbour", "Ships came in.")
    asked = target_of(PROFILES["deepseek_ocr2"], folders("deepseek_ocr2"), grounding=False, page_prompt="Read.")
    assert asked.prompt(None) == "Read."
    unlimited = target_of(PROFILES["unlimited_ocr"], folders("unlimited_ocr"), mode="base")
    ids = unlimited.inputs([DecodeRequest(page(), unlimited.prompt(None))])["input_ids"][0].tolist()
    assert unlimited.tokenizer.decode(ids[ids.index(image) :]).replace("<image>", "") == "document parsing."


REGIONS = [
    Region(Box(0, 0, 999, 100), Label.TITLE, "Harbour"),
    Region(Box(100, 200, 500, 400), Label.TEXT, "Ships came in."),
]


@pytest.mark.parametrize(
    ("name", "written"),
    [
        (
            "deepseek_ocr",
            "<|ref|>title<|/ref|><|det|>[[0, 0, 999, 50]]<|/det|>\n# Harbour  \n\n"
            "<|ref|>text<|/ref|><|det|>[[100, 100, 500, 200]]<|/det|>\nShips came in.  ",
        ),
        (
            "unlimited_ocr",
            "<|det|>title [0, 0, 999, 50]<|/det|>Harbour\n<|det|>text [100, 100, 500, 200]<|/det|>Ships came in.",
        ),
    ],
)
def test_pages_are_drafted_and_read_with_labels_and_boxes(name: str, written: str, folders: Any) -> None:
    target = target_of(PROFILES[name], folders(name))
    image = Image.new("RGB", (999, 1998))
    assert target.separator.join(target.page_drafts(REGIONS, image)) == written
    read = target.regions(written, image)
    assert [(r.box, r.label, r.text) for r in read] == [(r.box, r.label, r.text) for r in REGIONS]
    assert target.clean(written) == "# Harbour\n\nShips came in."


@pytest.mark.parametrize("name", PROFILES)
def test_tags_of_the_output_are_text_and_drafts_hold_them(name: str, folders: Any) -> None:
    """They are special tokens: shown they are lost in most tools, and text that spells them is not them."""
    codec = TransformersEngine(TransformersConfig(), target_of(PROFILES[name], folders(name))).model.codec
    text = "<|det|>[[0, 0, 9, 9]]<|/det|>\n<table><tr><td>ü</td></tr></table>"
    ids = codec.encode(text)
    known = target_of(PROFILES[name], folders(name)).tokenizer.get_vocab()
    assert [i for i in ids if i < 15] == [known[t] for t in ("<|det|>", "<|/det|>", "<tr>", "<td>", "</td>", "</tr>")]
    assert codec.text(ids) == text
    end = codec.encode("<｜end▁of▁sentence｜><image>")
    assert not {known["<image>"], 1} & set(end)


# -- refusals


def test_version_2_in_the_place_of_version_1_is_named(folders: Any, tmp_path: Path) -> None:
    config = json.loads((folders("deepseek_ocr") / "config.json").read_text())
    config["vision_config"]["width"]["qwen2-0-5b"] = {"dim": 896}
    del config["vision_config"]["width"]["clip-l-14-224"]
    for file in folders("deepseek_ocr").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(TargetError, match=r"tower is of qwen2-0-5b and sam_vit_b, not of sam_vit_b and clip-l-14-224"):
        _ = target_of(PROFILES["deepseek_ocr"], tmp_path).model_config
    with pytest.raises(TargetError, match="holds a deepseek_vl_v2 model; target 'deepseek_ocr2' reads deepseek_ocr2"):
        _ = target_of(PROFILES["deepseek_ocr2"], tmp_path).model_config


def test_missing_weights_are_named(folders: Any, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    for file in folders("deepseek_ocr").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    del weights["model.image_newline"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(TargetError, match=r"lack 1 tensors .*image_newline"):
        _ = target_of(PROFILES["deepseek_ocr"], tmp_path).model


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"max_pixels": 100_000}, "max_pixels=100000: this model's resolution is chosen by target.mode"),
        ({"max_tiles": 1}, "max_tiles=1: must be at least 2"),
        ({"ngram_size": 1}, "ngram_size=1: must be at least 2, or 0"),
        ({"ngram_size": 30, "ngram_window": 20}, "ngram_window=20: must be at least ngram_size=30"),
    ],
)
def test_options_that_cannot_work_are_refused(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        target_of(PROFILES["deepseek_ocr"], "somewhere", **option)


def test_a_prompt_with_an_image_of_its_own_is_refused(folders: Any) -> None:
    target = target_of(PROFILES["deepseek_ocr"], folders("deepseek_ocr"), mode="tiny")
    with pytest.raises(TargetError, match="its prompt holds 2 times <image>, not once"):
        target.inputs([DecodeRequest(page(), "<image> what is this?")])
