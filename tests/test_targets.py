"""Targets: loading in the real file format, prompts, padded batches, generation settings, broken checkpoints."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from hsdkit_plugins.targets import qwen2_5_vl, qwen3_vl
from hsdkit_plugins.targets.images import text_height
from hsdkit_plugins.targets.tiny import CHECKPOINT, TEXT_HEIGHT, TinyConfig, TinyTarget
from hsdkit_plugins.targets.transformers_target import TransformersTarget
from models import make, page, target_of
from PIL import Image, ImageDraw, ImageFont

from hsdkit.errors import TargetError
from hsdkit.protocols import DecodeRequest
from hsdkit.regions import Box, Label

ARCHITECTURES = {"qwen2_5_vl": qwen2_5_vl.PROFILE, "qwen3_vl": qwen3_vl.PROFILE}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("checkpoints")
    return {name: make(name, folder / name) for name in [*ARCHITECTURES, "llama"]}


@pytest.fixture(scope="module")
def targets(checkpoints: dict[str, Path]) -> dict[str, TransformersTarget]:
    found: dict[str, TransformersTarget] = {
        name: target_of(profile, checkpoints[name], max_pixels=None) for name, profile in ARCHITECTURES.items()
    }
    found["tiny"] = TinyTarget(TinyConfig())
    for target in found.values():
        target.model.float()
    return found


ALL = [*ARCHITECTURES, "tiny"]


def requests(target: TransformersTarget, *sizes: tuple[int, int]) -> list[DecodeRequest]:
    labels = [None, Label.TABLE, Label.FORMULA, Label.TEXT]
    return [DecodeRequest(page(w, h, seed), target.prompt(labels[seed % 4])) for seed, (w, h) in enumerate(sizes)]


@pytest.mark.parametrize("name", ALL)
@torch.inference_mode()
def test_a_row_of_a_ragged_batch_gives_the_logits_it_gives_alone(targets: dict, name: str) -> None:
    target = targets[name]
    batch = requests(target, (200, 120), (90, 40), (60, 130))
    together = target.inputs(batch)
    lengths = together["attention_mask"].sum(-1)
    assert len(set(lengths.tolist())) == 3, "the batch is not ragged"
    logits = target.model(**together).logits
    for b, request in enumerate(batch):
        alone = target.inputs([request])
        n = int(lengths[b])
        assert alone["input_ids"][0].tolist() == together["input_ids"][b, :n].tolist()
        assert together["attention_mask"][b].tolist() == [1] * n + [0] * (together["input_ids"].shape[1] - n)
        torch.testing.assert_close(target.model(**alone).logits[0], logits[b, :n], atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize("name", ALL)
def test_there_is_one_image_token_for_each_cell_of_the_image(targets: dict, name: str) -> None:
    target = targets[name]
    batch = requests(target, (200, 120), (90, 40))
    inputs = target.inputs(batch)
    cells = inputs["image_grid_thw"].prod(-1) // 4
    assert inputs["mm_token_type_ids"].sum(-1).tolist() == cells.tolist()
    assert inputs["pixel_values"].shape[0] == int(cells.sum()) * 4


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_region_prompts_follow_the_label_and_are_in_the_input(targets: dict, name: str) -> None:
    target = targets[name]
    prompts = {target.prompt(label) for label in (None, Label.TEXT, Label.TABLE, Label.FORMULA)}
    assert len(prompts) == 4
    for prompt in prompts:
        assert "{" not in prompt
        ids = target.inputs([DecodeRequest(page(), prompt)])["input_ids"][0]
        assert prompt in target.tokenizer.decode(ids)


def test_the_table_format_is_one_choice_for_prompts_and_drafts(checkpoints: dict) -> None:
    target = target_of(qwen3_vl.PROFILE, checkpoints["qwen3_vl"], tables="markdown")
    assert "Markdown" in target.prompt(Label.TABLE)
    assert "HTML" not in target.prompt(None)
    assert target.dialect.tables == "markdown"


@pytest.mark.parametrize("name", ALL)
def test_every_page_shape_becomes_an_input_within_the_bounds(targets: dict, name: str) -> None:
    target = targets[name]
    most = target.pixel_bounds[1]
    side = 2 * target.image_processor.patch_size
    for size in [(1, 1), (3, 2000), (2000, 3), (5, 5), (1400, 1300), (333, 211)]:
        grid = target.inputs([DecodeRequest(Image.new("RGB", size, "white"), "")])["image_grid_thw"][0]
        area = int(grid.prod()) * target.image_processor.patch_size**2
        # The processor keeps at least one cell a side, so extreme shapes may exceed its own bound by that.
        assert area <= max(most, side * max(int(grid[1]), int(grid[2])) * target.image_processor.patch_size), size


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "CMYK", "LA", "I;16"])
def test_images_of_every_mode_are_read(targets: dict, mode: str) -> None:
    image = Image.new(mode, (64, 48))
    assert targets["tiny"].inputs([DecodeRequest(image, "")])["image_grid_thw"].tolist() == [[1, 6, 8]]


def test_transparent_parts_are_white() -> None:
    target = TinyTarget(TinyConfig())
    pixels = target.inputs([DecodeRequest(Image.new("RGBA", (32, 32), (0, 0, 0, 0)), "")])["pixel_values"]
    assert pixels.min() == pixels.max() == 1


# -- tiny's own image sizes


def test_tiny_pads_to_whole_cells_and_never_resamples_a_page_that_fits(targets: dict) -> None:
    target = targets["tiny"]
    image = printed_to_the_foot(101, 75)
    prepared = target.prepare(image)
    assert prepared.size == (112, 80)
    assert list(prepared.crop((0, 0, 101, 75)).getdata()) == list(image.getdata())
    assert prepared.getpixel((111, 79)) == (255, 255, 255)
    pixels = target.inputs([DecodeRequest(image, "")])["pixel_values"]
    expected = target.image_processor(images=[prepared], do_resize=False, return_tensors="pt")["pixel_values"]
    assert torch.equal(pixels, expected)
    assert target.notes(image) == ()


def printed_to_the_foot(width: int, height: int) -> Image.Image:
    """A page that is not cut, because its last rows have ink."""
    image = page(width, height)
    image.paste((0, 0, 0), (10, height - 6, width - 10, height - 2))
    return image


def test_tiny_scales_large_pages_down_and_says_so() -> None:
    target = TinyTarget(TinyConfig(max_pixels=100_000))
    image = printed_to_the_foot(800, 600)
    prepared = target.prepare(image)
    assert prepared.width * prepared.height <= 100_000
    assert abs(prepared.width / prepared.height - 800 / 600) < 0.1
    assert target.prepare(prepared).size == prepared.size
    (note,) = target.notes(image)
    assert "800 x 600 px" in note
    assert "target=NAME" in note


def test_crops_are_scaled_as_their_page_is() -> None:
    target = TinyTarget(TinyConfig(max_pixels=100_000))
    image = printed_to_the_foot(800, 600)
    crop = target.crop(image, Box(0, 0, 400.5, 299.2))
    scale = target.prepare(image).width / 800
    assert crop.width == pytest.approx(401 * scale, abs=8)
    assert TinyTarget(TinyConfig()).crop(printed(14), Box(10.6, 10, 30.2, 20)).size == (21, 10)


@pytest.mark.parametrize("font", ["DejaVuSans.ttf", "DejaVuSerif.ttf"])
@pytest.mark.parametrize("size", [11, 13, 16, 28, 40])
def test_the_height_of_text_is_measured(font: str, size: int) -> None:
    height = text_height(printed(size, font))
    assert height == pytest.approx(size, rel=0.2)


def test_blank_and_ruled_pages_have_no_text_height() -> None:
    image = Image.new("RGB", (400, 300), "white")
    assert text_height(image) is None
    ImageDraw.Draw(image).rectangle((20, 20, 380, 280), outline="black", width=3)
    assert text_height(image) is None
    assert text_height(Image.new("RGB", (1, 1))) is None


@pytest.mark.parametrize("size", [10, 40])
def test_tiny_sees_text_of_any_height_as_high_as_it_was_trained_on(targets: dict, size: int) -> None:
    target = targets["tiny"]
    image = printed(size)
    view = target.view(image)
    assert text_height(view) == pytest.approx(TEXT_HEIGHT, abs=1.5)
    assert abs(target.crop(image, Box(0, 0, 200, 100)).width - 200 * view.width / image.width) <= 1
    assert target.notes(image) == ()
    normal = printed(TEXT_HEIGHT)
    assert target.view(normal) is normal
    assert target.notes(normal) == ()


def test_tiny_says_when_small_text_stays_small(targets: dict) -> None:
    target = TinyTarget(TinyConfig(max_pixels=20_000))
    image = printed(10)
    assert target.view(image).width < targets["tiny"].view(image).width
    (note,) = target.notes(image)
    assert "makes its text small" in note


def printed(size: int, font: str = "DejaVuSans.ttf") -> Image.Image:
    image = Image.new("RGB", (size * 24, size * 10), "white")
    face = ImageFont.truetype(font, size) if _has(font) else ImageFont.load_default(size)
    text = "The light on the pier was\nseen by all of the men on\nboard. In winter the ships\nwere kept out of harbour."
    ImageDraw.Draw(image).multiline_text((size, size), text, fill="black", font=face)
    return image


def _has(font: str) -> bool:
    try:
        ImageFont.truetype(font, 10)
    except OSError:
        return False
    return True


# -- generation settings


@pytest.mark.parametrize("name", ALL)
def test_end_tokens_are_those_of_the_generation_settings(targets: dict, name: str) -> None:
    eos = targets[name].model.generation_config.eos_token_id
    assert targets[name].eos_ids == frozenset(eos if isinstance(eos, list) else [eos])


def copy(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def set_generation(folder: Path, **settings: object) -> None:
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


def test_several_end_tokens_end_a_sequence(checkpoints: dict, tmp_path: Path) -> None:
    folder = copy(checkpoints["qwen3_vl"], tmp_path / "two")
    set_generation(folder, eos_token_id=[256, 258])
    assert target_of(qwen3_vl.PROFILE, folder).eos_ids == {256, 258}


def test_processors_are_those_that_generate_applies(checkpoints: dict, tmp_path: Path) -> None:
    folder = copy(checkpoints["qwen3_vl"], tmp_path / "penalty")
    assert target_of(qwen3_vl.PROFILE, folder).logits_processors() == []
    set_generation(folder, repetition_penalty=1.05, no_repeat_ngram_size=7)
    target = target_of(qwen3_vl.PROFILE, folder)
    inputs = target.inputs([DecodeRequest(page(), target.prompt(None))])
    ids = target.model.float().generate(
        **inputs,
        do_sample=False,
        max_new_tokens=12,
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
    )
    prompt = inputs["input_ids"].shape[1]
    for t, (raw, expected) in enumerate(zip(ids.logits, ids.scores, strict=True)):
        for processor in target.logits_processors():
            raw = processor(ids.sequences[:, : prompt + t], raw)
        torch.testing.assert_close(raw, expected)


def test_a_generation_setting_that_cannot_be_applied_is_refused(checkpoints: dict, tmp_path: Path) -> None:
    folder = copy(checkpoints["qwen3_vl"], tmp_path / "suppress")
    set_generation(folder, suppress_tokens=[3])
    with pytest.raises(TargetError, match=r"suppress_tokens=\[3\]"):
        target_of(qwen3_vl.PROFILE, folder).logits_processors()


@pytest.mark.parametrize("wrong", [{"dpi": 3}, {"max_pixels": 0}, {"min_pixels": 9, "max_pixels": 8}])
def test_options_out_of_range_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        TinyConfig(**wrong)


# -- the packaged checkpoint


def test_the_packaged_model_is_found_and_loads_in_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    target = TinyTarget(TinyConfig())
    assert target.checkpoint.folder == CHECKPOINT
    assert target.dpi == 120
    assert not target.model.training
    assert sum(p.numel() for p in target.model.parameters()) < 20e6


@torch.inference_mode()
def test_the_packaged_model_reads_a_printed_line(targets: dict) -> None:
    image = Image.new("RGB", (256, 48), "white")
    ImageDraw.Draw(image).text((8, 12), "The harbour was closed.", fill="black", font=ImageFont.load_default(14))
    target = targets["tiny"]
    inputs = target.inputs([DecodeRequest(image, target.prompt(None))])
    ids = target.model.generate(**inputs, do_sample=False, max_new_tokens=60)[0, inputs["input_ids"].shape[1] :]
    text = target.clean(target.tokenizer.decode(ids, skip_special_tokens=True))
    from rapidfuzz.distance import Levenshtein

    assert Levenshtein.normalized_similarity(text, "The harbour was closed.") > 0.8, text
