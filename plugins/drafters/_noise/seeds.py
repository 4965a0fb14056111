"""Random numbers that depend on seed, page and purpose only, never on what was drafted before or in which process."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image


def page_key(image: Image) -> str:
    """Identifies a page by what is on it, so that a copy of the file gets the same noise."""
    digest = hashlib.blake2b(f"{image.size} {image.mode} ".encode(), digest_size=16)
    digest.update(image.tobytes())
    return digest.hexdigest()


def numbers(seed: int, page: str, *purpose: str | int) -> np.random.Generator:
    """A generator of its own for each purpose: more noise of one kind leaves that of another kind as it was."""
    text = "\0".join(map(str, (seed, page, *purpose)))
    import numpy as np

    return np.random.Generator(np.random.PCG64(int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "big")))


def share(name: str, value: float) -> None:
    """Raises `ValueError` for a share outside 0..1."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name}={value:g}: must be between 0 and 1")
