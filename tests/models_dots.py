"""A tiny random checkpoint of dots.ocr in its published file format: config.json with `auto_map` (and no code beside
it), legacy chat_template.json, preprocessor_config.json, weight shards with an index."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from hsdkit_plugins.targets.models.dots_ocr import DotsOCRConfig, DotsOCRForCausalLM
from models import make_tokenizer

SPECIALS = [
    "<|imgpad|>", "<|img|>", "<|endofimg|>", "<|system|>", "<|endofsystem|>", "<|user|>", "<|endofuser|>",
    "<|assistant|>", "<|endofassistant|>",
]  # fmt: skip

#: Spells what the published template spells, for the messages hsdkit sends.
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'system' %}<|system|>{{ m['content'] }}<|endofsystem|>\n{% else %}"
    "<|user|>{% for c in m['content'] %}{% if c['type'] == 'image' %}<|img|><|imgpad|><|endofimg|>{% else %}"
    "{{ c['text'] }}{% endif %}{% endfor %}<|endofuser|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

#: rednote-hilab/dots.ocr's config.json with small numbers.
CONFIG: dict[str, Any] = {
    "architectures": ["DotsOCRForCausalLM"],
    "model_type": "dots_ocr",
    "auto_map": {
        "AutoConfig": "configuration_dots.DotsOCRConfig",
        "AutoModelForCausalLM": "modeling_dots_ocr.DotsOCRForCausalLM",
    },
    "attention_bias": True,
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "hidden_size": 64,
    "initializer_range": 0.02,
    "intermediate_size": 128,
    "max_position_embeddings": 131072,
    "max_window_layers": 28,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.51.0",
    "use_cache": True,
    "use_sliding_window": False,
    "vision_config": {
        "embed_dim": 32,
        "hidden_size": 64,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_channels": 3,
        "patch_size": 14,
        "post_norm": True,
        "rms_norm_eps": 1e-05,
        "spatial_merge_size": 2,
        "temporal_patch_size": 1,
        "use_bias": False,
        "attn_implementation": "flash_attention_2",
        "init_merger_std": 0.02,
        "initializer_range": 0.02,
        "is_causal": False,
    },
}

PREPROCESSOR = {
    "min_pixels": 3136,
    "max_pixels": 28 * 28 * 40,
    "patch_size": 14,
    "temporal_patch_size": 1,
    "merge_size": 2,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "image_processor_type": "Qwen2VLImageProcessor",
    "processor_class": "DotsVLProcessor",
}


def weight_names(layers: int, blocks: int) -> set[str]:
    """The published weights' names (model.safetensors.index.json of rednote-hilab/dots.ocr: 28 layers, 42 blocks)."""
    names = {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"}
    for i in range(layers):
        layer = f"model.layers.{i}."
        names |= {f"{layer}self_attn.{p}_proj.{kind}" for p in "qkv" for kind in ("weight", "bias")}
        names |= {f"{layer}self_attn.o_proj.weight"}
        names |= {f"{layer}mlp.{part}_proj.weight" for part in ("gate", "up", "down")}
        names |= {f"{layer}{norm}_layernorm.weight" for norm in ("input", "post_attention")}
    tower = "vision_tower."
    names |= {f"{tower}patch_embed.patchifier.{part}" for part in ("proj.weight", "proj.bias", "norm.weight")}
    for i in range(blocks):
        parts = ("norm1", "norm2", "attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2", "mlp.fc3")
        names |= {f"{tower}blocks.{i}.{part}.weight" for part in parts}
    names |= {f"{tower}merger.{part}.{kind}" for part in ("ln_q", "mlp.0", "mlp.2") for kind in ("weight", "bias")}
    return names | {f"{tower}post_trunk_norm.weight"}


def make_dots(folder: Path, scale: float = 7.0, seed: int = 0) -> Path:
    """Write the checkpoint into `folder` and return it. Language weights are scaled up so that greedy output varies."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_tokenizer(merges=300)
    tokenizer.add_special_tokens({"additional_special_tokens": SPECIALS})
    tokenizer.eos_token = tokenizer.pad_token = "<|endoftext|>"
    tokenizer.chat_template = None
    ids = tokenizer.convert_tokens_to_ids

    config = CONFIG | {"vocab_size": len(tokenizer), "image_token_id": ids("<|imgpad|>"), "video_token_id": None}
    config["video_token_id"] = ids("<|video_pad|>")
    torch.manual_seed(seed)
    model = DotsOCRForCausalLM(DotsOCRConfig(**config)).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim >= 2:
                parameter.mul_(3.0 if name.startswith("vision_tower") else scale)
            else:  # norms and biases off their neutral values, so that one left out or swapped shows
                parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(folder, max_shard_size="200KB")
    tokenizer.save_pretrained(folder)

    def write(name: str, value: Any) -> None:
        (folder / name).write_text(json.dumps(value), encoding="utf-8")

    # Published for the tokenizer class of Qwen2, which sets the digits of a number apart.
    saved = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    write("tokenizer_config.json", {**saved, "tokenizer_class": "Qwen2Tokenizer", "backend": "tokenizers"})
    write("config.json", config)
    write("preprocessor_config.json", PREPROCESSOR)
    write("generation_config.json", {"eos_token_id": [ids("<|endoftext|>"), ids("<|endofassistant|>")]})
    write("chat_template.json", {"chat_template": CHAT_TEMPLATE})
    return folder
