"""Tiny random checkpoints of DeepSeek-OCR 1 and 2 and of Unlimited-OCR in the file formats they are published in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from hsdkit_plugins.targets.models.deepseek_ocr import (
    DeepseekOcrConfig,
    DeepseekOcrForConditionalGeneration,
    UnlimitedOcrPublished,
    UnlimitedOcrPublishedConfig,
    register,
)
from models import TRAINING_TEXT
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIALS = [
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜▁pad▁｜>",
    "<image>",
    "<|ref|>",
    "<|/ref|>",
    "<|det|>",
]
SPECIALS += ["<|/det|>", "<|grounding|>", "<td>", "</td>", "<tr>", "</tr>", "<|User|>", "<|Assistant|>"]

#: What the generated output of a random model needs to vary; tried seeds.
SCALE = 7.0


def make_tokenizer() -> transformers.PreTrainedTokenizerBase:
    """Byte-level BPE as DeepSeek's, end tokens first."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=256 + len(SPECIALS) + 120,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[AddedToken(s, special=True, normalized=False) for s in SPECIALS],
        show_progress=False,
    )
    bpe.train_from_iterator([TRAINING_TEXT], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token=SPECIALS[0], eos_token=SPECIALS[1], pad_token=SPECIALS[2]
    )


def published_config(tokenizer: Any, model_type: str, architecture: str, module: str, **extra: Any) -> dict[str, Any]:
    """config.json as deepseek-ai/DeepSeek-OCR and baidu/Unlimited-OCR ship it, language fields twice and all."""
    language = {
        "bos_token_id": 0,
        "eos_token_id": 1,
        "first_k_dense_replace": 1,
        "hidden_size": 64,
        "intermediate_size": 96,
        "kv_lora_rank": None,
        "lm_head": True,
        "max_position_embeddings": 4096,
        "moe_intermediate_size": 32,
        "n_group": 1,
        "n_routed_experts": 8,
        "n_shared_experts": 2,
        "num_attention_heads": 4,
        "num_experts_per_tok": 3,
        "num_hidden_layers": 3,
        "num_key_value_heads": 4,
        "q_lora_rank": None,
        "qk_nope_head_dim": 0,
        "qk_rope_head_dim": 0,
        "rm_head": False,
        "topk_group": 1,
        "topk_method": "greedy",
        "use_mla": False,
        "v_head_dim": 0,
        "vocab_size": len(tokenizer),
    }
    clip = {"heads": 4, "image_size": 224, "layers": 2, "patch_size": 14, "width": 48}
    sam = {"downsample_channels": [32, 48], "global_attn_indexes": [1], "heads": 2, "layers": 2, "width": 32}
    return {
        "_name_or_path": "published",
        "architectures": [architecture],
        "auto_map": {"AutoConfig": f"{module}.SomeConfig", "AutoModel": f"{module}.{architecture}"},
        "candidate_resolutions": [[1024, 1024]],
        "global_view_pos": "head",
        "language_config": {"architectures": ["DeepseekV2ForCausalLM"], "torch_dtype": "float32", **language},
        "model_type": model_type,
        "projector_config": {"input_dim": 96, "model_type": "mlp_projector", "n_embed": 64, "projector_type": "linear"},
        "tile_tag": "2D",
        "torch_dtype": "float32",
        "transformers_version": "4.46.3",
        "vision_config": {
            "image_size": 1024,
            "mlp_ratio": 3.7362,
            "model_name": "deeplip_b_l",
            "model_type": "vision",
            "width": {"clip-l-14-224": clip, "sam_vit_b": sam},
        },
        # The published vocabulary has <image> at 128815, which a tiny one has not.
        "image_token_id": tokenizer.convert_tokens_to_ids("<image>"),
        **language,
        **extra,
    }


def _finish(model: Any, tokenizer: Any, folder: Path, config: dict[str, Any] | None, seed: int) -> Path:
    torch.manual_seed(seed)
    model.init_weights()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "language_model" in name or "lm_head" in name:
                if parameter.ndim >= 2:
                    parameter.mul_(SCALE)
            elif parameter.ndim >= 2 or "newline" in name or "separator" in name:
                parameter.add_(torch.randn_like(parameter) * 0.05)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
        (folder / "generation_config.json").unlink()
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        settings |= {"tokenizer_class": "LlamaTokenizerFast", "add_bos_token": True, "add_eos_token": False}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        (folder / "processor_config.json").write_text(
            json.dumps({"image_token": "<image>", "patch_size": 16, "processor_class": "DeepseekVLV2Processor"})
        )
    return folder


def deepseek_ocr(folder: Path, seed: int = 0) -> Path:
    register()
    tokenizer = make_tokenizer()
    config = published_config(tokenizer, "deepseek_vl_v2", "DeepseekOCRForCausalLM", "modeling_deepseekocr")
    read = DeepseekOcrConfig.from_dict(config)
    return _finish(DeepseekOcrForConditionalGeneration(read), tokenizer, folder, config, seed)


def unlimited_ocr(folder: Path, window: int = 12, seed: int = 0) -> Path:
    """A window much shorter than the output, so that it matters."""
    register()
    tokenizer = make_tokenizer()
    windows = {"sliding_window_size": window, "sliding_window": window}
    config = published_config(tokenizer, "unlimited-ocr", "UnlimitedOCRForCausalLM", "modeling_unlimitedocr", **windows)
    read = UnlimitedOcrPublishedConfig.from_dict(config)
    return _finish(UnlimitedOcrPublished(read), tokenizer, folder, config, seed)


def deepseek_ocr2(folder: Path, seed: int = 0) -> Path:
    """As deepseek-community/DeepSeek-OCR-2: `transformers`' own format."""
    tokenizer = make_tokenizer()
    config = transformers.DeepseekOcr2Config(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 96,
            "moe_intermediate_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "n_routed_experts": 8,
            "n_shared_experts": 2,
            "num_experts_per_tok": 3,
            "mlp_layer_types": ["dense", "sparse", "sparse"],
            "max_position_embeddings": 4096,
            "n_group": 1,
            "topk_group": 1,
            "bos_token_id": 0,
            "eos_token_id": 1,
        },
        vision_config={
            "sam_config": {
                "hidden_size": 32,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "global_attn_indexes": [1],
                "downsample_channels": [32, 48],
            },
            "encoder_config": {
                "hidden_size": 48,
                "intermediate_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "num_key_value_heads": 2,
                "vocab_size": 1,
            },
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    _finish(transformers.DeepseekOcr2ForConditionalGeneration(config), tokenizer, folder, None, seed)
    transformers.DeepseekOcr2Processor(
        image_processor=transformers.DeepseekOcr2ImageProcessorPil(), tokenizer=tokenizer
    ).save_pretrained(folder)
    return folder


MAKE = {"deepseek_ocr": deepseek_ocr, "deepseek_ocr2": deepseek_ocr2, "unlimited_ocr": unlimited_ocr}
