"""From a drawn page to what the losses need: patches, token ids, the cells each token was read from, dense classes."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tokenizers import Tokenizer

from training.mistakes import with_mistakes
from training.pages import Page, PageSpec, dense_targets, draw_page, first_in_cells
from training.symbols import CELL, END, PAD, SLOTS

PATCH, MERGE = 8, 2


@dataclass(frozen=True)
class Batch:
    """B pages of one size with C cells, at most T tokens.

    patches: float16 (B, 4 C, 64), grey in [-1, 1], in merge order; ids: int64 (B, T), padded, END included;
    lengths: int64 (B,); taught: bool (B, T), the tokens to learn: those that are no mistakes; places: int64 (B, T), the
    cell of each token's first visible glyph;
    glyphs: int64 (B, C, SLOTS), classes, 0 for none; tokens: int64 (B, C, SLOTS), the tokens that start in a cell, in
    reading order, PAD for none.
    """

    width: int
    height: int
    patches: np.ndarray
    ids: np.ndarray
    lengths: np.ndarray
    taught: np.ndarray
    places: np.ndarray
    glyphs: np.ndarray
    tokens: np.ndarray


def to_patches(image: np.ndarray) -> np.ndarray:
    """Grey uint8 (H, W) to float16 (H W / 64, 64) in the order of the Qwen image processors, scaled to [-1, 1]."""
    height, width = image.shape
    side = PATCH * MERGE
    x = image.reshape(height // side, MERGE, PATCH, width // side, MERGE, PATCH).transpose(0, 3, 1, 4, 2, 5)
    return (x.reshape(-1, PATCH * PATCH).astype(np.float32) / 127.5 - 1).astype(np.float16)


@dataclass(frozen=True)
class Tokens:
    """A text's token ids, the cell of each token's first visible glyph (a lone space: its own), which are right."""

    ids: list[int]
    cells: list[int]
    right: list[bool]


def tokenize(page: Page, tokenizer: Tokenizer, right: Sequence[bool] | None = None) -> Tokens:
    """The tokens of the page's text; `right` tells of each glyph whether it is no mistake."""
    lengths = [len(glyph) for glyph in page.glyphs]
    cells = np.repeat(page.cells, lengths)
    fine = np.repeat(np.ones(len(lengths), bool) if right is None else right, lengths)
    encoding = tokenizer.encode(page.text, add_special_tokens=False)
    seen = (next((i for i in range(a, b) if page.text[i] != " "), a) for a, b in encoding.offsets)
    return Tokens(encoding.ids, [int(cells[i]) for i in seen], [bool(fine[a:b].all()) for a, b in encoding.offsets])


def _as_read(page: Page, tokens: Tokens, tokenizer: Tokenizer, loose: Tokenizer, rng: random.Random) -> Tokens:
    """The text to read on from: half of them spelled loosely, half of them with mistakes."""
    spelled = loose if rng.random() < 0.5 else tokenizer
    if rng.random() < 0.5:
        spoiled, right = with_mistakes(page, rng)
        return tokenize(spoiled, spelled, right)
    return tokens if spelled is tokenizer else tokenize(page, spelled)


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
    texts: the model then reads on from any way of spelling a word. With `loose`, half of the texts have mistakes in
    them too. The dense targets are those of `tokenizer` and of the true text.
    """
    pages, tokens, texts = [], [], []
    first_spec = None
    while len(pages) < size:
        first_spec = spec(rng)
        page = draw_page(first_spec, rng)
        if len(page.glyphs) < 2:
            continue
        encoded = tokenize(page, tokenizer)
        if len(encoded.ids) < most_tokens:
            pages.append(page)
            tokens.append(encoded)
            texts.append(_as_read(page, encoded, tokenizer, loose, rng) if loose is not None else encoded)
    assert first_spec is not None
    cells = (first_spec.width // CELL) * (first_spec.height // CELL)
    pad, end = tokenizer.token_to_id(PAD), tokenizer.token_to_id(END)
    lengths = np.array([len(text.ids) + 1 for text in texts])
    ids = np.full((size, int(lengths.max())), pad, np.int64)
    places, taught = np.zeros_like(ids), np.zeros(ids.shape, bool)
    for i, text in enumerate(texts):
        ids[i, : lengths[i]] = [*text.ids, end]
        places[i, : lengths[i]] = [*text.cells, text.cells[-1]]
        taught[i, : lengths[i]] = [*text.right, True]
    return Batch(
        first_spec.width,
        first_spec.height,
        np.stack([to_patches(p.image) for p in pages]),
        ids,
        lengths,
        taught,
        places,
        np.stack([dense_targets(p, cells, SLOTS) for p in pages]),
        np.stack([first_in_cells(text.ids, text.cells, cells, SLOTS, pad) for text in tokens]),
    )
