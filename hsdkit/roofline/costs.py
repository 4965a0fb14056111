"""What a pass costs: floating-point operations, and bytes moved to and from memory (paper, Appendix B).

Counted are matrix products and attention (a multiplication and an addition are two operations); weights read once a
pass; keys and values read from and written to the cache; logits written. Letters: B rows, K tokens a row, L tokens
cached before the pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from hsdkit.roofline.shape import Decoder, Vision

#: Bytes of a number, by type.
BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}


@dataclass(frozen=True, slots=True)
class Cost:
    flops: float = 0.0
    bytes: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes)

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.flops / self.bytes if self.bytes else 0.0


@dataclass(frozen=True, slots=True)
class Pass:
    """One forward pass of the decoder over `rows` rows of `width` tokens behind `cached` ones; rows are padded to the
    widest and the longest, and the padding is computed too. `logits`: tokens of a row that get logits."""

    rows: int
    width: int
    cached: int
    logits: int

    @property
    def tokens(self) -> int:
        return self.rows * self.width


def decoder_cost(decoder: Decoder, p: Pass, dtype: str) -> Cost:
    """Every token of the pass attends to all that is cached and to the whole pass: masked products are computed too."""
    size = BYTES[dtype]
    flops = 2.0 * p.tokens * (decoder.always_read + used_expert_weights(decoder))
    flops += 2.0 * p.rows * p.logits * decoder.head_weights
    flops += attention_flops(decoder, p)
    read = decoder.always_read + touched_expert_weights(decoder, p.tokens) + decoder.head_weights
    embedded = p.tokens * decoder.hidden
    cache = decoder.kv_values * p.rows * (seen(decoder, p) + decoder.layers * p.width)
    return Cost(flops, size * (read + embedded + cache + p.rows * p.logits * decoder.vocabulary))


def attention_flops(decoder: Decoder, p: Pass) -> float:
    """Queries with keys, and weights with values."""
    return 4.0 * p.tokens * decoder.heads * decoder.head_dim * seen(decoder, p)


def seen(decoder: Decoder, p: Pass) -> int:
    """Tokens that a row looks at, summed over the layers."""
    full = p.cached + p.width
    near = min(full, decoder.window + p.width)
    return (decoder.layers - decoder.windowed) * full + decoder.windowed * near


def used_expert_weights(decoder: Decoder) -> float:
    """Weights of experts that one token passes, in all layers."""
    return decoder.experts.layers * decoder.experts.used * decoder.expert_weights if decoder.experts else 0.0


def touched_expert_weights(decoder: Decoder, tokens: int) -> float:
    """Weights of experts that any of so many tokens passes, in all layers, when each chooses evenly and by itself."""
    if decoder.experts is None:
        return 0.0
    e = decoder.experts
    return e.layers * decoder.expert_weights * e.count * (1 - (1 - e.used / e.count) ** tokens)


def vision_cost(vision: Vision, image_tokens: int, dtype: str) -> Cost:
    """The tower over one image that becomes so many image tokens."""
    patches = image_tokens * vision.merge**2
    near = min(patches, vision.window**2) if vision.window else patches
    full = vision.full if vision.window else vision.layers
    pairs = patches * (full * patches + (vision.layers - full) * near)
    merged = vision.hidden * vision.merge**2
    flops = 2.0 * patches * vision.layers * vision.layer_weights + 4.0 * vision.hidden * pairs
    flops += 2.0 * image_tokens * merged * (merged + vision.out)
    return Cost(flops, BYTES[dtype] * (vision.weights + image_tokens * vision.out))
