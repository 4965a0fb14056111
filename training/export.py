"""Writes a checkpoint as a folder that transformers' stock Auto classes load.

python -m training.export CHECKPOINT OUTPUT
"""

import argparse
import shutil
from pathlib import Path

import torch
from transformers import PaddleOCRVLProcessor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from training.learner import Learner
from training.tokenizer import CHAT_TEMPLATE, load_tokenizer, wrap_tokenizer

MAX_PIXELS = 832 * 1184  # A4 at 101 dpi
MAX_NEW_TOKENS = 2560


def export(checkpoint: Path, output: Path) -> None:
    """Exports fp16 weights, tokenizer and processors; `output` is replaced in one step when all is written.

    The tokenizer is read from the checkpoint's folder. Qwen2.5-VL's own processor needs torchvision for its video part,
    so the folder names PaddleOCR-VL's processor class, which does the same for images and has no video part.
    """
    tokenizer = load_tokenizer(checkpoint.parent / "tokenizer.json")
    learner = Learner(tokenizer)
    learner.load_state_dict(torch.load(checkpoint, weights_only=True, map_location="cpu")["learner"])
    model = learner.model
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(learner.table())
    ids = model.config.text_config
    model.generation_config.update(
        bos_token_id=ids.bos_token_id,
        eos_token_id=ids.eos_token_id,
        pad_token_id=ids.pad_token_id,
        do_sample=False,
        max_new_tokens=MAX_NEW_TOKENS,
    )
    fresh = output.with_name(output.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    model.half().save_pretrained(fresh)
    (fresh / "model.safetensors").chmod(0o644)  # safetensors writes it for its owner alone
    images = Qwen2VLImageProcessorPil(
        patch_size=8,
        temporal_patch_size=1,
        merge_size=2,
        size={"shortest_edge": 32 * 32, "longest_edge": MAX_PIXELS},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    wrapped = wrap_tokenizer(tokenizer)
    PaddleOCRVLProcessor(images, wrapped, chat_template=CHAT_TEMPLATE).save_pretrained(fresh)
    images.save_pretrained(fresh)  # preprocessor_config.json, for AutoImageProcessor
    wrapped.save_pretrained(fresh)
    old = output.with_name(output.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if output.exists():
        output.rename(old)
    fresh.rename(output)
    shutil.rmtree(old, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    export(options.checkpoint, options.output)


if __name__ == "__main__":
    main()
