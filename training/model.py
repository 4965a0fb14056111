"""The architecture: a small Qwen2.5-VL, its configuration and its starting weights.

The vision tower attends inside windows of 128 pixels, except in one layer that sees the whole page, so glyphs cut by a
window's border can be put together and a large page stays cheap.
"""

import math

import torch
from tokenizers import Tokenizer, pre_tokenizers
from torch import nn
from transformers import Qwen2_5_VLConfig, Qwen2_5_VLForConditionalGeneration

from training.symbols import (
    ANCHORS,
    END,
    FORMULA,
    IMAGE,
    NUM_CLASSES,
    PAD,
    SLOTS,
    SPECIAL,
    START,
    STRUCTURE,
    VIDEO,
    VISION_END,
    VISION_START,
)

HEAD_DIM = 32
# One entry a rope frequency, taken by the time, height and width axes in turn: every axis gets fast and slow ones.
MROPE_SECTION = [1] * (HEAD_DIM // 2)


def make_config(tokenizer: Tokenizer) -> Qwen2_5_VLConfig:
    """The configuration: about 6.7 million parameters."""
    ids = {s: tokenizer.token_to_id(s) for s in (PAD, START, END, IMAGE, VIDEO, VISION_START, VISION_END)}
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": tokenizer.get_vocab_size(),
            "hidden_size": 192,
            "intermediate_size": 576,
            "num_hidden_layers": 8,
            "num_attention_heads": 6,
            "num_key_value_heads": 6,
            "max_position_embeddings": 8192,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": MROPE_SECTION},
            "pad_token_id": ids[PAD],
            "bos_token_id": ids[START],
            "eos_token_id": ids[END],
            "tie_word_embeddings": True,
        },
        vision_config={
            "depth": 6,
            "hidden_size": 160,
            "intermediate_size": 448,
            "num_heads": 5,
            "patch_size": 8,
            "spatial_merge_size": 2,
            "temporal_patch_size": 1,
            "window_size": 128,
            "fullatt_block_indexes": [1],
            "out_hidden_size": 192,
        },
        image_token_id=ids[IMAGE],
        video_token_id=ids[VIDEO],
        anchor_token_ids=[tokenizer.token_to_id(s) for s in ANCHORS],
        vision_start_token_id=ids[VISION_START],
        vision_end_token_id=ids[VISION_END],
        pad_token_id=ids[PAD],
        bos_token_id=ids[START],
        eos_token_id=ids[END],
        tie_word_embeddings=True,
    )
    config._attn_implementation = "sdpa"
    return config


def make_model(tokenizer: Tokenizer) -> Qwen2_5_VLForConditionalGeneration:
    """A fresh model in fp32, with heads that start out looking at fixed neighbours."""
    model = Qwen2_5_VLForConditionalGeneration(make_config(tokenizer))
    _aim_vision_heads(model.model.visual)
    text = model.model.language_model
    place_cells(text.layers[0], text.embed_tokens.weight, text.rotary_emb.inv_freq, model.config.anchor_token_ids)
    _aim_text_heads(text.layers[1:3], text.rotary_emb.inv_freq)
    return model


@torch.no_grad()
def _aim_vision_heads(visual: nn.Module, sharpness: float = 5.0) -> None:
    """Biases of queries and keys that, turned by rope, make a head attend to one neighbouring patch."""
    near = [(0, -1), (0, 1), (-1, 0), (1, 0), (0, 2)]
    far = [(0, -2), (0, 2), (-1, 0), (1, 0), (0, -1)]
    frequencies = visual.rotary_pos_emb.inv_freq.float()
    for i, block in enumerate(visual.blocks):
        heads, dim = block.attn.num_heads, block.attn.head_dim
        bias = block.attn.qkv.bias.view(3, heads, dim)
        bias.zero_()
        for head, (down, right) in zip(range(heads), near if i % 2 == 0 else far, strict=True):
            angle = torch.cat([down * frequencies, right * frequencies])
            bias[0, head, : dim // 2] = sharpness * angle.cos()
            bias[0, head, dim // 2 :] = sharpness * angle.sin()
            bias[1, head, : dim // 2] = sharpness


@torch.no_grad()
def _aim_text_heads(layers: nn.ModuleList, inv_freq: torch.Tensor) -> None:
    """Heads that look one to three tokens back in the text, or at the cells to the left and above.

    Only the two fastest frequencies of each axis carry the bias, strong enough to tell neighbours apart.
    """
    offsets = [(-1, -1, -1), (-2, -2, -2), (0, 0, -1), (-3, -3, -3), (0, 0, -2), (0, -1, 0)]
    strength = {0: 5.0, 3: 4.0, 1: 9.0, 4: 6.0, 2: 14.0, 5: 7.0}  # by frequency index; axis = index % 3
    frequencies = inv_freq.float()
    half = HEAD_DIM // 2
    for layer in layers:
        attention = layer.self_attn
        queries = attention.q_proj.bias.view(-1, HEAD_DIM)
        keys = attention.k_proj.bias.view(-1, HEAD_DIM)
        queries.zero_()
        keys.zero_()
        for index, value in strength.items():
            keys[:, index] = value
            for head, offset in enumerate(offsets):
                angle = offset[index % 3] * frequencies[index]
                queries[head, index] = value * angle.cos()
                queries[head, half + index] = value * angle.sin()


@torch.no_grad()
def place_cells(
    layer: nn.Module, table: torch.Tensor, inv_freq: torch.Tensor, anchors: list[int], size: float = 1.0
) -> None:
    """Makes of the first layer one that tells every cell where it lies, which nothing else in the architecture does.

    Rope only compares places. So a head looks at the anchors, four tokens in front of the image, and its attention to
    anchor i follows the cosine of the distance on one axis, at one frequency, a quarter turn later for each anchor:
    together they are a position code. Three frequencies for either axis make six heads. The rest of the layer starts as
    identity. `table` (V, D) are the token embeddings; `size` is that of the codes, relative to theirs.
    """
    attention, half = layer.self_attn, HEAD_DIM // 2
    strength, reach = 1.5, 13.0  # of the cosine; by which the anchors stand out from thousands of cells
    table = table.float()
    normed = torch.nn.functional.rms_norm(table, table.shape[-1:])
    gram = normed.T @ normed + 1e4 * normed[anchors].T @ normed[anchors] + 1e-2 * torch.eye(table.shape[1])
    # (4, D): projections that are 1 for their anchor and about 0 for every other token
    finders = torch.linalg.solve(gram, 1e4 * normed[anchors].T).T
    still = [half - 1, half - 2, half - 3]  # so slow that they do not turn
    scale = HEAD_DIM**0.5
    quiet = torch.linalg.eigh(normed.T @ normed).eigenvectors.T  # directions, those that tokens use least first
    spread = float(table.norm(dim=-1).median())
    for projection in (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj):
        projection.weight.zero_()
        if projection.bias is not None:
            projection.bias.zero_()
    layer.mlp.down_proj.weight.zero_()
    for head, frequency in enumerate([1, 2, 4, 5, 7, 8]):  # index % 3: axis
        rows = slice(head * HEAD_DIM, (head + 1) * HEAD_DIM)
        query = attention.q_proj.bias[rows]
        query[still] = (reach * scale / len(still)) ** 0.5
        query[frequency] = (strength * scale) ** 0.5
        for i, finder in enumerate(finders):
            turn = math.pi / 2 * i - float(inv_freq[frequency]) * (len(anchors) + 1 - i)
            key = torch.zeros(HEAD_DIM)
            key[still] = query[still]
            key[frequency] = query[frequency] * math.cos(turn)
            key[half + frequency] = query[frequency] * math.sin(turn)
            attention.k_proj.weight[rows] += key[:, None] * finder
            attention.v_proj.weight[head * HEAD_DIM + i] = finder
            direction = quiet[head * len(anchors) + i]
            attention.o_proj.weight[:, head * HEAD_DIM + i] = size * spread * direction


class GlyphHead(nn.Module):
    """Names the glyphs of every visual token: (..., D) to (..., SLOTS, NUM_CLASSES). Used in training only."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, SLOTS * NUM_CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(x)).unflatten(-1, (SLOTS, NUM_CLASSES))


class TokenHead(nn.Module):
    """Looks for the embeddings of the tokens that start in a cell: (..., D) to (..., SLOTS, D). In training only."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, SLOTS * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.norm(x)).unflatten(-1, (SLOTS, -1))


class OracleEmbedding(nn.Module):
    """Visual tokens a perfect vision tower could give: the embeddings of the tokens that start in the cell, turned by
    one matrix a slot and summed. (B, C, SLOTS) to (B, C, D)."""

    def __init__(self, width: int, pad: int) -> None:
        super().__init__()
        self.pad = pad
        self.turn = nn.Parameter(torch.stack([nn.init.orthogonal_(torch.empty(width, width)) for _ in range(SLOTS)]))
        self.blank = nn.Parameter(torch.zeros(width))

    def forward(
        self, tokens: torch.Tensor, table: torch.Tensor, noise: float = 0.0, wrong: float = 0.0
    ) -> torch.Tensor:
        """`noise` is relative to the embeddings' spread; a share `wrong` of the tokens is replaced at random."""
        used = tokens != self.pad
        if wrong > 0:
            swap = (torch.rand(tokens.shape) < wrong) & used
            tokens = torch.where(swap, torch.randint(0, len(table), tokens.shape), tokens)
        x = torch.zeros(*tokens.shape[:-1], table.shape[1])
        for slot in range(SLOTS):
            here = used[..., slot]
            if here.any():
                turned = nn.functional.embedding(tokens[..., slot][here], table) @ self.turn[slot]
                x = x.index_put((here,), turned.float(), accumulate=True)
        x = x + self.blank * ~used[..., :1]
        if noise > 0:
            x = x + torch.randn_like(x) * noise * x.detach().std()
        return x


class Spelling(nn.Module):
    """Part of every token's embedding, made of its bytes: tokens that share letters learn together.

    (V, D), to be added to the embedding table; an exported model carries the sum. Bytes are counted from the token's
    start (8 places) and from its end (4 places). It starts at zero. Special tokens, table tags and the signs of LaTeX
    spell nothing.
    """

    START_PLACES, END_PLACES = 8, 4

    def __init__(self, tokenizer: Tokenizer, width: int) -> None:
        super().__init__()
        alphabet = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
        places = self.START_PLACES + self.END_PLACES
        self.padding = places * len(alphabet)
        index = torch.full((tokenizer.get_vocab_size(), places), self.padding)
        whole = {*SPECIAL, *STRUCTURE, *FORMULA}
        for token, row in tokenizer.get_vocab().items():
            if token in whole:
                continue
            letters = [alphabet[c] for c in token]
            for place, letter in enumerate(letters[: self.START_PLACES]):
                index[row, place] = place * len(alphabet) + letter
            for place, letter in enumerate(letters[::-1][: self.END_PLACES], self.START_PLACES):
                index[row, place] = place * len(alphabet) + letter
        self.register_buffer("index", index, persistent=False)
        self.table = nn.Parameter(torch.zeros(self.padding + 1, width))

    def forward(self) -> torch.Tensor:
        return nn.functional.embedding_bag(self.index, self.table, mode="sum", padding_idx=self.padding)


def parameter_count(model: nn.Module) -> float:
    """Millions of parameters, tied ones counted once."""
    return math.fsum(p.numel() for p in {id(p): p for p in model.parameters()}.values()) / 1e6
