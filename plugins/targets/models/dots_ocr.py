"""dots.ocr's architecture on `transformers`' own Qwen2: a vision tower of 2-D rotary attention whose patches are merged
two by two, and Qwen2 with plain one-axis positions.

Module names are those of the published weights (rednote-hilab/dots.ocr, dots.mocr), so no remote code is needed. What
it computes follows vLLM's `dots_ocr.py` and the checkpoint's own `modeling_dots_vision.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention, silu
from transformers import AutoConfig, AutoModelForImageTextToText, PreTrainedConfig, Qwen2Config, Qwen2ForCausalLM
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.qwen2.modeling_qwen2 import Qwen2RMSNorm

#: Base of the vision tower's rotary frequencies; no checkpoint has another, and config.json does not name it.
_ROPE_THETA = 10_000.0


class DotsVisionConfig(PreTrainedConfig):
    """`vision_config`: `embed_dim` is the tower's width, `hidden_size` that of the language model it feeds."""

    model_type = "dots_vit"
    base_config_key = "vision_config"

    embed_dim: int = 1536
    hidden_size: int = 1536
    intermediate_size: int = 4224
    num_hidden_layers: int = 42
    num_attention_heads: int = 12
    num_channels: int = 3
    patch_size: int = 14
    spatial_merge_size: int = 2
    temporal_patch_size: int = 1
    rms_norm_eps: float = 1e-5
    use_bias: bool = False
    initializer_range: float = 0.02
    init_merger_std: float = 0.02
    is_causal: bool = False
    post_norm: bool = True


class DotsOCRConfig(Qwen2Config):
    """Qwen2's fields at the top level, the tower's in `vision_config`."""

    model_type = "dots_ocr"
    sub_configs: ClassVar[dict[str, Any]] = {"vision_config": DotsVisionConfig}

    image_token_id: int = 151665
    video_token_id: int = 151656
    vision_config: dict[str, Any] | PreTrainedConfig | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        given = self.vision_config
        if not isinstance(given, PreTrainedConfig):
            # The published value names an attention that may not be installed; which to use is the engine's choice.
            fields = {key: value for key, value in (given or {}).items() if key != "attn_implementation"}
            self.vision_config = DotsVisionConfig(**fields)
        super().__post_init__(**kwargs)


class Attention(nn.Module):
    """Attention among the patches of each image."""

    def __init__(self, config: DotsVisionConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.qkv = nn.Linear(config.embed_dim, 3 * config.embed_dim, bias=config.use_bias)
        self.proj = nn.Linear(config.embed_dim, config.embed_dim, bias=config.use_bias)

    def forward(self, x: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor], lengths: list[int]) -> torch.Tensor:
        """`x` (N, E) of all images one after the other, `lengths` patches of each; `rotary`: cosines, sines (N, 1, D)
        for heads of D values."""
        # (N, 3E) -> three times (N, heads, D)
        q, k, v = self.qkv(x).view(len(x), 3, self.heads, -1).unbind(1)
        q, k = rotated(q, *rotary), rotated(k, *rotary)
        images = [
            scaled_dot_product_attention(*(part.transpose(0, 1)[None] for part in image))[0].transpose(0, 1)
            for image in zip(q.split(lengths), k.split(lengths), v.split(lengths), strict=True)
        ]
        return self.proj(torch.cat(images).reshape(len(x), -1))


class FeedForward(nn.Module):
    def __init__(self, config: DotsVisionConfig) -> None:
        super().__init__()
        self.fc1 = nn.Linear(config.embed_dim, config.intermediate_size, bias=config.use_bias)
        self.fc2 = nn.Linear(config.intermediate_size, config.embed_dim, bias=config.use_bias)
        self.fc3 = nn.Linear(config.embed_dim, config.intermediate_size, bias=config.use_bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(silu(self.fc1(x)) * self.fc3(x))


class Block(nn.Module):
    def __init__(self, config: DotsVisionConfig) -> None:
        super().__init__()
        self.norm1 = Qwen2RMSNorm(config.embed_dim, eps=config.rms_norm_eps)
        self.attn = Attention(config)
        self.norm2 = Qwen2RMSNorm(config.embed_dim, eps=config.rms_norm_eps)
        self.mlp = FeedForward(config)

    def forward(self, x: torch.Tensor, rotary: tuple[torch.Tensor, torch.Tensor], lengths: list[int]) -> torch.Tensor:
        x = x + self.attn(self.norm1(x), rotary, lengths)
        return x + self.mlp(self.norm2(x))


class Patchifier(nn.Module):
    def __init__(self, config: DotsVisionConfig) -> None:
        super().__init__()
        self.shape = (config.num_channels, config.temporal_patch_size, config.patch_size, config.patch_size)
        self.proj = nn.Conv2d(config.num_channels, config.embed_dim, config.patch_size, stride=config.patch_size)
        self.norm = Qwen2RMSNorm(config.embed_dim, eps=config.rms_norm_eps)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """(N, channels * frames * size * size) -> (N, E); of a patch's frames only the first is read."""
        frames = pixels.view(-1, *self.shape)[:, :, 0]
        return self.norm(self.proj(frames).flatten(1))


class PatchEmbed(nn.Module):
    """Here for its name in the weights."""

    def __init__(self, config: DotsVisionConfig) -> None:
        super().__init__()
        self.patchifier = Patchifier(config)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.patchifier(pixels)


class Merger(nn.Module):
    """The patches of each cell (two by two) as one token of the language model; they follow each other already."""

    def __init__(self, config: DotsVisionConfig) -> None:
        super().__init__()
        self.width = config.embed_dim * config.spatial_merge_size**2
        self.ln_q = nn.LayerNorm(config.embed_dim, eps=1e-6)
        self.mlp = nn.Sequential(
            nn.Linear(self.width, self.width), nn.GELU(), nn.Linear(self.width, config.hidden_size)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.mlp(self.ln_q(x).view(-1, self.width))


class VisionTower(nn.Module):
    def __init__(self, config: DotsVisionConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = PatchEmbed(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))
        self.post_trunk_norm = (
            Qwen2RMSNorm(config.embed_dim, eps=config.rms_norm_eps) if config.post_norm else nn.Identity()
        )
        self.merger = Merger(config)

    def forward(self, pixels: torch.Tensor, grids: torch.Tensor) -> torch.Tensor:
        """`pixels` (N, values) of all images, cell after cell; `grids` (B, 3) frames, rows, columns of patches. Returns
        (N / cell, hidden)."""
        x = self.patch_embed(pixels.to(self.patch_embed.patchifier.proj.weight.dtype))
        rotary = rotary_of(grids, self.config, x.device)
        lengths = [height * width for frames, height, width in grids.tolist() for _ in range(frames)]
        for block in self.blocks:
            x = block(x, rotary, lengths)
        return self.merger(self.post_trunk_norm(x))


def patch_places(grids: torch.Tensor, merge: int) -> torch.Tensor:
    """(N, 2) row and column of every patch in its own image, in the image processor's order: cells row by row, in each
    cell its `merge` x `merge` patches row by row."""
    places = []
    for frames, height, width in grids.tolist():
        grid = torch.cartesian_prod(torch.arange(height), torch.arange(width))
        cells = grid.view(height // merge, merge, width // merge, merge, 2).transpose(1, 2).reshape(-1, 2)
        places.append(cells.repeat(frames, 1))
    return torch.cat(places)


def rotary_of(grids: torch.Tensor, config: DotsVisionConfig, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines, each (N, 1, D) float32 for heads of D values: half of the angles turn with the row, half with
    the column."""
    size = config.embed_dim // config.num_attention_heads
    steps = torch.arange(0, size // 2, 2, dtype=torch.float32, device=device) / (size // 2)
    places = patch_places(grids, config.spatial_merge_size).to(device)
    angles = (places[:, :, None] * _ROPE_THETA**-steps).flatten(1)
    angles = torch.cat((angles, angles), -1)[:, None]
    return angles.cos(), angles.sin()


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """`x` (N, heads, D) turned, computed in float32."""
    wide = x.float()
    first, second = wide.chunk(2, -1)
    return (wide * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


class DotsOCRForCausalLM(Qwen2ForCausalLM):
    config_class = DotsOCRConfig
    main_input_name = "input_ids"

    def __init__(self, config: DotsOCRConfig) -> None:
        super().__init__(config)
        assert isinstance(config.vision_config, DotsVisionConfig)
        self.vision_tower = VisionTower(config.vision_config)
        self.post_init()

    @classmethod
    def _can_set_attn_implementation(cls) -> bool:
        """The language model's is Qwen2's. `transformers` looks through this file for a class that cannot, and finds
        the tower's, which has the one attention it needs."""
        return True

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        cache: Any = None,
        inputs_embeds: torch.Tensor | None = None,
        pixel_values: torch.Tensor | None = None,
        image_grid_thw: torch.Tensor | None = None,
        mm_token_type_ids: torch.Tensor | None = None,
        logits_to_keep: int | torch.Tensor = 0,
        **kwargs: Any,
    ) -> CausalLMOutputWithPast:
        """As of Qwen2 with images: `pixel_values` (N, values), `image_grid_thw` (B, 3) as `VisionTower` takes them, one
        image token in `input_ids` for each cell. Token types are taken and not used: `input_ids` say the same. Raises
        `ValueError` where cells and image tokens are not equally many."""
        if pixel_values is not None and input_ids is not None:
            inputs_embeds = self._with_images(input_ids, pixel_values, image_grid_thw)
            input_ids = None
        output: CausalLMOutputWithPast = super().forward(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            cache=cache,
            inputs_embeds=inputs_embeds,
            logits_to_keep=logits_to_keep,
            **kwargs,
        )
        return output

    def _with_images(self, ids: torch.Tensor, pixels: torch.Tensor, grids: torch.Tensor | None) -> torch.Tensor:
        if grids is None:
            raise ValueError("pixel_values without image_grid_thw")
        cells = self.vision_tower(pixels, grids)
        here = ids == self.config.image_token_id
        if int(here.sum()) != len(cells):
            raise ValueError(f"{int(here.sum())} image tokens for {len(cells)} cells of images")
        embedded: torch.Tensor = self.model.embed_tokens(ids)
        return embedded.masked_scatter(here[..., None], cells.to(embedded.dtype))

    def prepare_inputs_for_generation(self, *args: Any, is_first_iteration: bool = False, **kwargs: Any) -> Any:
        """For `generate`: images belong to the prompt, and later steps read it from the cache."""
        inputs = super().prepare_inputs_for_generation(*args, is_first_iteration=is_first_iteration, **kwargs)
        if not is_first_iteration and kwargs.get("use_cache", True):
            inputs["pixel_values"] = None
        return inputs


def register() -> None:
    """Make the Auto classes read `model_type` dots_ocr with these classes."""
    AutoConfig.register(DotsOCRConfig.model_type, DotsOCRConfig, exist_ok=True)
    AutoModelForImageTextToText.register(DotsOCRConfig, DotsOCRForCausalLM, exist_ok=True)
