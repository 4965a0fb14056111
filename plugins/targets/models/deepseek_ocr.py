"""DeepSeek-OCR (1) and Unlimited-OCR as they are published, on `transformers`' own Unlimited-OCR classes.

Unlimited-OCR is DeepSeek-OCR with another attention in its language model: the vision tower (SAM-ViT-B, a 16-fold
convolution, CLIP-L), the linear projector, `image_newline`, `view_seperator` and the mixture of experts are the same
modules under the same published names. So DeepSeek-OCR is those classes with full attention in every layer, and what is
left to do is to read the two published config.json, whose `model_type`s `transformers` does not know.
"""

from __future__ import annotations

from typing import Any

from transformers import (
    AutoConfig,
    AutoModelForImageTextToText,
    UnlimitedOcrConfig,
    UnlimitedOcrForConditionalGeneration,
)
from transformers.conversion_mapping import get_checkpoint_conversion_mapping, register_checkpoint_conversion_mapping

#: `vision_config.width` names the parts of the tower; DeepSeek-OCR-2 has another second part under the same model_type.
_SAM, _CLIP = "sam_vit_b", "clip-l-14-224"


class PublishedConfig(UnlimitedOcrConfig):
    """config.json with the language model in `language_config` and the parts of the tower in `vision_config.width`; one
    saved by `transformers` again has `text_config` and sub-configs, and is read as it is."""

    def __post_init__(self, **kwargs: Any) -> None:
        language = kwargs.pop("language_config", None)
        if self.text_config is None and language is not None:
            window = kwargs.pop("sliding_window", None)
            self.text_config = self.text_fields(dict(language), window)
        if isinstance(self.vision_config, dict) and "width" in self.vision_config:
            self.vision_config = _vision_fields(self.vision_config)
        super().__post_init__(**kwargs)

    def text_fields(self, language: dict[str, Any], window: int | None) -> dict[str, Any]:
        return language if window is None else language | {"sliding_window": window}


class UnlimitedOcrPublishedConfig(PublishedConfig):
    """baidu/Unlimited-OCR's config.json."""

    model_type = "unlimited-ocr"


class DeepseekOcrConfig(PublishedConfig):
    """deepseek-ai/DeepSeek-OCR's config.json."""

    model_type = "deepseek_vl_v2"

    def text_fields(self, language: dict[str, Any], window: int | None) -> dict[str, Any]:
        return language | {"layer_types": ["full_attention"] * language["num_hidden_layers"]}


class UnlimitedOcrPublished(UnlimitedOcrForConditionalGeneration):
    config_class = UnlimitedOcrPublishedConfig


class DeepseekOcrForConditionalGeneration(UnlimitedOcrForConditionalGeneration):
    config_class = DeepseekOcrConfig


def _vision_fields(published: dict[str, Any]) -> dict[str, Any]:
    """The sizes of both parts. Raises `ValueError` for a tower of other parts."""
    width = published["width"]
    if _SAM not in width or _CLIP not in width:
        parts = " and ".join(sorted(width))
        raise ValueError(
            f"its vision tower is of {parts}, not of {_SAM} and {_CLIP} (version 2 is target=deepseek_ocr2)"
        )
    sam, clip = width[_SAM], width[_CLIP]
    return {
        "sam_config": {
            "hidden_size": sam["width"],
            "num_hidden_layers": sam["layers"],
            "num_attention_heads": sam["heads"],
            "mlp_dim": 4 * sam["width"],
            "image_size": published["image_size"],
            "global_attn_indexes": sam["global_attn_indexes"],
            "downsample_channels": sam["downsample_channels"],
        },
        "encoder_config": {
            "hidden_size": clip["width"],
            "intermediate_size": 4 * clip["width"],
            "num_hidden_layers": clip["layers"],
            "num_attention_heads": clip["heads"],
            "image_size": clip["image_size"],
            "patch_size": clip["patch_size"],
        },
    }


def register() -> None:
    """Make the Auto classes read both; doing it twice changes nothing."""
    for config, model in (
        (DeepseekOcrConfig, DeepseekOcrForConditionalGeneration),
        (UnlimitedOcrPublishedConfig, UnlimitedOcrPublished),
    ):
        AutoConfig.register(config.model_type, config, exist_ok=True)
        AutoModelForImageTextToText.register(config, model, exist_ok=True)
        names = get_checkpoint_conversion_mapping("unlimited_ocr")
        register_checkpoint_conversion_mapping(config.model_type, names, overwrite=True)
