"""Measures prompts and images on the very model: upper parts of a page of text, of several heights."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont

from hsdkit.decoding.batch import best_tokens
from hsdkit.decoding.cache import RaggedCache
from hsdkit.decoding.protocol import TargetModel
from hsdkit.protocols import DecodeRequest, Target
from hsdkit.roofline.calibrate import USUAL
from hsdkit.roofline.measured_engine import Line

#: Inches: the width of the page, and the heights of the parts.
_WIDTH, _HEIGHTS = 8.3, (0.7, 2.0, 5.0, 11.7)
#: Seconds; a part that took longer is the largest that is tried.
_LONG = 2.0
_WORDS = "Page after page, the same model reads the same words; only the number of steps it takes is smaller."


@torch.inference_mode()
def prompt_seconds(model: TargetModel, target: Target, most: int, patience: float) -> tuple[Line, Line]:
    """Seconds of a prompt by its tokens, and of preparing and encoding its image by the tokens that it becomes.
    Measured for about `patience` seconds, three times at least, up to the first part with `most` tokens."""
    _read(model, target, _page(target, _HEIGHTS[0]))  # the first of a process takes longer
    images: list[Image.Image] = []
    sizes: list[tuple[int, int]] = []
    for height in _HEIGHTS:
        image = _page(target, height)
        length, tokens, *seconds = _read(model, target, image)
        if not sizes or (length > sizes[-1][0] and tokens > sizes[-1][1]):  # some targets make all images one size
            images.append(image)
            sizes.append((length, tokens))
        if length >= most or sum(seconds) > _LONG:
            break
    times: list[list[tuple[float, float]]] = [[] for _ in images]
    begun = perf_counter()
    while len(times[0]) < 3 or perf_counter() - begun < patience:
        for image, taken in zip(images, times, strict=True):
            taken.append(_read(model, target, image)[2:])
    usual = np.minimum.accumulate([np.quantile(taken, USUAL, axis=0) for taken in times][::-1])[::-1].tolist()
    lengths, tokens_of = zip(*sizes, strict=True)
    return Line(lengths, tuple(prefill for prefill, _ in usual)), Line(tokens_of, tuple(image for _, image in usual))


def _page(target: Target, height: float) -> Image.Image:
    """The upper part of a page full of text, as the target is shown it."""
    image = Image.new("RGB", (round(_WIDTH * target.dpi), round(height * target.dpi)), "white")
    line = max(8, target.dpi // 6)
    font, draw = ImageFont.load_default(size=0.8 * line), ImageDraw.Draw(image)
    for y in range(line, image.height - line, line):
        draw.text((line, y), _WORDS, "black", font)
    return target.view(image)


def _read(model: TargetModel, target: Target, image: Image.Image) -> tuple[int, int, float, float]:
    """Tokens of the prompt and of the image; seconds of the prompt and of the image."""
    prompts = model.prepare([DecodeRequest(image, target.prompt(None))])
    begun = perf_counter()
    filled = model.prefill(prompts, RaggedCache())
    best_tokens(filled.logits)
    spent = perf_counter() - begun
    length = filled.lengths[0]
    tokens = filled.prompts[0].count(filled.image_token) if filled.image_token is not None else 0
    return length, tokens or length, spent - filled.encode_seconds, prompts.seconds + filled.encode_seconds
