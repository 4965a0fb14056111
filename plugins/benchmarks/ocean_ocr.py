"""Ocean-OCR's document benchmark (github.com/guoxy25/Ocean-OCR): 100 English and 100 Chinese pages as plain text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

import hsdkit
from hsdkit.benchmarks import Figures, Item, Measured, existing, read_json
from hsdkit.components import Component, Requirement
from hsdkit.errors import BenchmarkError

FORMAT = "Ocean-OCR: document_en.json, document_zh.json or the folder that holds them (OCR_eval_data)"
SETS = ("document_en", "document_zh")
METRICS = ("bleu", "meteor", "f1", "precision", "recall", "edit_distance")
NEEDS = tuple(Requirement(module, "hsdkit[eval]") for module in ("nltk", "jieba"))


@dataclass(frozen=True)
class OceanOCRConfig:
    """path: document_en.json or document_zh.json, or the folder that holds them; page images lie in a folder of the
    JSON file's name, or beside it.
    orientation: `official` gives the ground truth to the metrics in the place of the output, as the official script
    does: its precision is the share of the words of the ground truth that the output has. `plain` gives each its
    place."""

    path: str = ""
    orientation: Literal["official", "plain"] = "official"


@dataclass(frozen=True, slots=True)
class _Page:
    item: Item
    subset: str
    text: str


class OceanOCR:
    """Markdown is compared as it is with the text of the page, word by word and character by character."""

    name = "ocean_ocr"

    def __init__(self, config: OceanOCRConfig) -> None:
        self._config = config

    @property
    def edition(self) -> str:
        return "documents" if self._config.orientation == "official" else "documents, plain orientation"

    @property
    def notes(self) -> tuple[str, ...]:
        from hsdkit.metrics.words import has_wordnet

        notes = []
        if self._config.orientation == "official":
            notes.append(
                "the ground truth stands in the place of the output, as in the official script: precision is of its "
                "words, recall of the output's (benchmark.orientation=plain turns it round)"
            )
        if not has_wordnet():
            notes.append(
                "METEOR knows no synonyms: WordNet is not among nltk's data (python -m nltk.downloader wordnet)"
            )
        return tuple(notes)

    @cached_property
    def _pages(self) -> dict[str, _Page]:
        path = existing(self._config.path, FORMAT)
        files = [path] if path.is_file() else [f for name in SETS if (f := path / f"{name}.json").is_file()]
        if not files:
            raise BenchmarkError(f"path={path}: holds neither {' nor '.join(f'{s}.json' for s in SETS)}")
        return {page.item.key: page for file in files for page in _pages(file)}

    def items(self) -> Sequence[Item]:
        return [page.item for page in self._pages.values()]

    def measure(self, item: Item, markdown: str) -> Measured:
        from hsdkit.metrics.edit import edit_share
        from hsdkit.metrics.words import bleu, has_chinese, meteor, precision_recall_f1, words

        truth = self._pages[item.key].text
        chinese = has_chinese(truth) or has_chinese(markdown)
        reference, output = words(truth, chinese), words(markdown, chinese)
        if self._config.orientation == "official":
            reference, output = output, reference
        precision, recall, f1 = precision_recall_f1(reference, output)
        distance = edit_share(truth, markdown)
        found = (bleu(reference, output), meteor(reference, output), f1, precision, recall, distance)
        return dict(zip(METRICS, found, strict=True))

    def summarise(self, pages: Sequence[Measured], group: bool = False) -> Figures:
        """Means over pages, in 0..1; all but the edit distance are better when higher."""
        return {name: fmean(p[name] for p in pages) if pages else None for name in METRICS}

    def predictions(self, pages: Iterable[tuple[Item, str]]) -> Iterator[tuple[str, str]]:
        """One JSON list a set: image, label (the ground truth), answer (the output)."""
        sets: dict[str, list[dict[str, str]]] = {}
        for item, markdown in pages:
            page = self._pages[item.key]
            row = {"image": item.document.name, "label": page.text, "answer": markdown}
            sets.setdefault(page.subset, []).append(row)
        for subset, rows in sets.items():
            yield f"{subset}.json", json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


def _pages(file: Path) -> Iterator[_Page]:
    rows = read_json(file, FORMAT)
    language = {"en": "english", "zh": "chinese"}.get(file.stem[-2:], file.stem)
    try:
        for row in rows:
            name = row["image"]
            beside = [file.parent / file.stem / name, file.parent / name]
            image = next((f for f in beside if f.is_file()), beside[0])
            item = Item(f"{file.stem}/{name}", image, groups={"language": (language,)})
            yield _Page(item, file.stem, _answer(row))
    except (KeyError, TypeError, StopIteration) as e:
        raise BenchmarkError(f"{file}: a row has no image or no answer ({e}); wanted is {FORMAT}") from e


def _answer(row: dict[str, Any]) -> str:
    return str(row["conversations"][1]["value"])


@hsdkit.hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "page images in English and Chinese: BLEU, METEOR, F1, precision, recall, edit distance"
    yield Component("benchmark", OceanOCR.name, summary, OceanOCRConfig, OceanOCR, NEEDS)
