"""From a drawn page to what the losses need: patches, token ids, the cells each token was read from, dense classes."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from training.pages import Page, PageSpec, dense_targets, draw_page
from training.symbols import CELL, END, PAD, SLOTS

PATCH, MERGE = 8, 2


@dataclass(frozen=True)
class Batch:
    """B pages of one size with C cells, at most T tokens.

    patches: float16 (B, 4 C, 64), grey in [-1, 1], in merge order; ids: int64 (B, T), padded, END included;
    lengths: int64 (B,); first, last: int64 (B, T), the cells of the token's first and last glyph;
    dense: int64 (B, C, SLOTS).
    """

    width: int
    height: int
    patches: np.ndarray
    ids: np.ndarray
    lengths: np.ndarray
    first: np.ndarray
    last: np.ndarray
    dense: np.ndarray


def to_patches(image: np.ndarray) -> np.ndarray:
    """Grey uint8 (H, W) to float16 (H W / 64, 64) in the order of the Qwen image processors, scaled to [-1, 1]."""
    height, width = image.shape
    side = PATCH * MERGE
    x = image.reshape(height // side, MERGE, PATCH, width // side, MERGE, PATCH).transpose(0, 3, 1, 4, 2, 5)
    return (x.reshape(-1, PATCH * PATCH).astype(np.float32) / 127.5 - 1).astype(np.float16)


def tokenize(page: Page, tokenizer: Tokenizer) -> tuple[list[int], list[int], list[int]]:
    """Token ids of the page's text with the cells of each token's first and last character."""
    starts = np.cumsum([0, *map(len, page.glyphs)])
    cells = np.repeat(page.cells, np.diff(starts))
    encoding = tokenizer.encode(page.text, add_special_tokens=False)
    first = [int(cells[a]) for a, _ in encoding.offsets]
    last = [int(cells[max(a, b - 1)]) for a, b in encoding.offsets]
    return encoding.ids, first, last


def make_batch(
    spec: Callable[[random.Random], PageSpec],
    size: int,
    rng: random.Random,
    tokenizer: Tokenizer,
    most_tokens: int = 4000,
) -> Batch:
    """Draws `size` pages of one spec size and stacks them; empty pages are drawn again."""
    pages, tokens = [], []
    first_spec = None
    while len(pages) < size:
        first_spec = spec(rng)
        page = draw_page(first_spec, rng)
        if len(page.glyphs) < 2:
            continue
        encoded = tokenize(page, tokenizer)
        if len(encoded[0]) < most_tokens:
            pages.append(page)
            tokens.append(encoded)
    assert first_spec is not None
    cells = (first_spec.width // CELL) * (first_spec.height // CELL)
    longest = max(len(ids) for ids, _, _ in tokens) + 1
    ids = np.full((size, longest), tokenizer.token_to_id(PAD), np.int64)
    first, last = np.zeros((size, longest), np.int64), np.zeros((size, longest), np.int64)
    lengths = np.zeros(size, np.int64)
    for i, (row, a, b) in enumerate(tokens):
        n = len(row)
        ids[i, :n], ids[i, n] = row, tokenizer.token_to_id(END)
        first[i, :n], last[i, :n] = a, b
        first[i, n] = last[i, n] = b[-1]
        lengths[i] = n + 1
    return Batch(
        first_spec.width,
        first_spec.height,
        np.stack([to_patches(p.image) for p in pages]),
        ids,
        lengths,
        first,
        last,
        np.stack([dense_targets(p, cells, SLOTS) for p in pages]),
    )
