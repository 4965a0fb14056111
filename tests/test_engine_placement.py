"""Where and in what type the transformers engine puts a model; options it refuses."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import models_deepseek
import pytest
import torch
from hsdkit_plugins.engines.grouped_attention import NAME
from hsdkit_plugins.engines.hf_model import place
from hsdkit_plugins.engines.layer_masks import LayerMasks
from hsdkit_plugins.engines.transformers import TransformersConfig
from models import make, target_of
from models_dots import make_dots
from transformers import AutoModelForImageTextToText, PreTrainedModel

from hsdkit.errors import ConfigError, TargetError


@pytest.fixture(scope="module", params=["qwen2_5_vl", "qwen3_vl"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(request.param, tmp_path_factory.mktemp("placed") / request.param)


def test_a_model_in_bf16_computes_what_one_loaded_in_bf16_does(folder: Path) -> None:
    torch.set_num_threads(1)
    loaded = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.bfloat16).eval()
    placed = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
    place(placed, "cpu", "bf16", "sdpa")
    assert placed.dtype == torch.bfloat16
    ids = torch.arange(3, 300)[None]
    with torch.inference_mode():
        expected, given = (model(input_ids=ids).logits for model in (loaded, placed))
    assert torch.equal(given, expected)


def test_a_device_that_is_not_there_is_named(folder: Path) -> None:
    model = AutoModelForImageTextToText.from_pretrained(folder)
    with pytest.raises(ConfigError, match=r"engine\.device=nowhere"):
        place(model, "nowhere", "auto", "auto")


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_rows": 0},
        {"cache_tokens": 0},
        {"cache_tokens": "all"},
        {"threads": 0},
        {"threads": 100_000},
        {"threads": "some"},
        {"threads": True},
    ],
)
def test_options_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        TransformersConfig(**wrong)


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"layer_types": ["full_attention", "sliding_attention", "full_attention"]}, "sliding_attention"),
        ({"layer_types": ["linear_attention", "full_attention", "full_attention"]}, "linear_attention"),
        ({"layer_types": None, "sliding_window": 512}, "sliding_attention"),
    ],
)
def test_layers_that_do_not_see_every_token_are_refused(change: dict[str, Any], kind: str) -> None:
    text_config = SimpleNamespace(**change)
    with pytest.raises(TargetError, match=rf"Some_Model has layers of type {kind}; tree verification knows"):
        LayerMasks(text_config, "Some_Model")
    LayerMasks(SimpleNamespace(layer_types=None, sliding_window=None), "Some_Model")


@pytest.fixture(scope="module", params=["dots_ocr", "deepseek_ocr", "hunyuanocr", "granite_docling"])
def parser(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A document parser's target on a fresh model."""
    profile = import_module(f"hsdkit_plugins.targets.{request.param}").PROFILE
    folder = tmp_path_factory.mktemp("parsers") / request.param
    makers = {"dots_ocr": make_dots, "deepseek_ocr": models_deepseek.deepseek_ocr}
    made = makers[request.param](folder) if request.param in makers else make(request.param, folder)
    return target_of(profile, made)


@pytest.mark.parametrize("attention", ["auto", "eager", "sdpa"])
def test_the_attention_asked_for_is_the_one_used(parser: Any, attention: str, caplog: pytest.LogCaptureFixture) -> None:
    text = parser.model.config.get_text_config()
    place(parser.model, "cpu", "auto", "sdpa")
    place(parser.model, "cpu", "auto", attention)
    grouped = text.num_key_value_heads < text.num_attention_heads
    assert text._attn_implementation == (attention if attention != "auto" else NAME if grouped else "sdpa")
    assert attention != "auto" or not caplog.records


def test_an_attention_that_a_model_cannot_have_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = AutoModelForImageTextToText.from_pretrained(folder, attn_implementation="sdpa")
    monkeypatch.setattr(PreTrainedModel, "_can_set_attn_implementation", lambda *_: False)
    with pytest.raises(ConfigError, match=r"engine\.attention=eager: a Qwen\w+ has sdpa only"):
        place(model, "cpu", "auto", "eager")
