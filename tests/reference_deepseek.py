"""DeepSeek-OCR (1) in plain torch from its published weight names: what the classes we load it with must compute.

Follows the published `deepencoder.py`, `modeling_deepseekocr.py` and `modeling_deepseekv2.py`; nothing is shared with
`transformers`. W is the dict of tensors of the safetensors file, C its config.json.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

W = dict[str, torch.Tensor]


def linear(w: W, name: str, x: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w[f"{name}.weight"], w.get(f"{name}.bias"))


def layer_norm(w: W, name: str, x: torch.Tensor, eps: float) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps)


def resized(grid: torch.Tensor, side: int) -> torch.Tensor:
    """(1, N, N, C) -> (1, side, side, C)"""
    if grid.shape[1] == side:
        return grid
    return F.interpolate(grid.permute(0, 3, 1, 2), (side, side), mode="bicubic", antialias=True).permute(0, 2, 3, 1)


def sam(w: W, c: dict[str, Any], pixels: torch.Tensor) -> torch.Tensor:
    """(B, 3, S, S) -> (B, channels, S / 64, S / 64)"""
    x = F.conv2d(pixels, w["patch_embed.proj.weight"], w["patch_embed.proj.bias"], stride=16).permute(0, 2, 3, 1)
    side = x.shape[1]
    x = x + resized(w["pos_embed"], side)
    for i in range(c["layers"]):
        shortcut, x = x, layer_norm(w, f"blocks.{i}.norm1", x, 1e-6)
        if i in c["global_attn_indexes"]:
            x = sam_attention(w, f"blocks.{i}.attn", c["heads"], x)
        else:
            pad = -side % 14
            windows = F.pad(x, (0, 0, 0, pad, 0, pad))
            n = (side + pad) // 14
            windows = windows.unflatten(2, (n, 14)).unflatten(1, (n, 14)).transpose(2, 3).flatten(0, 2)
            windows = sam_attention(w, f"blocks.{i}.attn", c["heads"], windows)
            x = windows.unflatten(0, (-1, n, n)).transpose(2, 3).flatten(3, 4).flatten(1, 2)[:, :side, :side]
        x = shortcut + x
        y = layer_norm(w, f"blocks.{i}.norm2", x, 1e-6)
        x = x + linear(w, f"blocks.{i}.mlp.lin2", F.gelu(linear(w, f"blocks.{i}.mlp.lin1", y)))
    x = F.conv2d(x.permute(0, 3, 1, 2), w["neck.0.weight"])
    x = layer_norm(w, "neck.1", x.permute(0, 2, 3, 1), 1e-6).permute(0, 3, 1, 2)
    x = F.conv2d(x, w["neck.2.weight"], padding=1)
    x = layer_norm(w, "neck.3", x.permute(0, 2, 3, 1), 1e-6).permute(0, 3, 1, 2)
    for name in ("net_2", "net_3"):
        x = F.conv2d(x, w[f"{name}.weight"], stride=2, padding=1)
    return x


def sam_attention(w: W, name: str, heads: int, x: torch.Tensor) -> torch.Tensor:
    """Attention over a square with a bias for the distance down and one for that across."""
    n, side, _, width = x.shape
    q, k, v = linear(w, f"{name}.qkv", x.flatten(1, 2)).unflatten(-1, (3, heads, width // heads)).permute(2, 0, 3, 1, 4)
    at = torch.arange(side)
    bias = []
    for axis, square in (("h", q.unflatten(2, (side, side))), ("w", q.unflatten(2, (side, side)).transpose(2, 3))):
        table = w[f"{name}.rel_pos_{axis}"]
        if len(table) != 2 * side - 1:
            table = F.interpolate(table.T[None], 2 * side - 1, mode="linear")[0].T
        distance = table[at[:, None] - at + side - 1]  # (query, key, C)
        bias.append(torch.einsum("nhabc,akc->nhabk", square, distance))
    down, across = bias[0], bias[1].transpose(2, 3)
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    scores = scores.unflatten(-1, (side, side)).unflatten(2, (side, side))
    scores = (scores + down[..., :, None] + across[..., None, :]).flatten(4).flatten(2, 3)
    out = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    return linear(w, f"{name}.proj", out).unflatten(1, (side, side)).reshape(n, side, side, width)


def clip(w: W, c: dict[str, Any], patches: torch.Tensor) -> torch.Tensor:
    """CLIP on SAM's features in place of its own patches: (B, C, N, N) -> (B, N * N, C), without the class token."""
    side = patches.shape[-1]
    x = patches.flatten(2).transpose(1, 2)
    x = torch.cat((w["embeddings.class_embedding"].expand(len(x), 1, -1), x), 1)
    table = w["embeddings.position_embedding.weight"]
    own = int((len(table) - 1) ** 0.5)
    grid = resized(table[1:].unflatten(0, (own, own))[None], side).flatten(0, 2)
    x = layer_norm(w, "pre_layrnorm", x + torch.cat((table[:1], grid)), 1e-5)
    for i in range(c["layers"]):
        name = f"transformer.layers.{i}"
        y = linear(w, f"{name}.self_attn.qkv_proj", layer_norm(w, f"{name}.layer_norm1", x, 1e-5))
        q, k, v = y.unflatten(-1, (3, c["heads"], -1)).permute(2, 0, 3, 1, 4)
        out = ((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5).softmax(-1) @ v
        x = x + linear(w, f"{name}.self_attn.out_proj", out.transpose(1, 2).flatten(2))
        y = linear(w, f"{name}.mlp.fc1", layer_norm(w, f"{name}.layer_norm2", x, 1e-5))
        x = x + linear(w, f"{name}.mlp.fc2", y * torch.sigmoid(1.702 * y))
    return x[:, 1:]


def features(w: W, c: dict[str, Any], pixels: torch.Tensor) -> torch.Tensor:
    """(B, N, N, D): both encoders side by side, projected."""
    width = c["vision_config"]["width"]
    parts = [
        {k.removeprefix(p): v for k, v in w.items() if k.startswith(p)}
        for p in ("model.sam_model.", "model.vision_model.")
    ]
    one = sam(parts[0], width["sam_vit_b"], pixels)
    two = clip(parts[1], width["clip-l-14-224"], one)
    both = linear(w, "model.projector.layers", torch.cat((two, one.flatten(2).transpose(1, 2)), -1))
    return both.unflatten(1, (one.shape[-1], one.shape[-1]))


def image_embeddings(
    w: W, c: dict[str, Any], whole: torch.Tensor, tiles: torch.Tensor | None, columns: int
) -> torch.Tensor:
    """Tiles, whole, separator; a newline after each row of either."""
    newline = w["model.image_newline"]
    sheets = [features(w, c, whole[None])[0]]
    if tiles is not None:
        found = features(w, c, tiles)
        rows = [torch.cat(list(found[at : at + columns]), 1) for at in range(0, len(found), columns)]
        sheets.insert(0, torch.cat(rows))
    lines = [torch.cat((sheet, newline.expand(len(sheet), 1, -1)), 1).flatten(0, 1) for sheet in sheets]
    return torch.cat((*lines, w["model.view_seperator"][None]))


def logits(w: W, c: dict[str, Any], ids: list[int], image: torch.Tensor, image_token: int) -> torch.Tensor:
    """(P, V) of one prompt."""
    c = c["language_config"]
    x = w["model.embed_tokens.weight"][torch.tensor(ids)].clone()
    x[torch.tensor(ids) == image_token] = image
    heads, size = c["num_attention_heads"], c["hidden_size"] // c["num_attention_heads"]
    angles = torch.arange(len(ids))[:, None] * 10_000.0 ** (-torch.arange(0, size, 2) / size)
    cos, sin = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)

    def turned(v: torch.Tensor) -> torch.Tensor:
        return v * cos + torch.cat((-v[..., size // 2 :], v[..., : size // 2]), -1) * sin

    def rms(name: str, v: torch.Tensor) -> torch.Tensor:
        return w[f"{name}.weight"] * v * (v.pow(2).mean(-1, keepdim=True) + 1e-6).rsqrt()

    def mlp(name: str, v: torch.Tensor) -> torch.Tensor:
        return linear(
            w, f"{name}.down_proj", F.silu(linear(w, f"{name}.gate_proj", v)) * linear(w, f"{name}.up_proj", v)
        )

    causal = torch.full((len(ids), len(ids)), -torch.inf).triu(1)
    for i in range(c["num_hidden_layers"]):
        name = f"model.layers.{i}"
        y = rms(f"{name}.input_layernorm", x)
        q, k, v = (
            linear(w, f"{name}.self_attn.{p}_proj", y).unflatten(-1, (heads, size)).transpose(0, 1) for p in "qkv"
        )
        out = (turned(q) @ turned(k).transpose(-1, -2) * size**-0.5 + causal).softmax(-1) @ v
        x = x + linear(w, f"{name}.self_attn.o_proj", out.transpose(0, 1).flatten(1))
        y = rms(f"{name}.post_attention_layernorm", x)
        if i < c["first_k_dense_replace"]:
            x = x + mlp(f"{name}.mlp", y)
            continue
        weight, chosen = linear(w, f"{name}.mlp.gate", y).softmax(-1).topk(c["num_experts_per_tok"])
        experts = [
            sum(p * mlp(f"{name}.mlp.experts.{int(e)}", row) for p, e in zip(weight[t], chosen[t], strict=True))
            for t, row in enumerate(y)
        ]
        x = x + torch.stack(experts) + mlp(f"{name}.mlp.shared_experts", y)
    return linear(w, "lm_head", rms("model.norm", x))
