"""Checkpoints: whatever is wrong with one is said in one line that names it, the cause and the option to set."""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers
from document_models import DOCUMENT_MODELS
from hsdkit_plugins.targets import granite_docling, hunyuanocr, lightonocr, qwen3_vl
from hsdkit_plugins.targets.profile import Profile
from models import make_tokenizer, page, target_of

from hsdkit.errors import TargetError
from hsdkit.protocols import DecodeRequest

Checkpoints = Callable[[str], Path]
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def error_of(model: object, touch: str = "model", profile: Profile = qwen3_vl.PROFILE, **options: object) -> str:
    with pytest.raises(TargetError) as caught:
        getattr(target_of(profile, str(model), **options), touch)
    text = str(caught.value)
    assert "\n" not in text
    assert "target." in text or f"reads {', '.join(sorted(profile.model_types))}" in text or "pip install" in text
    assert str(model) in text
    return text


def copy(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert "no such folder" in error_of(tmp_path / "absent")
    assert "no such folder" in error_of("./absent")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "preprocessor_config.json", "model.safetensors"])
def test_a_missing_file_is_named(checkpoint: Checkpoints, tmp_path: Path, name: str) -> None:
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "incomplete")
    (folder / name).unlink()
    assert f"incomplete checkpoint: {name} missing" in error_of(folder)


def test_a_missing_shard_is_named(checkpoint: Checkpoints, tmp_path: Path) -> None:
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "sharded")
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    weights = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weights}))
    assert "model-00002-of-00002.safetensors missing" in error_of(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_file_cut_in_two(checkpoint: Checkpoints, tmp_path: Path, name: str) -> None:
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "cut")
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    assert "cannot load" in error_of(folder, "tokenizer" if name == "tokenizer.json" else "model")


def test_weights_that_lack_tensors(checkpoint: Checkpoints, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = copy(checkpoint("qwen3_vl"), tmp_path / "lacking")
    weights = load_file(folder / "model.safetensors")
    lost = sorted(k for k in weights if "mlp" in k)[:4]
    for name in lost:
        del weights[name]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert f"lack 4 tensors of a Qwen3VLForConditionalGeneration (first: {', '.join(lost[:3])})" in error_of(folder)


def test_weights_with_tensors_that_the_model_has_not(
    checkpoint: Checkpoints, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from safetensors.torch import load_file, save_file

    folder = copy(checkpoint("qwen3_vl"), tmp_path / "more")
    weights = load_file(folder / "model.safetensors")
    assert target_of(qwen3_vl.PROFILE, str(folder)).model is not None
    assert not caplog.messages
    more = {f"model.language_model.layers.{i}.extra.weight": torch.zeros(2) for i in range(7, 11)}
    save_file(weights | more, folder / "model.safetensors", metadata={"format": "pt"})
    assert target_of(qwen3_vl.PROFILE, str(folder)).model is not None
    assert caplog.messages == [
        f"target 'qwen3_vl': {folder}: its weights have 4 tensors that no Qwen3VLForConditionalGeneration has "
        f"(first: {', '.join(sorted(more)[:3])}); they are not used"
    ]


@pytest.mark.parametrize("name", ["qwen2_5_vl", "qwen3_vl", *DOCUMENT_MODELS])
def test_another_architecture(name: str, checkpoint: Checkpoints) -> None:
    profile = importlib.import_module(f"hsdkit_plugins.targets.{name}").PROFILE
    other = "glm_ocr" if name != "glm_ocr" else "qwen3_vl"
    folder = checkpoint(other)
    assert f"holds a {other} model" in error_of(folder, profile=profile)


def test_a_model_that_reads_no_images(checkpoint: Checkpoints, tmp_path: Path) -> None:
    folder = copy(checkpoint("llama"), tmp_path / "blind")
    shutil.copy(checkpoint("qwen3_vl") / "preprocessor_config.json", folder)
    anything = replace(qwen3_vl.PROFILE, model_types=frozenset())
    assert "a llama model reads no images" in error_of(folder, profile=anything)


def test_a_mistral_that_is_no_lightonocr_lacks_its_layers(checkpoint: Checkpoints, tmp_path: Path) -> None:
    """The published config.json of LightOnOCR names a Mistral 3, so only the weights tell them apart."""
    from safetensors.torch import load_file, save_file

    folder = copy(checkpoint("lightonocr"), tmp_path / "mistral")
    weights = load_file(folder / "model.safetensors")
    renamed = {k.replace("vision_encoder", "vision_tower"): v for k, v in weights.items()}
    assert renamed.keys() != weights.keys()
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    assert "tensors of a LightOnOcrForConditionalGeneration" in error_of(folder, profile=lightonocr.PROFILE)


def test_a_processor_that_lays_out_images_needs_its_settings(checkpoint: Checkpoints, tmp_path: Path) -> None:
    folder = copy(checkpoint("granite_docling"), tmp_path / "unset")
    (folder / "processor_config.json").unlink()
    assert "processor_config.json missing" in error_of(folder, profile=granite_docling.PROFILE)


def test_a_tokenizer_with_more_tokens_than_the_model(checkpoint: Checkpoints, tmp_path: Path) -> None:
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "other_words")
    make_tokenizer(merges=400).save_pretrained(folder)
    assert "tokens, its model only" in error_of(folder)


@pytest.mark.parametrize("text", ["{% for m in messages %}{{ m.role", "{{ raise_exception('no images') }}"])
def test_a_chat_template_that_cannot_be_applied(checkpoint: Checkpoints, tmp_path: Path, text: str) -> None:
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "chatless")
    (folder / "chat_template.jinja").write_text(text)
    with pytest.raises(TargetError, match="cannot load its chat template: Template"):
        target_of(qwen3_vl.PROFILE, folder).inputs([DecodeRequest(page(), "read")])


def test_a_chat_template_file_that_holds_none(checkpoint: Checkpoints, tmp_path: Path) -> None:
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "no_template")
    (folder / "chat_template.jinja").unlink()
    (folder / "chat_template.json").write_text("{}")
    assert "cannot load chat_template.json: KeyError" in error_of(folder, "tokenizer")


def test_a_checkpoint_without_an_end_token(checkpoint: Checkpoints, tmp_path: Path) -> None:
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "endless")
    for name, key in (("generation_config.json", "eos_token_id"), ("tokenizer_config.json", "eos_token")):
        settings = json.loads((folder / name).read_text())
        del settings[key]
        (folder / name).write_text(json.dumps(settings))
    with pytest.raises(TargetError, match="names no end token; set eos_token_id in its generation_config"):
        _ = target_of(qwen3_vl.PROFILE, folder).eos_ids
    ended = replace(qwen3_vl.PROFILE, end_tokens=("<|endoftext|>", "<|not a token of it|>"))
    target = target_of(ended, folder)
    assert target.eos_ids == {target.tokenizer.get_vocab()["<|endoftext|>"]}


def test_an_image_processor_of_another_kind(checkpoint: Checkpoints, tmp_path: Path) -> None:
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "other_images")
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"image_processor_type": "SiglipImageProcessor"}))
    target = target_of(qwen3_vl.PROFILE, folder)
    with pytest.raises(TargetError, match="a SiglipImageProcessorPil, cuts no grid of patches"):
        target.inputs([DecodeRequest(page(), "read")])


def test_a_model_that_the_installed_transformers_does_not_have(checkpoint: Checkpoints) -> None:
    newer = replace(lightonocr.PROFILE, model_class="LightOnOcr9ForConditionalGeneration")
    said = error_of(checkpoint("lightonocr"), profile=newer)
    assert f"transformers {transformers.__version__} has no LightOnOcr9ForConditionalGeneration" in said


def test_no_network_and_nothing_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError

    def offline(*args: object, **kwargs: object) -> str:
        raise LocalEntryNotFoundError("Got: ConnectError\nmore")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    assert "the hub cannot be reached" in error_of("someone/some-model")

    def unknown(*args: object, **kwargs: object) -> str:
        raise RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unknown)
    assert "neither a local folder nor a model of the hub" in error_of("someone/some-model")


def test_a_checkpoint_without_a_chat_template(checkpoint: Checkpoints, tmp_path: Path) -> None:
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "untold")
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(TargetError, match="no chat template"):
        target_of(qwen3_vl.PROFILE, folder).inputs([DecodeRequest(page(), "read")])
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": template}))
    assert target_of(qwen3_vl.PROFILE, folder).inputs([DecodeRequest(page(), "read")])["input_ids"].numel()


def test_a_download_is_announced_once_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import huggingface_hub

    commit = "1" * 40
    snapshot = tmp_path / "models--someone--some-model" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *a, **k: str(snapshot))
    for revision in (commit, None):
        error_of("someone/some-model", profile=replace(qwen3_vl.PROFILE, revision=revision))
    said = "fetching someone/some-model from the Hugging Face hub; this is done once and can take minutes"
    assert caplog.messages == [said] * 2
    (snapshot / "model.safetensors").touch()
    error_of("someone/some-model", profile=replace(qwen3_vl.PROFILE, model="someone/some-model", revision=commit))
    assert len(caplog.messages) == 2


def test_what_to_run_when_the_hub_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    def offline(*args: object, **kwargs: object) -> str:
        raise LocalEntryNotFoundError("offline")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", offline)
    unpinned = replace(hunyuanocr.PROFILE, revision=None)
    said = error_of("tencent/HunyuanOCR", profile=unpinned)
    assert "`hf download tencent/HunyuanOCR --exclude '*/*' --local-dir FOLDER`" in said
    assert "target.model=FOLDER" in said
    assert f"--revision {COMMIT} " in error_of("some/model", revision=COMMIT)


def test_a_default_revision_is_one_of_the_default_model_only() -> None:
    pinned = replace(qwen3_vl.PROFILE, revision=COMMIT)
    assert target_of(pinned, pinned.model).checkpoint.revision == COMMIT
    assert target_of(pinned, "another/model").checkpoint.revision is None
    assert target_of(pinned, "another/model", revision="v2").checkpoint.revision == "v2"


# -- code that comes with a checkpoint


@pytest.fixture
def with_code(checkpoint: Checkpoints, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint whose architecture only the code in it knows. Its code leaves a trace when it is run."""
    from transformers import dynamic_module_utils

    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("TRACE", str(tmp_path / "trace"))
    folder = copy(checkpoint("qwen3_vl"), tmp_path / "made_up")
    (folder / "configuration_made_up.py").write_text(
        "import os\nfrom transformers import Qwen3VLConfig\nopen(os.environ['TRACE'], 'w').close()\n\n"
        "class MadeUpConfig(Qwen3VLConfig):\n    model_type = 'made_up'\n"
    )
    (folder / "modeling_made_up.py").write_text(
        "from transformers import Qwen3VLForConditionalGeneration\n"
        "from .configuration_made_up import MadeUpConfig\n\n"
        "class MadeUp(Qwen3VLForConditionalGeneration):\n    config_class = MadeUpConfig\n"
    )
    path = folder / "config.json"
    auto_map = {
        "AutoConfig": "configuration_made_up.MadeUpConfig",
        "AutoModelForImageTextToText": "modeling_made_up.MadeUp",
    }
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_type": "made_up", "auto_map": auto_map}))
    return folder


ANY = replace(qwen3_vl.PROFILE, model_types=frozenset())


def test_code_of_a_checkpoint_is_refused_unless_asked_for(with_code: Path, tmp_path: Path) -> None:
    for touch in ("model", "tokenizer", "image_processor"):
        said = error_of(with_code, touch, ANY)
        assert "a made_up model that runs code of its own" in said
        assert "target.trust_remote_code=true" in said
    assert not (tmp_path / "trace").exists()


@torch.inference_mode()
def test_code_of_a_local_folder_is_run_when_asked_for(with_code: Path, tmp_path: Path, checkpoint: Checkpoints) -> None:
    target = target_of(ANY, with_code, trust_remote_code=True)
    assert type(target.model).__name__ == "MadeUp"
    assert (tmp_path / "trace").exists()
    inputs = target.inputs([DecodeRequest(page(), "read")])
    expected = target_of(qwen3_vl.PROFILE, checkpoint("qwen3_vl")).model(**inputs).logits
    assert torch.equal(target.model(**inputs).logits, expected)


@pytest.mark.parametrize("revision", [None, "main", "v1.0", COMMIT[:8]])
def test_code_from_the_hub_must_be_pinned(revision: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *a, **k: pytest.fail("downloaded"))
    said = error_of("some/model", revision=revision, trust_remote_code=True)
    assert "target.revision=COMMIT (40 hex digits)" in said


def test_pinned_code_comes_with_the_download(with_code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    asked = {}

    def download(name: str, **options: object) -> str:
        asked.update(options)
        return str(with_code)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    target = target_of(ANY, "some/model", revision=COMMIT, trust_remote_code=True)
    assert target.model_config.model_type == "made_up"
    assert asked["revision"] == COMMIT
    assert "*.py" in asked["allow_patterns"]


def test_a_class_of_transformers_goes_before_code_of_the_checkpoint(checkpoint: Checkpoints, tmp_path: Path) -> None:
    """PaddleOCR-VL is published with code, and `transformers` has the model."""
    folder = checkpoint("paddleocr_vl")
    assert "auto_map" in json.loads((folder / "config.json").read_text())
    profile = importlib.import_module("hsdkit_plugins.targets.paddleocr_vl").PROFILE
    for trusted in (False, True):
        target = target_of(profile, folder, trust_remote_code=trusted)
        assert type(target.model).__module__.startswith("transformers.models.paddleocr_vl")
