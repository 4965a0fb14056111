"""Scores an exported checkpoint on held-out pages, greedy, and prints a table.

python -m training.evaluate FOLDER [--pages 16] [--only NAME ...]
"""

import argparse
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from apted import APTED, Config
from hsdkit_plugins.targets.tiny import TinyConfig, TinyTarget
from lxml import html
from PIL import Image
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein
from transformers import AutoModelForImageTextToText, AutoProcessor

from training.canvas import HELD_FAMILIES, PDF_FAMILIES, TRAIN_FAMILIES
from training.pages import Page, PageSpec, draw_page

SEED = 90210
TRAINED, UNSEEN = tuple(TRAIN_FAMILIES), tuple(HELD_FAMILIES)
TEXT = ("paragraph", "heading", "list")


@dataclass(frozen=True)
class Test:
    """One row of the table: its page spec, a filter on the page, and what is measured."""

    name: str
    spec: PageSpec
    keep: Callable[[str], bool] = lambda text: len(text) > 30
    measure: str = "cer"


def _spec(width: int, height: int, **more: Any) -> PageSpec:
    return PageSpec(width, height, **{"split": "held", "degraded": False, "families": TRAINED, "pdf": False, **more})


def _short(text: str) -> bool:
    return 30 < len(text) <= 1200


TESTS = (
    Test("clean, trained fonts, 256 x 192", _spec(256, 192, crop=False)),
    Test("clean, trained fonts, 320 x 320", _spec(320, 320, crop=False, columns=1), _short),
    Test("clean, trained fonts, 448 x 448", _spec(448, 448, crop=False, columns=1), _short),
    Test("clean, unseen fonts, 320 x 320", _spec(320, 320, families=UNSEEN, crop=False, columns=1), _short),
    Test("degraded, 320 x 320", _spec(320, 320, degraded=True, crop=False, columns=1), _short),
    Test("PDF drawn by pdfium, 448 x 448", _spec(448, 448, pdf=True, families=tuple(PDF_FAMILIES), columns=1)),
    Test("crops of one block, 320 x 112", _spec(320, 112, crop=True)),
    Test("crops of one block, 560 x 96", _spec(560, 96, crop=True)),
    Test("tables, 320 x 256 (TEDS)", _spec(320, 256, kinds=("table",), crop=True), measure="teds"),
    Test("tables, 320 x 256 (CER)", _spec(320, 256, kinds=("table",), crop=True)),
    Test("two columns, 448 x 448 (CER)", _spec(448, 448, columns=2, crop=False)),
    Test("two columns, 448 x 448 (order right)", _spec(448, 448, columns=2, crop=False), measure="order"),
    Test("whole page, 448 x 640", _spec(448, 640, crop=False)),
    Test("whole page, 640 x 896", _spec(640, 896, crop=False)),
    Test("whole page, PDF, 640 x 896", _spec(640, 896, crop=False, pdf=True, families=tuple(PDF_FAMILIES))),
)


class Reader:
    """An exported model, read greedily in fp32 by transformers' stock classes; pages are scaled as hsdkit does it."""

    def __init__(self, folder: Path) -> None:
        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
        self.processor = AutoProcessor.from_pretrained(folder)
        self.target = TinyTarget(TinyConfig(model=str(folder)))

    @torch.no_grad()
    def read(self, image: Image.Image, most: int = 2560) -> str:
        """The Markdown of a page image."""
        content = [{"type": "image", "image": self.target.prepare(self.target.view(image))}]
        inputs = self.processor.apply_chat_template(
            [{"role": "user", "content": content}],
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
        )
        output = self.model.generate(**inputs, do_sample=False, max_new_tokens=most)
        return self.processor.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)


def held_pages(test: Test, count: int) -> list[Page]:
    """The test's pages: always the same ones."""
    rng = random.Random(f"{SEED}-{test.spec}")
    pages: list[Page] = []
    while len(pages) < count:
        page = draw_page(test.spec, rng)
        if test.keep(page.text):
            pages.append(page)
    return pages


def errors(said: str, true: str) -> int:
    """Character edits from what was said to the truth."""
    return Levenshtein.distance(said, true)


@dataclass(frozen=True)
class _Node:
    """A tag of a table's tree. (Not lxml's own element: one without children counts as false, which misleads apted.)"""

    tag: str
    text: str
    children: tuple["_Node", ...]

    @classmethod
    def read(cls, element: Any) -> "_Node":
        spans = "".join(f" {name}={element.get(name)}" for name in ("colspan", "rowspan") if element.get(name))
        cell = element.tag in ("td", "th")
        children = () if cell else tuple(cls.read(child) for child in element)
        return cls(element.tag + spans, element.text_content() if cell else "", children)

    def size(self) -> int:
        return 1 + sum(child.size() for child in self.children)


class _Cells(Config):
    """Costs: 1 for another tag or span, the share of wrong characters for another text."""

    def rename(self, node1: _Node, node2: _Node) -> float:
        return 1.0 if node1.tag != node2.tag else Levenshtein.normalized_distance(node1.text, node2.text)

    def children(self, node: _Node) -> list[_Node]:
        return list(node.children)


def teds(said: str, true: str) -> float:
    """Tree edit distance similarity of the first tables in two texts, 0 to 1."""
    trees = []
    for text in (said, true):
        start, end = text.find("<table>"), text.find("</table>")
        if start < 0:
            return 0.0
        trees.append(_Node.read(html.fromstring(text[start : end + 8 if end >= 0 else None])))
    size = max(tree.size() for tree in trees)
    return max(0.0, 1 - APTED(*trees, _Cells()).compute_edit_distance() / size)


def order_right(said: str, true: str) -> bool:
    """Whether the blocks of the true text are found in the same order; four in five must be found."""
    blocks = [b for b in true.split("\n\n") if len(b) > 15]
    found = [fuzz.partial_ratio_alignment(b, said, score_cutoff=60) for b in blocks if len(b) <= 1.2 * len(said)]
    places = [f.dest_start for f in found if f is not None]
    return len(places) >= 0.8 * len(blocks) and all(a < b for a, b in pairwise(places))


def score(reader: Reader, test: Test, count: int, show: int = 0) -> tuple[float, int]:
    """The test's score over `count` pages, and the characters in them."""
    pages = held_pages(test, count)
    wrong, total, values = 0, 0, []
    for page in pages:
        limit = len(page.text) + 80  # random strings take nearly a token a character
        said = reader.read(Image.fromarray(page.image), limit)
        if show > 0:
            print(f"TRUE {page.text[:300]!r}\nSAID {said[:300]!r}")
            show -= 1
        total += len(page.text)
        wrong += errors(said, page.text)
        if test.measure == "teds":
            values.append(teds(said, page.text))
        elif test.measure == "order":
            values.append(float(order_right(said, page.text)))
    return (sum(values) / len(values) if values else wrong / total), total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=16)
    parser.add_argument("--show", type=int, default=0, help="print this many readings a row")
    parser.add_argument("--only", nargs="*", default=[""], help="rows whose name contains one of these")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    reader = Reader(options.folder)
    print(f"| pages (n = {options.pages} each, characters) | score |\n| --- | --- |")
    for test in TESTS:
        if any(part in test.name for part in options.only):
            begin = time.time()
            value, characters = score(reader, test, options.pages, options.show)
            shown = f"{value:.3f}" if test.measure == "teds" else f"{100 * value:.1f}%"
            print(f"| {test.name} ({characters}) | {shown} |  <!-- {time.time() - begin:.0f} s -->", flush=True)


if __name__ == "__main__":
    main()
