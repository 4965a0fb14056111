"""Tiny random checkpoints of real architectures, written in the real file format and loaded with the stock Auto
classes.

`make(architecture, folder)` writes one: config, safetensors, tokenizer with a chat template, image processor. Weights
are scaled up so that greedy output varies. Document parsers with tokens and templates of their own are in
`document_models.py`. `SimpleTarget` is the least a target must be for an engine to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from hsdkit_plugins.targets.profile import Profile, profile_component
from PIL import Image, ImageDraw
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from hsdkit.protocols import BLANK_LINE, NOTHING, DecodeRequest

SPECIALS = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
]

TRAINING_TEXT = """# Annual report of the Harbour Office
The harbour received 1,204 ships in the year 2024, of which 311 were ferries. The table below lists them by month.
<table><tr><td>January</td><td>98</td></tr><tr><td>February</td><td>87</td></tr></table>
- Dredging of the northern channel was completed in March.
- The lighthouse was painted; the total cost was 12.5 million.
Die Häuser am Fluß wurden 1897 gebaut. 港口的船只数量逐年增加。"""

CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% else %}{{ c['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def make_tokenizer(
    merges: int = 120,
    specials: Sequence[str] = SPECIALS,
    template: str = CHAT_TEMPLATE,
    eos: str = "<|im_end|>",
    pad: str = "<|endoftext|>",
    **more: Any,
) -> transformers.PreTrainedTokenizerBase:
    """Byte-level BPE as Qwen's: 256 bytes, a few merges learned from `TRAINING_TEXT`, then the special tokens."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=256 + merges, initial_alphabet=alphabet, show_progress=False)
    bpe.train_from_iterator([TRAINING_TEXT], trainer)
    bpe.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in specials])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        eos_token=eos,
        pad_token=pad,
        bos_token=specials[1],
        chat_template=template,
        clean_up_tokenization_spaces=False,
        **more,
    )


def text_config(tokenizer: Any, **extra: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        **extra,
    }


def _vision_ids(tokenizer: Any) -> dict[str, int]:
    ids = tokenizer.convert_tokens_to_ids
    return {
        "image_token_id": ids("<|image_pad|>"),
        "video_token_id": ids("<|video_pad|>"),
        "vision_start_token_id": ids("<|vision_start|>"),
        "vision_end_token_id": ids("<|vision_end|>"),
        "eos_token_id": ids("<|im_end|>"),
        "pad_token_id": ids("<|endoftext|>"),
    }


def mrope(sections: list[int], rope_type: str = "default", **extra: Any) -> dict[str, Any]:
    return {"rope_type": rope_type, "rope_theta": 1e4, "mrope_section": sections, **extra}


def random(model_class: Any, config: Any, scale: float = 7.0, seed: int = 0) -> Any:
    """Seeds and scales are those of a few tried whose greedy output repeats itself least."""
    torch.manual_seed(seed)
    model = model_class(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            language = "layers" in name or "embed_tokens" in name or "lm_head" in name
            if parameter.ndim >= 2 and language and "vis" not in name:
                parameter.mul_(scale)
    model.generation_config.do_sample = False
    return model


def _qwen_images(patch_size: int) -> Any:
    return transformers.Qwen2VLImageProcessorPil(
        patch_size=patch_size,
        merge_size=2,
        temporal_patch_size=2,
        size={"shortest_edge": (2 * patch_size) ** 2 * 4, "longest_edge": (2 * patch_size) ** 2 * 24},
    )


def qwen2_5_vl(tokenizer: Any, **text: Any) -> tuple[Any, Any]:
    config = transformers.Qwen2_5_VLConfig(
        text_config=text_config(tokenizer, **{"rope_parameters": mrope([2, 3, 3]), **text}),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "out_hidden_size": 64,
            "patch_size": 14,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "window_size": 56,
            "fullatt_block_indexes": [1],
            "in_channels": 3,
        },
        **_vision_ids(tokenizer),
    )
    return random(transformers.Qwen2_5_VLForConditionalGeneration, config, seed=7), _qwen_images(14)


def qwen3_vl(tokenizer: Any) -> tuple[Any, Any]:
    config = transformers.Qwen3VLConfig(
        text_config=text_config(tokenizer, head_dim=16, rope_parameters=mrope([2, 3, 3])),
        vision_config={
            "depth": 3,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "out_hidden_size": 64,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [0, 1],
            "in_channels": 3,
        },
        **_vision_ids(tokenizer),
    )
    return random(transformers.Qwen3VLForConditionalGeneration, config), _qwen_images(16)


def hunyuan_of(tokenizer: Any, **token_ids: int) -> tuple[Any, Any]:
    """A HunYuanVL model and its image processor; `token_ids` as its config names them."""
    rope = mrope([2, 2, 2, 2], "dynamic", alpha=1000.0, factor=1.0)
    config = transformers.HunYuanVLConfig(
        text_config=text_config(tokenizer, head_dim=16, rope_parameters=rope),
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_attention_heads": 4,
            "num_hidden_layers": 2,
            "out_hidden_size": 64,
            "text_hidden_size": 64,
            "patch_size": 16,
            "spatial_merge_size": 2,
            "max_image_size": 256,
        },
        **token_ids,
    )
    images = transformers.HunYuanVLImageProcessorPil(
        patch_size=16, merge_size=2, temporal_patch_size=1, size={"shortest_edge": 4096, "longest_edge": 24576}
    )
    return random(transformers.HunYuanVLForConditionalGeneration, config, 14.0, seed=3), images


def hunyuan_vl(tokenizer: Any) -> tuple[Any, Any]:
    ids = tokenizer.convert_tokens_to_ids
    return hunyuan_of(
        tokenizer,
        image_token_id=ids("<|image_pad|>"),
        eos_token_id=ids("<|im_end|>"),
        pad_token_id=ids("<|endoftext|>"),
    )


def llama(tokenizer: Any) -> tuple[Any, Any]:
    """A text-only model: no image processor."""
    return random(transformers.LlamaForCausalLM, transformers.LlamaConfig(**text_config(tokenizer)), seed=7), None


ARCHITECTURES: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "qwen2_5_vl": qwen2_5_vl,
    "qwen3_vl": qwen3_vl,
    "hunyuan_vl": hunyuan_vl,
    "llama": llama,
}


def make(architecture: str, folder: Path, **text: Any) -> Path:
    """Write a tiny random checkpoint of that architecture into `folder` and return it; `text` is for its text config,
    where the architecture's function takes any."""
    from document_models import DOCUMENT_MODELS

    if architecture in DOCUMENT_MODELS:
        return DOCUMENT_MODELS[architecture](folder)
    tokenizer = make_tokenizer()
    model, images = ARCHITECTURES[architecture](tokenizer, **text)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if images is not None:
        images.save_pretrained(folder)
    return folder


def page(width: int = 96, height: int = 64, seed: int = 0) -> Image.Image:
    """A small grey page with some dark strokes that depend on `seed`."""
    image = Image.new("RGB", (width, height), (250, 250, 248))
    draw = ImageDraw.Draw(image)
    for k in range(6):
        x, y = (seed * 37 + k * 29) % width, (seed * 53 + k * 17) % height
        draw.line((x, y, (x + 31) % width, y), fill=(30 + 10 * k, 20, 60), width=2)
    return image


def target_of(profile: Profile, folder: Path | str, **options: Any) -> Any:
    """The target of a profile on the checkpoint in `folder`, as the command line would build it."""
    component = profile_component(profile)
    return component.factory(component.config(model=str(folder), **options))


class SimpleTarget:
    """Loads a checkpoint folder with the stock classes and builds right-padded inputs; renders drafts as they are."""

    name = "simple"
    dpi = 100
    separator = BLANK_LINE
    written_tokens: tuple[str, ...] = ()

    def __init__(self, folder: Path, processors: Sequence[Any] = (), eos_ids: frozenset[int] | None = None) -> None:
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        config = transformers.AutoConfig.from_pretrained(folder)
        self.has_images = hasattr(config, "vision_config")
        auto = transformers.AutoModelForImageTextToText if self.has_images else transformers.AutoModelForCausalLM
        self.model = auto.from_pretrained(folder, dtype=torch.float32).eval()
        self.images = transformers.AutoImageProcessor.from_pretrained(folder) if self.has_images else None
        self.eos_ids = frozenset({self.tokenizer.eos_token_id}) if eos_ids is None else eos_ids
        self.processors = list(processors)

    def logits_processors(self) -> list[Any]:
        return self.processors

    def prompt(self, label: Any) -> str:
        return "Read the page."

    def view(self, image: Image.Image) -> Image.Image:
        return image

    def crop(self, image: Image.Image, box: Any) -> Image.Image:
        return image.crop((int(box.x0), int(box.y0), int(box.x1), int(box.y1)))

    def notes(self, image: Image.Image) -> tuple[str, ...]:
        return ()

    def render(self, region: Any) -> str:
        return str(region.text)

    def page_drafts(self, regions: Any, image: Any, read: Any = NOTHING) -> tuple[str, ...]:
        return tuple(read.get(index) or r.text for index, r in enumerate(regions) if r.readable)

    def regions(self, text: str, image: Any) -> tuple[Any, ...]:
        return ()

    def clean(self, text: str, finish_reason: str = "eos") -> str:
        return text

    def _prompt_ids(self, text: str, grid: Any) -> list[int]:
        ids = self.tokenizer.convert_tokens_to_ids
        words: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        if grid is None:
            return [ids("<|im_start|>"), *words]
        h, w = int(grid[1]) // 2, int(grid[2]) // 2
        n = h * (w + 1) + 2 if self.model.config.model_type == "hunyuan_vl" else h * w
        image = [ids("<|vision_start|>"), *[ids("<|image_pad|>")] * n, ids("<|vision_end|>")]
        return [*image, *words, ids("<|im_start|>")]

    def inputs(self, requests: Sequence[DecodeRequest]) -> dict[str, Any]:
        pixels: dict[str, Any] = {}
        if self.images is not None:
            pixels = dict(self.images(images=[r.image for r in requests], return_tensors="pt"))
        grids = pixels.get("image_grid_thw", [None] * len(requests))
        rows = [self._prompt_ids(r.prompt, grid) for r, grid in zip(requests, grids, strict=True)]
        longest = max(map(len, rows))
        pad = self.tokenizer.pad_token_id
        ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        if pixels:
            image_id = self.tokenizer.convert_tokens_to_ids("<|image_pad|>")
            pixels["mm_token_type_ids"] = (ids == image_id).int()
        return {"input_ids": ids, "attention_mask": mask, **pixels}
