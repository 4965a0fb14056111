"""A page, its draft, and the drafter `noise` on it; bases whose drafts a test decides."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from hsdkit_plugins.drafters._noise.image import ImageNoise
from hsdkit_plugins.drafters._noise.layout import LayoutNoise
from hsdkit_plugins.drafters._noise.recognition import RecognitionNoise
from hsdkit_plugins.drafters.noise import Noise, NoiseConfig
from PIL import Image, ImageDraw

from hsdkit.documents import Page
from hsdkit.draft_files import SavedDraft, save_drafts
from hsdkit.regions import Box, Draft, Label, Region

PROSE = (
    "the quick brown fox jumps over a lazy dog while the committee discussed 1,024 reports (3.5%) of modern rates; "
    "Clara read them on Monday, No. 17."
)
WORDS = PROSE.split()
TABLE = (
    '<table><tr><th>Revenue &amp; cost</th><th colspan="2">in 2024</th></tr>'
    "<tr><td>a < b</td><td>1,024</td><td></td></tr><tr><td>$x^{2}$</td><td>7.5</td><td>end</td></tr></table>"
)
FORMULA = (
    r"\frac{\partial f}{\partial x} = \sum_{i=1}^{n} x_i^2y^2 \left( \alpha x + \frac12 \right) "
    r"\begin{array}{cc} a & b \\[2pt] c & d \end{array} \hspace{1em} \hat x^\prime"
)
BOX = Box(100, 100, 900, 500)


def prose(words: int, seed: int = 1) -> str:
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(words))


REGIONS = (
    Region(Box(100, 40, 700, 80), Label.TITLE, "On pages", level=1, score=0.5),
    Region(BOX, Label.TEXT, prose(80)),
    Region(Box(100, 520, 900, 640), Label.LIST, "- first item\n  - nested item\n1. numbered"),
    Region(Box(100, 660, 900, 800), Label.TABLE, TABLE, "html"),
    Region(Box(100, 820, 900, 880), Label.FORMULA, FORMULA, "latex"),
    Region(Box(100, 900, 900, 980), Label.FIGURE),
    Region(Box(100, 1000, 900, 1100), Label.TEXT, "文档解析模型在大规模数据集上进行训练，因此日本人未能了解土木工程。"),
)


ALL = {
    "recognition": RecognitionNoise(0.1, space_loss=0.1, line_loss=0.1, cell_swaps=0.3),
    "layout": LayoutNoise(jitter=0.05, merge=0.3, split=0.3, drop=0.1, reorder=0.3),
    "image": ImageNoise(jpeg=50, contrast=0.2),
}


def page(number: int = 1, seed: int = 0, **more: Any) -> Page:
    """A page with its own print, 1000 x 1200."""
    image = Image.new("RGB", (1000, 1200), "white")
    draw = ImageDraw.Draw(image)
    for y in range(50, 1150, 40):
        draw.text((60, y), prose(12, seed + y), fill="black")
    return Page(number, image, "a.pdf", **more)


def save(folder: Path) -> str:
    """A file with the same draft of pages 1 to 3."""
    drafts = [SavedDraft("a.pdf", n, 1000, 1200, Draft(REGIONS, "pdftext", 0.25, ("a note",))) for n in (1, 2, 3)]
    save_drafts(folder / "d.json", drafts)
    return str(folder / "d.json")


def noise(saved: str, **groups: Any) -> Noise:
    return Noise(NoiseConfig("replay", {"path": saved}, **groups))


class Fixed:
    """A base whose draft the test decides."""

    name = "fixed"

    def __init__(self, draft: Any) -> None:
        self.made = draft

    def draft(self, page: Page) -> Any:
        return self.made


SMALL = Page(1, Image.new("RGB", (100, 120)), "a.pdf")
