"""From a drawn page to what the losses need: patches, token ids, the cells each token was read from, dense classes."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from training.pages import Page, PageSpec, dense_targets, draw_page, first_in_cells
from training.symbols import CELL, END, PAD, SLOTS

PATCH, MERGE = 8, 2


@dataclass(frozen=True)
class Batch:
    """B pages of one size with C cells, at most T tokens.

    patches: float16 (B, 4 C, 64), grey in [-1, 1], in merge order; ids: int64 (B, T), padded, END included;
    lengths: int64 (B,); places: int64 (B, T), the cell of each token's first visible glyph;
    glyphs: int64 (B, C, SLOTS), classes, 0 for none; tokens: int64 (B, C, SLOTS), the tokens that start in a cell, in
    reading order, PAD for none.
    """

    width: int
    height: int
    patches: np.ndarray
    ids: np.ndarray
    lengths: np.ndarray
    places: np.ndarray
    glyphs: np.ndarray
    tokens: np.ndarray


def to_patches(image: np.ndarray) -> np.ndarray:
    """Grey uint8 (H, W) to float16 (H W / 64, 64) in the order of the Qwen image processors, scaled to [-1, 1]."""
    height, width = image.shape
    side = PATCH * MERGE
    x = image.reshape(height // side, MERGE, PATCH, width // side, MERGE, PATCH).transpose(0, 3, 1, 4, 2, 5)
    return (x.reshape(-1, PATCH * PATCH).astype(np.float32) / 127.5 - 1).astype(np.float16)


def tokenize(page: Page, tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Token ids of the page's text with the cell of each token's first visible glyph (a lone space: its own)."""
    starts = np.cumsum([0, *map(len, page.glyphs)])
    cells = np.repeat(page.cells, np.diff(starts))
    encoding = tokenizer.encode(page.text, add_special_tokens=False)
    seen = (next((i for i in range(a, b) if page.text[i] != " "), a) for a, b in encoding.offsets)
    return encoding.ids, [int(cells[i]) for i in seen]


def make_batch(
    spec: Callable[[random.Random], PageSpec],
    size: int,
    rng: random.Random,
    tokenizer: Tokenizer,
    loose: Tokenizer | None = None,
    most_tokens: int = 4000,
) -> Batch:
    """Draws `size` pages of one spec size and stacks them; empty pages are drawn again.

    `loose` is the tokenizer with merges left out at random (BPE-dropout, arXiv 1910.13267), which splits half of the
    texts: the model then reads on from any way of spelling a word. The dense targets are those of `tokenizer`.
    """
    pages, tokens, texts = [], [], []
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
            texts.append(tokenize(page, loose) if loose is not None and rng.random() < 0.5 else encoded)
    assert first_spec is not None
    cells = (first_spec.width // CELL) * (first_spec.height // CELL)
    pad, end = tokenizer.token_to_id(PAD), tokenizer.token_to_id(END)
    lengths = np.array([len(row) + 1 for row, _ in texts])
    ids = np.full((size, int(lengths.max())), pad, np.int64)
    places = np.zeros_like(ids)
    for i, (row, where) in enumerate(texts):
        ids[i, : lengths[i]] = [*row, end]
        places[i, : lengths[i]] = [*where, where[-1]]
    return Batch(
        first_spec.width,
        first_spec.height,
        np.stack([to_patches(p.image) for p in pages]),
        ids,
        lengths,
        places,
        np.stack([dense_targets(p, cells, SLOTS) for p in pages]),
        np.stack([first_in_cells(row, where, cells, SLOTS, pad) for row, where in tokens]),
    )
