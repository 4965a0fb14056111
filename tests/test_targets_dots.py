"""dots.ocr: our model class on the published file format, its prompts and end tokens, exactness, records and boxes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from hsdkit_plugins.targets.dots_ocr import PROFILE
from hsdkit_plugins.targets.models.dots_ocr import DotsOCRForCausalLM
from models import page, target_of
from models_dots import CONFIG, PREPROCESSOR, make_dots, weight_names
from scripted import SPOILINGS, Scripted
from transformers import Qwen2Config, Qwen2ForCausalLM

from hsdkit import Pipeline, compose
from hsdkit.decoding.budget import Budget
from hsdkit.decoding.loop import decode
from hsdkit.errors import TargetError
from hsdkit.protocols import DecodeRequest, DecodeSettings
from hsdkit.regions import Label

REPORT = Path(__file__).parent.parent / "examples" / "report.pdf"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dots(tmp_path_factory.mktemp("dots"))


@pytest.fixture(scope="module")
def target(folder: Path):
    torch.set_num_threads(1)
    target = target_of(PROFILE, folder)
    target.model.float()
    return target


# -- the model class


def reference_tower(weights: dict[str, torch.Tensor], image: np.ndarray) -> torch.Tensor:
    """The vision tower said another way, for one image (H, W, 3) whose sides are whole cells: patches in raster order,
    rotations as complex numbers, explicit softmax, cells gathered at the end."""
    shape = CONFIG["vision_config"]
    width, heads, size = shape["embed_dim"], shape["num_attention_heads"], shape["patch_size"]
    w = {name.removeprefix("vision_tower."): value.double() for name, value in weights.items()}

    def rms(x: torch.Tensor, name: str) -> torch.Tensor:
        return x / (x.pow(2).mean(-1, keepdim=True) + shape["rms_norm_eps"]).sqrt() * w[f"{name}.weight"]

    pixels = (image / 255.0 - np.array(PREPROCESSOR["image_mean"])) / np.array(PREPROCESSOR["image_std"])
    rows, columns = image.shape[0] // size, image.shape[1] // size
    tiles = [
        pixels[r * size : (r + 1) * size, c * size : (c + 1) * size].transpose(2, 0, 1).ravel()
        for r in range(rows)
        for c in range(columns)
    ]
    kernel = w["patch_embed.patchifier.proj.weight"].reshape(width, -1)
    x = torch.tensor(np.stack(tiles)) @ kernel.T + w["patch_embed.patchifier.proj.bias"]
    x = rms(x, "patch_embed.patchifier.norm")

    half = width // heads // 2  # value i of a head is the real part, value i + half the imaginary part
    frequencies = 10_000.0 ** (-torch.arange(0, half, 2).double() / half)
    places = torch.tensor([(r, c) for r in range(rows) for c in range(columns)]).double()
    turn = torch.polar(torch.ones(len(x), half).double(), torch.cat([places[:, [a]] * frequencies for a in (0, 1)], 1))

    def turned(v: torch.Tensor) -> torch.Tensor:
        z = torch.complex(v[..., :half].contiguous(), v[..., half:].contiguous()) * turn
        return torch.cat((z.real, z.imag), -1)

    for i in range(shape["num_hidden_layers"]):
        block = f"blocks.{i}."
        q, k, v = (rms(x, f"{block}norm1") @ w[f"{block}attn.qkv.weight"].T).split(width, -1)
        outputs = []
        for h in range(heads):
            part = slice(h * 2 * half, (h + 1) * 2 * half)
            scores = turned(q[:, part]) @ turned(k[:, part]).T / (2 * half) ** 0.5
            outputs.append(scores.softmax(-1) @ v[:, part])
        x = x + torch.cat(outputs, -1) @ w[f"{block}attn.proj.weight"].T
        y = rms(x, f"{block}norm2")
        gate = y @ w[f"{block}mlp.fc1.weight"].T
        x = x + (gate * gate.sigmoid() * (y @ w[f"{block}mlp.fc3.weight"].T)) @ w[f"{block}mlp.fc2.weight"].T
    x = rms(x, "post_trunk_norm")

    x = (x - x.mean(-1, keepdim=True)) / (x.var(-1, unbiased=False, keepdim=True) + 1e-6).sqrt()
    x = (x * w["merger.ln_q.weight"] + w["merger.ln_q.bias"]).reshape(rows // 2, 2, columns // 2, 2, width)
    cells = torch.stack([x[r, :, c].reshape(-1) for r in range(rows // 2) for c in range(columns // 2)])
    hidden = torch.nn.functional.gelu(cells @ w["merger.mlp.0.weight"].T + w["merger.mlp.0.bias"])
    return hidden @ w["merger.mlp.2.weight"].T + w["merger.mlp.2.bias"]


def test_the_published_files_are_read_without_their_code(target, folder: Path) -> None:
    assert "auto_map" in json.loads((folder / "config.json").read_text())
    assert type(target.model) is DotsOCRForCausalLM
    layers, blocks = CONFIG["num_hidden_layers"], CONFIG["vision_config"]["num_hidden_layers"]
    assert set(target.model.state_dict()) == weight_names(layers, blocks)


@torch.inference_mode()
def test_the_tower_gives_what_a_plain_reference_gives(target) -> None:
    images = [page(28 * 5, 28 * 3, 1), page(28 * 2, 28 * 6, 2)]
    inputs = target.inputs([DecodeRequest(image, "") for image in images])
    got = target.model.vision_tower(inputs["pixel_values"], inputs["image_grid_thw"])
    weights = {k: v for k, v in target.model.state_dict().items() if k.startswith("vision_tower.")}
    expected = torch.cat([reference_tower(weights, np.asarray(image)) for image in images])
    assert expected.std() > 0.1, "a reference that says nothing"
    torch.testing.assert_close(got.double(), expected, atol=2e-4, rtol=1e-3)


@torch.inference_mode()
def test_cells_take_the_places_of_image_tokens_in_a_plain_qwen2(target) -> None:
    inputs = target.inputs([DecodeRequest(page(28 * 5, 28 * 3, 1), "Read it.")])
    shared = Qwen2Config().to_dict().keys() - {"model_type", "architectures", "transformers_version"}
    fields = {name: value for name, value in target.model.config.to_dict().items() if name in shared}
    plain = Qwen2ForCausalLM(Qwen2Config(**fields))
    weights = {k: v for k, v in target.model.state_dict().items() if not k.startswith("vision_tower.")}
    plain.float().eval().load_state_dict(weights)
    embedded = plain.model.embed_tokens(inputs["input_ids"])
    cells = target.model.vision_tower(inputs["pixel_values"], inputs["image_grid_thw"])
    embedded[inputs["input_ids"] == target.model_config.image_token_id] = cells
    positions = torch.arange(embedded.shape[1])[None]
    expected = plain(inputs_embeds=embedded, position_ids=positions).logits
    torch.testing.assert_close(target.model(**inputs).logits, expected, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_a_row_of_a_ragged_batch_gives_the_logits_it_gives_alone(target) -> None:
    batch = [DecodeRequest(page(w, h, s), "x" * s) for s, (w, h) in enumerate([(200, 120), (90, 40), (60, 130)])]
    together = target.inputs(batch)
    lengths = together["attention_mask"].sum(-1).tolist()
    assert len(set(lengths)) == 3, "the batch is not ragged"
    logits = target.model(**together).logits
    for row, (request, length) in enumerate(zip(batch, lengths, strict=True)):
        alone = target.model(**target.inputs([request])).logits[0]
        torch.testing.assert_close(alone, logits[row, :length], atol=2e-4, rtol=1e-4)


def test_image_tokens_and_cells_must_be_equally_many(target) -> None:
    inputs = target.inputs([DecodeRequest(page(), "")])
    inputs["input_ids"][inputs["input_ids"] == target.model_config.image_token_id] = 5
    with pytest.raises(ValueError, match=r"^0 image tokens for \d+ cells"):
        target.model(**inputs)


def test_a_saved_model_is_read_again(target, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("model*", "config.json"))
    target.model.save_pretrained(tmp_path)
    again = target_of(PROFILE, tmp_path).model.state_dict()
    assert all(torch.equal(again[name], value) for name, value in target.model.state_dict().items())


def test_incomplete_weights_and_other_models_are_told(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    shard = index["weight_map"]["vision_tower.merger.mlp.0.weight"]
    gone = [name for name, where in index["weight_map"].items() if where == shard]
    index["weight_map"] = {name: where for name, where in index["weight_map"].items() if where != shard}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(TargetError, match=f"lack {len(gone)} tensors of a DotsOCRForCausalLM"):
        _ = target_of(PROFILE, tmp_path).model
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3_vl"}))
    with pytest.raises(TargetError, match=r"holds a qwen3_vl model; target 'dots_ocr' reads dots_ocr"):
        _ = target_of(PROFILE, tmp_path).model_config


# -- prompts, ends, exactness


def test_the_chat_is_the_published_one(target) -> None:
    ids = target.inputs([DecodeRequest(page(3 * 28, 2 * 28), target.prompt(None))])["input_ids"][0]
    image = f"<|img|>{6 * '<|imgpad|>'}<|endofimg|>"
    assert target.tokenizer.decode(ids) == f"<|user|>{image}{target.prompt(None)}<|endofuser|><|assistant|>"
    assert target.prompt(None).startswith("Please output the layout information from the PDF image, including each")
    assert target.prompt(None).endswith("\n5. Final Output: The entire output must be a single JSON object.\n")
    assert {target.prompt(label) for label in Label} == {"Extract the text content from this image."}


SETTINGS = DecodeSettings(max_new_tokens=40, stop_loops=False)


def requests_of(target) -> list[DecodeRequest]:
    labels = [None, Label.TEXT, None, Label.TABLE]
    sizes = [(90, 60), (140, 40), (60, 120), (80, 80)]
    return [DecodeRequest(page(w, h, k), target.prompt(labels[k])) for k, (w, h) in enumerate(sizes)]


def generate(target, request: DecodeRequest, ends: list[int]) -> list[int]:
    inputs = target.inputs([request])
    output = target.model.generate(
        **inputs, do_sample=False, max_new_tokens=40, eos_token_id=ends or None, pad_token_id=0
    )
    new: list[int] = output[0, inputs["input_ids"].shape[1] :].tolist()
    return new


@pytest.mark.parametrize("rows", [1, 4])
def test_drafts_never_change_page_and_region_outputs(target, folder: Path, rows: int) -> None:
    requests = requests_of(target)[:rows]
    truth = [generate(target, request, sorted(target.eos_ids)) for request in requests]
    assert len(set(truth[0])) > 8, "an output that says nothing"
    engine = TransformersEngine(TransformersConfig(), target)
    matchers = [Scripted(row, SPOILINGS[k % len(SPOILINGS)], seed=k) for k, row in enumerate(truth)]
    result = decode(engine.model, requests, SETTINGS, matchers, Budget(16, None), [])
    assert [list(s.tokens) for s in result.sequences] == truth
    assert result.forwards < sum(map(len, truth)), "no draft token was accepted"


def test_both_published_end_tokens_end_an_output(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "generation_config.json").unlink()
    ids = target_of(PROFILE, folder).tokenizer.convert_tokens_to_ids
    both = {ids("<|endoftext|>"), ids("<|endofassistant|>")}
    assert target_of(PROFILE, folder).eos_ids == both
    assert target_of(PROFILE, tmp_path).eos_ids == both, "the tokenizer's own, and the profile's"
    target = target_of(PROFILE, folder)
    target.model.float()
    request = requests_of(target)[0]
    plain = generate(target, request, [])
    stop = plain[12]
    target.eos_ids = frozenset({stop})  # a token that this random model does write
    engine = TransformersEngine(TransformersConfig(), target)
    result = decode(engine.model, [request], SETTINGS, [Scripted(plain, "perfect")], Budget(16, None), [])
    (sequence,) = result.sequences
    assert sequence.finish_reason == "eos"
    assert [t for t in sequence.tokens if t != stop] == plain[: plain.index(stop)]


def test_a_document_is_read_end_to_end_and_drafts_change_nothing(folder: Path) -> None:
    options = {
        "target": "dots_ocr",
        "target.model": str(folder),
        "drafter": "pdftext",
        "draft": "always",
        "verifier.max_new_tokens": 24,
    }
    plain = Pipeline(compose({**options, "verifier": "autoregressive"})).parse(REPORT).pages[0]
    staged = Pipeline(compose({**options, "verifier": "hsd", "verifier.stage1": "always"})).parse(REPORT).pages[0]
    assert (plain.error, staged.error) == (None, None)
    assert [stage.name for stage in staged.stages] == ["regions", "page"]
    assert staged.text == plain.text
    assert staged.regions == (), "random weights write no records"
