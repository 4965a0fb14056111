"""Chat texts and images as padded tensors, in the two ways models need: image tokens laid out by us, or by the
checkpoint's own processor. Both give what the stock processor gives, on PIL images alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hsdkit_plugins.targets.transformers_target import TransformersTarget
    from PIL.Image import Image


def cells(height: int, width: int) -> int:
    """One image token a cell, as in the Qwen family."""
    return height * width


def grid_inputs(target: TransformersTarget, texts: Sequence[str], images: Sequence[Image]) -> dict[str, Any]:
    """Image tokens laid out by us, for models that cut an image into a grid of patches and merge them to cells. `texts`
    hold one image token each; `pixel_values` (patches, values) float32 of all images one after the other,
    `image_grid_thw` (B, 3) int64 in patches."""
    import torch

    pixels = target.image_processor(images=list(images), return_tensors="pt", **image_options(target))
    if "image_grid_thw" not in pixels:
        raise target.checkpoint.error(
            f"its image processor, a {type(target.image_processor).__name__}, cuts no grid of patches",
            "set target.model or target.revision to a release that transformers reads without code of its own",
        )
    image_token = target.model_config.image_token_id
    merged = target.image_processor.merge_size
    rows = []
    for text, (_, height, width) in zip(texts, pixels["image_grid_thw"].tolist(), strict=True):
        prompt: list[int] = target.tokenizer(text, add_special_tokens=False)["input_ids"]
        if (found := prompt.count(image_token)) != 1:
            raise target.checkpoint.error(
                f"its chat template and prompt make {found} image tokens, not one", "fix the prompt"
            )
        at = prompt.index(image_token)
        number = target.image_tokens(height // merged, width // merged)
        rows.append(prompt[:at] + [image_token] * number + prompt[at + 1 :])
    longest = max(map(len, rows))
    ids = torch.tensor([row + [target.pad_id] * (longest - len(row)) for row in rows])
    lengths = torch.tensor([[len(row)] for row in rows])
    mask = (torch.arange(longest) < lengths).long()
    types = ((ids == image_token) & (mask == 1)).long()
    return {"input_ids": ids, "attention_mask": mask, "mm_token_type_ids": types, **pixels}


def processor_inputs(target: TransformersTarget, texts: Sequence[str], images: Sequence[Image]) -> dict[str, Any]:
    """What the checkpoint's own processor makes of the chat texts and images."""
    inputs = target.processor(
        text=list(texts),
        images=[[image] for image in images],
        padding=True,
        padding_side="right",
        add_special_tokens=False,
        return_tensors="pt",
        **image_options(target),
    )
    return dict(inputs)


def image_options(target: TransformersTarget) -> dict[str, Any]:
    """The image processor's bounds, as it spells them."""
    least, most = target.pixel_bounds
    if target.bounds_area:
        return {"size": {"shortest_edge": least, "longest_edge": most}}
    return {"size": {"longest_edge": isqrt(most)}}
