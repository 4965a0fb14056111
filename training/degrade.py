"""Makes a clean page look scanned: blur, noise, slight skew, JPEG, uneven light, low contrast."""

import io
import random

import numpy as np
from PIL import Image, ImageFilter


def degrade(image: np.ndarray, rng: random.Random) -> np.ndarray:
    """A degraded copy of `image` (uint8, height by width); two or three faults are drawn at random."""
    height, width = image.shape
    faults = rng.sample(["skew", "blur", "light", "contrast", "noise", "jpeg", "scale"], rng.randint(2, 3))
    if "skew" in faults:
        # The glyph at the far edge may move by at most a third of a cell, so that the cell labels stay true.
        limit = min(1.0, 57.3 * 5 / max(height, width))
        picture = Image.fromarray(image)
        angle = rng.uniform(-limit, limit)
        fill = int(np.median(image))
        image = np.asarray(picture.rotate(angle, Image.Resampling.BICUBIC, fillcolor=fill))
    if "scale" in faults:
        factor = rng.uniform(0.75, 0.95)
        small = Image.fromarray(image).resize((int(width * factor), int(height * factor)), Image.Resampling.BILINEAR)
        image = np.asarray(small.resize((width, height), Image.Resampling.BICUBIC))
    if "blur" in faults:
        image = np.asarray(Image.fromarray(image).filter(ImageFilter.GaussianBlur(rng.uniform(0.3, 0.8))))
    values = image.astype(np.float32)
    if "light" in faults:
        gx, gy = (rng.uniform(-0.25, 0.25) for _ in range(2))
        light = 1 - np.abs(gx * np.linspace(-1, 1, width)[None] + gy * np.linspace(-1, 1, height)[:, None])
        values *= light
    if "contrast" in faults:
        low = rng.uniform(0, 90)
        values = low + values * (rng.uniform(200, 255) - low) / 255
    if "noise" in faults:
        noise = np.random.default_rng(rng.getrandbits(32)).standard_normal(image.shape, dtype=np.float32)
        values += noise * rng.uniform(3, 18)
    image = np.clip(values, 0, 255).astype(np.uint8)
    if "jpeg" in faults:
        buffer = io.BytesIO()
        Image.fromarray(image).save(buffer, "JPEG", quality=rng.randint(25, 75))
        image = np.asarray(Image.open(buffer))
    return image
