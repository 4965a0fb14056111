"""A model as its config.json describes it: the sizes that decide what a pass costs. Nothing is loaded.

Read are decoders of the Llama kind (gated feed-forward, grouped heads, mixtures of experts) under any of the names
their configs use, and vision towers that are plain transformers over patches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hsdkit.errors import ConfigError

Config = Mapping[str, Any]

_TEXT_PARTS = ("text_config", "language_config", "llm_config", "thinker_config")
#: Layers whose keys and values are those of the last tokens only, or that keep a state in their place.
_FULL, _SLIDING = ("full_attention", "reference_sliding_attention"), "sliding_attention"
#: Decoders of older families, whose feed-forward has two matrices.
_UNGATED = frozenset({"gpt2", "opt", "gpt_neox", "gptj", "phi", "starcoder2", "bloom", "falcon"})


@dataclass(frozen=True, slots=True)
class Experts:
    """In `layers` of the layers, `used` of `count` experts of width `size` read each token; `shared` is the width of
    what all tokens pass."""

    count: int
    used: int
    size: int
    shared: int
    layers: int


@dataclass(frozen=True, slots=True)
class Decoder:
    """`ffn` is the width of the feed-forward of layers without experts; `windowed` layers see `window` tokens."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    tied: bool = False
    experts: Experts | None = None
    window: int = 0
    windowed: int = 0

    @property
    def attention_weights(self) -> int:
        """Of one layer: the four projections."""
        return self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)

    @property
    def dense_layers(self) -> int:
        return self.layers - (self.experts.layers if self.experts else 0)

    @property
    def expert_weights(self) -> int:
        """Of one expert: its three matrices."""
        return 3 * self.hidden * self.experts.size if self.experts else 0

    @property
    def always_read(self) -> int:
        """Weights of the layers that every token passes, without experts."""
        found = self.layers * self.attention_weights + self.dense_layers * 3 * self.hidden * self.ffn
        if self.experts:
            found += self.experts.layers * self.hidden * (self.experts.count + 3 * self.experts.shared)
        return found

    @property
    def head_weights(self) -> int:
        return self.hidden * self.vocabulary

    @property
    def weights(self) -> int:
        """All, but for biases and norms."""
        found = self.always_read + self.head_weights * (1 if self.tied else 2)
        return found + (self.experts.layers * self.experts.count * self.expert_weights if self.experts else 0)

    @property
    def kv_values(self) -> int:
        """Numbers that one token leaves in the cache of one layer."""
        return 2 * self.kv_heads * self.head_dim


@dataclass(frozen=True, slots=True)
class Vision:
    """`merge` patches a side make an image token; all but `full` layers look no further than `window` patches a
    side."""

    hidden: int
    layers: int
    ffn: int
    gated: bool
    merge: int
    out: int
    window: int = 0
    full: int = 0

    @property
    def layer_weights(self) -> int:
        return 4 * self.hidden**2 + (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def weights(self) -> int:
        """Layers and the projection of merged patches, without the patch embedding."""
        merged = self.hidden * self.merge**2
        return self.layers * self.layer_weights + merged * (merged + self.out)


@dataclass(frozen=True, slots=True)
class Shape:
    """`left_out` says what of the model its costs do not hold."""

    name: str
    decoder: Decoder
    vision: Vision | None = None
    left_out: tuple[str, ...] = ()

    @property
    def weights(self) -> int:
        return self.decoder.weights + (self.vision.weights if self.vision else 0)


def read_shape(config: Config, name: str) -> Shape:
    """The shape that a config.json describes. Raises `ConfigError` where it lacks a size or is of another kind."""
    part = next((config[p] for p in _TEXT_PARTS if isinstance(config.get(p), Mapping)), None)
    if part is not None and "text_config" in part:  # a model within a model
        return read_shape(part, name)
    text = dict(config) if part is None else {"tie_word_embeddings": config.get("tie_word_embeddings"), **part}
    try:
        decoder, left_out = _decoder(text, name)
        vision, why = _vision(config, decoder.hidden)
    except (TypeError, ValueError, ZeroDivisionError) as e:
        raise ConfigError(f"model={name}: its config.json has a size that is no positive number ({e})") from None
    return Shape(name, decoder, vision, (*left_out, *([why] if why else [])))


def _decoder(text: Config, name: str) -> tuple[Decoder, tuple[str, ...]]:
    _refuse(text, name)

    def size(*names: str) -> int:
        found = _first(text, *names)
        if found is None:
            raise ConfigError(f"model={name}: its config.json says no {names[0]} of a text decoder")
        return _positive(found)

    hidden, layers, heads = size("hidden_size"), size("num_hidden_layers"), size("num_attention_heads")
    kinds = text.get("layer_types") or []
    window = int(text.get("sliding_window") or 0)
    experts = _experts(text, layers)
    ffn = size("intermediate_size") if experts is None or experts.layers < layers else 0
    decoder = Decoder(
        hidden,
        layers,
        heads,
        _positive(_first(text, "num_key_value_heads") or heads),
        _positive(_first(text, "head_dim", "attention_head_dim") or hidden // heads),
        ffn,
        size("vocab_size"),
        bool(text.get("tie_word_embeddings")),
        experts,
        window,
        sum(kind == _SLIDING for kind in kinds) if window else 0,
    )
    norms = ("biases, norms and activations",)
    return decoder, norms


def _refuse(text: Config, name: str) -> None:
    kind = text.get("model_type")
    if text.get("kv_lora_rank") and text.get("use_mla") is not False:
        raise ConfigError(f"model={name}: multi-head latent attention (kv_lora_rank) is not among the costs known here")
    if kind in _UNGATED:
        raise ConfigError(f"model={name}: a {kind} decoder is not of the Llama kind whose costs are known here")
    if other := sorted({str(k) for k in text.get("layer_types") or []} - {*_FULL, _SLIDING}):
        raise ConfigError(f"model={name}: layers of type {', '.join(other)} are not among the costs known here")


def _experts(text: Config, layers: int) -> Experts | None:
    count = _first(text, "num_experts", "num_local_experts", "n_routed_experts")
    used = _first(text, "num_experts_per_tok", "moe_topk", "moe_k")
    count, used = (max(v) if isinstance(v, list) else v for v in (count, used))
    if not count or count == 1 or not used:
        return None
    size = _positive(_per_layer(_first(text, "moe_intermediate_size") or text["intermediate_size"]))
    shared = int(text.get("shared_expert_intermediate_size") or 0)
    if not shared:
        shared = size * int(_per_layer(_first(text, "n_shared_experts", "num_shared_expert") or 0))
    every = int(_first(text, "decoder_sparse_step", "moe_layer_freq") or 1)
    dense = {*range(int(text.get("first_k_dense_replace") or 0)), *(text.get("mlp_only_layers") or [])}
    offset = 1 if text.get("decoder_sparse_step") else 0
    with_experts = sum(i not in dense and (i + offset) % every == 0 for i in range(layers))
    return Experts(int(count), int(used), size, shared, with_experts)


def _vision(config: Config, hidden: int) -> tuple[Vision | None, str]:
    """The tower, or None and why it is left out ("" for models without one)."""
    vision = config.get("vision_config")
    if not isinstance(vision, Mapping):
        return None, ""
    width = _first(vision, "hidden_size", "embed_dim")
    layers = _first(vision, "depth", "num_hidden_layers")
    ratio = vision.get("mlp_ratio")
    ffn = _first(vision, "intermediate_size") or (int(width * ratio) if width and ratio else None)
    merge = _first(vision, "spatial_merge_size") or _first(config, "spatial_merge_size", "scale_factor")
    missing = [n for n, v in (("width", width), ("depth", layers), ("feed-forward", ffn), ("merging", merge)) if not v]
    if missing:
        return None, f"the vision tower (its config does not say its {' and '.join(missing)})"
    window = int(vision.get("window_size") or 0) // int(vision.get("patch_size") or 1)
    full = vision.get("fullatt_block_indexes") or []
    gated = str(_first(vision, "hidden_act") or "").lower() in ("silu", "swish")
    sizes = (_positive(width), _positive(layers), _positive(ffn), gated, _positive(merge))
    return Vision(*sizes, hidden, window if full else 0, len(full)), ""


def _first(config: Config, *names: str) -> Any:
    return next((config[n] for n in names if config.get(n) is not None), None)


def _per_layer(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def _positive(value: Any) -> int:
    if int(value) < 1:
        raise ValueError(value)
    return int(value)
