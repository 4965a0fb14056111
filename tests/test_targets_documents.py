"""Document parsers as targets: each on a tiny random checkpoint of its real architecture, in its real file format."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from commands import hsdkit, load
from document_models import DOCUMENT_MODELS
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from hsdkit_plugins.targets.profile import Profile
from hsdkit_plugins.targets.transformers_target import TransformersTarget
from models import page, target_of
from scripted import SPOILINGS, Scripted, Spoiling

from hsdkit.decoding.budget import Budget
from hsdkit.decoding.loop import decode
from hsdkit.protocols import DecodeRequest, DecodeSettings
from hsdkit.regions import Label

NAMES = sorted(DOCUMENT_MODELS)
REPORT = Path(__file__).parent.parent / "examples" / "report.pdf"
LABELS = (None, Label.TEXT, Label.TABLE, Label.FORMULA)
TOKENS = 32
SETTINGS = DecodeSettings(max_new_tokens=TOKENS, stop_loops=False)


def profile(name: str) -> Profile:
    found: Profile = importlib.import_module(f"hsdkit_plugins.targets.{name}").PROFILE
    return found


@pytest.fixture(scope="module")
def target(checkpoint: Callable[[str], Path]) -> Callable[[str], TransformersTarget]:
    torch.set_num_threads(1)
    return cache(lambda name: target_of(profile(name), checkpoint(name)))


@pytest.fixture(scope="module")
def engine(target: Callable[[str], TransformersTarget]) -> Callable[[str], TransformersEngine]:
    return cache(lambda name: TransformersEngine(TransformersConfig(), target(name)))


def requests(target: TransformersTarget) -> list[DecodeRequest]:
    """A page and crops of three labels, all of other sizes."""
    sizes = [(200, 120), (90, 40), (60, 130), (130, 130)]
    return [
        DecodeRequest(page(*size, seed=k), target.prompt(label))
        for k, (size, label) in enumerate(zip(sizes, LABELS, strict=True))
    ]


# -- inputs


STOCK = {
    "hunyuanocr": "HunYuanVLProcessor",
    "paddleocr_vl": "PaddleOCRVLProcessor",
    "lightonocr": "LightOnOcrProcessor",
    "granite_docling": "Idefics3Processor",
}


@pytest.mark.parametrize("name", STOCK)
def test_inputs_are_those_of_the_stock_processor(
    name: str, target: Callable[..., Any], checkpoint: Callable[..., Any]
) -> None:
    processor = getattr(transformers, STOCK[name]).from_pretrained(checkpoint(name), backend="pil")
    batch = requests(target(name))
    system = [] if target(name).system is None else [{"role": "system", "content": target(name).system}]
    texts = []
    for request in batch:
        content = [{"type": "image"}, *([{"type": "text", "text": request.prompt}] if request.prompt else [])]
        turns = [*system, {"role": "user", "content": content}]
        texts.append(processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False))
    expected = processor(
        text=texts,
        images=[[request.image] for request in batch],
        padding=True,
        padding_side="right",
        add_special_tokens=False,
        return_tensors="pt",
    )
    given = target(name).inputs(batch)
    assert expected.keys() <= given.keys()
    for key, value in expected.items():
        assert torch.equal(given[key], value), key


@pytest.mark.parametrize(
    ("name", "stock"),
    [("glm_ocr", "Glm46VProcessor"), ("qwen2_5_vl", "Qwen2_5_VLProcessor"), ("qwen3_vl", "Qwen3VLProcessor")],
)
def test_image_tokens_are_those_of_stock_processors_that_need_torchvision(
    name: str, stock: str, target: Callable[..., Any]
) -> None:
    """Such a processor cannot be built without video libraries, but its layout of an image can be asked for."""
    one = target(name)
    token = one.tokenizer.convert_ids_to_tokens(one.model_config.image_token_id)
    parts = SimpleNamespace(image_processor=one.image_processor, image_token=token)
    batch = requests(one)
    given = one.inputs(batch)
    for b, request in enumerate(batch):
        expanded = getattr(transformers, stock).replace_image_token(parts, given, b)
        text = one.chat(request.prompt).replace(token, expanded)
        expected = one.tokenizer(text, add_special_tokens=False)["input_ids"]
        length = int(given["attention_mask"][b].sum())
        assert given["input_ids"][b, :length].tolist() == expected


@pytest.mark.parametrize("name", NAMES)
def test_prompts_are_in_the_input_and_images_before_them(name: str, target: Callable[..., Any]) -> None:
    image_token = target(name).model_config.image_token_id
    for request in requests(target(name)):
        ids = target(name).inputs([request])["input_ids"][0].tolist()
        last = max(k for k, token in enumerate(ids) if token == image_token)
        assert request.prompt in target(name).tokenizer.decode(ids[last + 1 :])


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_a_row_of_a_ragged_batch_gives_the_logits_it_gives_alone(name: str, target: Callable[..., Any]) -> None:
    batch = requests(target(name))
    together = target(name).inputs(batch)
    lengths = together["attention_mask"].sum(-1).tolist()
    assert len(set(lengths)) > 1, "the batch is not ragged"
    logits = target(name).model.float()(**together).logits
    for b, request in enumerate(batch):
        alone = target(name).inputs([request])
        assert alone["input_ids"][0].tolist() == together["input_ids"][b, : lengths[b]].tolist()
        expected = target(name).model(**alone).logits[0]
        assert (logits[b, : lengths[b]] - expected).abs().max() <= 5e-4 * expected.abs().max()


# -- exactness


@cache
def _truth(target: TransformersTarget) -> list[list[int]]:
    return [generate(target, request) for request in requests(target)]


def generate(target: Any, request: DecodeRequest) -> list[int]:
    """The new tokens of plain greedy decoding by `transformers`, end tokens never ending it."""
    inputs = target.inputs([request])
    target.model.float().generation_config.eos_token_id = None
    output = target.model.generate(**inputs, do_sample=False, max_new_tokens=TOKENS, pad_token_id=0)
    ids: list[int] = output[0, inputs["input_ids"].shape[1] :].tolist()
    return ids


def decoded(engine: TransformersEngine, matchers: list[Any], ends: frozenset[int] = frozenset()) -> list[list[int]]:
    engine.model.eos_ids = ends
    batch = requests(engine.target)[: len(matchers)]  # type: ignore[arg-type]
    result = decode(engine.model, batch, SETTINGS, matchers, Budget(24, None), engine.target.logits_processors())
    return [list(s.tokens) for s in result.sequences]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("spoiling", [None, "perfect", "noisy", "branching"])
def test_one_sequence_is_what_generate_says(
    name: str, spoiling: Spoiling | None, engine: Callable[..., Any], target: Callable[..., Any]
) -> None:
    expected = _truth(target(name))[:1]
    matcher = None if spoiling is None else Scripted(expected[0], spoiling)
    assert decoded(engine(name), [matcher]) == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kinds", [SPOILINGS[:4], SPOILINGS[3:], (None,) * 4])
def test_a_ragged_batch_is_what_generate_says(
    name: str, kinds: tuple[Spoiling | None, ...], engine: Callable[..., Any], target: Callable[..., Any]
) -> None:
    expected = _truth(target(name))
    matchers = [kind and Scripted(row, kind, seed=k) for k, (row, kind) in enumerate(zip(expected, kinds, strict=True))]
    assert decoded(engine(name), matchers) == expected


@pytest.mark.parametrize("name", NAMES)
def test_every_end_token_ends_a_sequence_and_those_in_drafts_end_nothing(
    name: str, engine: Callable[..., Any], target: Callable[..., Any]
) -> None:
    known = _truth(target(name))
    ends = frozenset({known[0][12], known[1][20]})
    expected = [row[: next((k + 1 for k, t in enumerate(row) if t in ends), len(row))] for row in known]
    assert min(map(len, expected)) < TOKENS
    matchers = [Scripted(row, "branching", ends=tuple(ends), seed=k) for k, row in enumerate(known)]
    assert decoded(engine(name), matchers, ends) == expected


def test_outputs_differ_so_that_exactness_says_something(target: Callable[..., Any]) -> None:
    for name in NAMES:
        rows = _truth(target(name))
        assert len({tuple(row) for row in rows}) == len(rows), name
        assert max(len(set(row)) for row in rows) > 5, name


# -- end tokens, files


@pytest.mark.parametrize("name", NAMES)
def test_end_tokens_are_those_of_the_files_and_of_the_profile(name: str, target: Callable[..., Any]) -> None:
    one = target(name)
    vocabulary = one.tokenizer.get_vocab()
    listed = one.generation_config.eos_token_id
    assert one.eos_ids >= set(listed if isinstance(listed, list) else [listed])
    assert one.eos_ids >= {vocabulary[t] for t in profile(name).end_tokens if t in vocabulary}
    assert any(t in vocabulary for t in profile(name).end_tokens)


@pytest.mark.parametrize("name", NAMES)
@torch.inference_mode()
def test_saved_and_loaded_again_it_is_the_same(name: str, target: Callable[..., Any], tmp_path: Path) -> None:
    """As `transformers` 5 saves it: one processor_config.json for all processors, where there is a stock processor."""
    first = target(name)
    first.model.save_pretrained(tmp_path)
    first.tokenizer.save_pretrained(tmp_path)
    (first.processor if name in STOCK else first.image_processor).save_pretrained(tmp_path)
    assert (tmp_path / "preprocessor_config.json").exists() == (name not in STOCK)
    again = target_of(profile(name), tmp_path)
    batch = requests(first)[:2]
    inputs, expected = again.inputs(batch), first.inputs(batch)
    assert all(torch.equal(inputs[key], expected[key]) for key in expected)
    torch.testing.assert_close(again.model.float()(**inputs).logits, first.model.float()(**expected).logits)


# -- the command


def test_without_weights_the_command_says_in_one_line_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    def offline(*args: object, **kwargs: object) -> str:
        raise LocalEntryNotFoundError("offline")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    result = hsdkit("run", str(REPORT), "target=hunyuanocr", f"output={tmp_path}")
    assert result.exit_code == 1
    (line,) = [line for line in result.stderr.splitlines() if line.strip()]
    assert "tencent/HunyuanOCR" in line
    assert "hf download tencent/HunyuanOCR" in line
    assert "target.model=FOLDER" in line


def test_with_a_folder_the_command_writes_a_page(tmp_path: Path, checkpoint: Callable[[str], Path]) -> None:
    options = ["target=hunyuanocr", f"target.model={checkpoint('hunyuanocr')}", "drafter=pdftext", "draft=always"]
    limits = ["verifier.max_new_tokens=8", "verifier.stage1=always", "engine.threads=1"]
    result = hsdkit("run", str(REPORT), *options, *limits, f"output={tmp_path}")
    assert result.exit_code == 0, result.output
    (read,) = load(str(tmp_path / "report.json")).pages
    assert [stage.name for stage in read.stages] == ["regions", "page"]
    assert read.page_tokens == 8
    assert (tmp_path / "report.md").exists()
