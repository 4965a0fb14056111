"""The training forward pass: the stock modules' own weights, batched over pages of one size, with the losses.

It computes what `Qwen2_5_VLForConditionalGeneration.forward` computes (a test compares them) but handles a batch of
equal pages without splitting it window by window, and exposes the attention that the pointer loss teaches.

Letters: B pages, N patches, C = N / 4 cells (visual tokens), T text tokens, D width, L = C + 6 + T positions: the
anchors and the start-of-image token, the cells, the end-of-image token, the text.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import nn
from transformers import Qwen2_5_VLForConditionalGeneration
from transformers.vision_utils import get_vision_position_ids, get_vision_window_index

from training.attention import attend
from training.model import GlyphHead, TokenHead
from training.symbols import ANCHORS, CELL, SLOTS

LEAD = len(ANCHORS) + 1  # tokens before the cells
READ_LAYER = 3  # its head 0 learns to find the cell the last token was read from
NEXT_LAYERS = (4, 5, 6)  # their heads 0 learn to find the cell of the next token


@dataclass(frozen=True)
class Plan:
    """Index tables for pages of one size.

    order: (C,) cells sorted window by window, equal windows together; back: its inverse; groups: (windows, patches a
    window) of each run of equal windows; cos, sin: (N, head dim) of the vision rope in that order; positions:
    (3, LEAD + C + 1) up to the end-of-image token, after which the text goes on from `next_position`.
    """

    order: torch.Tensor
    back: torch.Tensor
    groups: tuple[tuple[int, int], ...]
    cos: torch.Tensor
    sin: torch.Tensor
    positions: torch.Tensor
    next_position: int


def make_plan(model: Qwen2_5_VLForConditionalGeneration, width: int, height: int) -> Plan:
    """The tables for pages of `width` by `height` pixels."""
    return _plan(model.model.visual, width, height)


@lru_cache(maxsize=64)
def _plan(visual: nn.Module, width: int, height: int) -> Plan:
    rows, columns = height // CELL, width // CELL
    grid = torch.tensor([[1, 2 * rows, 2 * columns]])
    window, ends = get_vision_window_index(
        grid, spatial_merge_size=2, window_size=visual.window_size, patch_size=visual.patch_size
    )
    parts = torch.tensor_split(window, (ends[1:-1] // 4).tolist())
    parts = sorted(parts, key=len)
    order = torch.cat(parts)
    groups: list[tuple[int, int]] = []
    for part in parts:
        if groups and groups[-1][1] == 4 * len(part):
            groups[-1] = (groups[-1][0] + 1, 4 * len(part))
        else:
            groups.append((1, 4 * len(part)))
    cos, sin = visual.rotary_pos_emb(torch.zeros(1), get_vision_position_ids(grid, 2))
    cos, sin = (x.unflatten(0, (-1, 4))[order].flatten(0, 1) for x in (cos, sin))
    row = torch.arange(rows).repeat_interleave(columns)
    column = torch.arange(columns).repeat(rows)
    text = LEAD + max(rows, columns)
    cells = LEAD + torch.stack([torch.zeros_like(row), row, column])
    positions = torch.cat([torch.arange(LEAD).expand(3, -1), cells, torch.full((3, 1), text)], 1)
    return Plan(order, torch.argsort(order), tuple(groups), cos, sin, positions, text + 1)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def _norm(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, x.shape[-1:], module.weight.to(x.dtype), module.variance_epsilon)


def _mlp(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return module.down_proj(F.silu(module.gate_proj(x)) * module.up_proj(x))


def see(model: Qwen2_5_VLForConditionalGeneration, patches: torch.Tensor, plan: Plan) -> torch.Tensor:
    """Visual tokens: grey patches (B, N, 64) to (B, C, D)."""
    visual = model.model.visual
    batch, n, _ = patches.shape
    weight = visual.patch_embed.proj.weight.sum(1).flatten(1)  # grey is the same value in three channels
    x = F.linear(patches.unflatten(1, (-1, 4))[:, plan.order].flatten(1, 2), weight)
    cos, sin = plan.cos.to(x.dtype), plan.sin.to(x.dtype)
    for i, block in enumerate(visual.blocks):
        heads = block.attn.num_heads
        q, k, v = block.attn.qkv(_norm(block.norm1, x)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
        if i in visual.fullatt_block_indexes:
            out = attend(q, k, v).transpose(1, 2).flatten(2)
        else:
            parts, start = [], 0
            for count, size in plan.groups:
                end = start + count * size
                # (B, heads, windows, patches, dim) to (B windows, heads, patches, dim)
                qw, kw, vw = (
                    t[:, :, start:end].unflatten(2, (count, size)).transpose(1, 2).flatten(0, 1) for t in (q, k, v)
                )
                o = attend(qw, kw, vw)
                parts.append(o.transpose(1, 2).reshape(batch, count * size, -1))
                start = end
            out = torch.cat(parts, 1)
        x = x + block.attn.proj(out)
        x = x + _mlp(block.mlp, _norm(block.norm2, x))
    merged = visual.merger.mlp(_norm(visual.merger.ln_q, x).reshape(batch, n // 4, -1))
    return merged[:, plan.back]


@dataclass
class Reading:
    """What the language model says: hidden (B, T, D), and the pointer losses of its taught heads, summed."""

    hidden: torch.Tensor
    pointer: torch.Tensor


def read(
    model: Qwen2_5_VLForConditionalGeneration,
    cells: torch.Tensor,
    ids: torch.Tensor,
    places: torch.Tensor,
    lengths: torch.Tensor,
    taught: torch.Tensor,
    plan: Plan,
    table: torch.Tensor | None = None,
) -> Reading:
    """Runs the language model over visual tokens (B, C, D) and the text `ids` (B, T); see `Batch` for the others.

    `table` (V, D) takes the place of the model's own embeddings.
    """
    text, config = model.model.language_model, model.config
    batch, count, _ = cells.shape
    tokens = ids.shape[1]
    lead = torch.tensor([[*config.anchor_token_ids, config.vision_start_token_id]]).expand(batch, -1)
    tail = torch.tensor([[config.vision_end_token_id, config.text_config.bos_token_id]]).expand(batch, 2)
    table = text.embed_tokens.weight if table is None else table
    before, after = F.embedding(lead, table), F.embedding(torch.cat([tail, ids[:, :-1]], 1), table)
    x = torch.cat([before, cells.float(), after], 1).to(cells.dtype)
    follow = torch.arange(tokens) + plan.next_position
    cos, sin = text.rotary_emb(x, torch.cat([plan.positions, follow.expand(3, -1)], 1)[:, None])
    cos, sin = cos[:, None].to(x.dtype), sin[:, None].to(x.dtype)
    valid = torch.arange(tokens) < lengths[:, None]
    pointer = torch.zeros(())
    start = LEAD + count + 1
    for i, layer in enumerate(text.layers):
        attention, h = layer.self_attn, _norm(layer.input_layernorm, x)
        dim = attention.head_dim
        q, k, v = (
            project(h).unflatten(-1, (-1, dim)).transpose(1, 2)
            for project in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        q, k = _rotate(q, cos, sin), _rotate(k, cos, sin)
        if i == READ_LAYER:
            # the query at position j has token j - 1 as its input
            pointer = pointer + _pointer(q[:, 0, start + 1 :], k[:, 0], places[:, :-1], valid[:, 1:], attention.scaling)
        if i in NEXT_LAYERS:
            pointer = pointer + _pointer(q[:, 0, start:], k[:, 0], places, taught, attention.scaling)
        out = attend(q, k, v, causal=True)
        x = x + attention.o_proj(out.transpose(1, 2).flatten(2))
        x = x + _mlp(layer.mlp, _norm(layer.post_attention_layernorm, x))
    return Reading(_norm(text.norm, x[:, start:]), pointer)


def _pointer(
    q: torch.Tensor, k: torch.Tensor, cells: torch.Tensor, valid: torch.Tensor, scaling: float
) -> torch.Tensor:
    """Cross-entropy of one head's attention, queries (B, T', dim), keys (B, L, dim), against the true cells (B, T')."""
    scores = (q @ k.transpose(1, 2)).float() * scaling
    length, queries = k.shape[1], q.shape[1]
    future = torch.arange(length) > (torch.arange(queries) + length - queries)[:, None]
    scores = scores.masked_fill(future, float("-inf"))
    target = torch.where(valid, LEAD + cells, -100)
    return F.cross_entropy(scores.flatten(0, 1), target.flatten(), ignore_index=-100)


def glyph_loss(head: GlyphHead, cells: torch.Tensor, glyphs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of the glyph classes (B, C, SLOTS) and the share of glyphs named right.

    Slots up to the first empty one count; those after it are left free.
    """
    logits = head(cells)
    used = (glyphs > 0).sum(-1, keepdim=True)
    target = glyphs.masked_fill(torch.arange(SLOTS) > used, -100)
    loss = F.cross_entropy(logits.float().flatten(0, 2), target.flatten(), ignore_index=-100)
    with torch.no_grad():
        right = ((logits.argmax(-1) == glyphs) & (glyphs > 0)).sum() / (glyphs > 0).sum().clamp(min=1)
    return loss, right


def slot_loss(
    head: TokenHead, cells: torch.Tensor, tokens: torch.Tensor, table: torch.Tensor, pad: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of the tokens that start in each cell (B, C, SLOTS) and the share of tokens named right.

    In cells with tokens, slots up to the first empty one count; of the empty cells one in four, its first slot.
    """
    used = (tokens != pad).sum(-1, keepdim=True)
    wanted = (torch.arange(SLOTS) <= used) & ((used > 0) | (torch.rand(used.shape) < 0.25))
    target = tokens[wanted]
    some = wanted[..., 0]
    found = head(cells[some])[wanted[some]]
    logits = F.linear(found, table).float()
    with torch.no_grad():
        real = target != pad
        right = ((logits.argmax(-1) == target) & real).sum() / real.sum().clamp(min=1)
    return F.cross_entropy(logits, target), right


def token_loss(
    hidden: torch.Tensor, table: torch.Tensor, ids: torch.Tensor, taught: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of the next token where `taught` (B, T), and the share guessed right; `table` (V, D) is tied."""
    logits = F.linear(hidden[taught], table).float()
    target = ids[taught]
    with torch.no_grad():
        right = (logits.argmax(-1) == target).float().mean()
    return F.cross_entropy(logits, target), right
