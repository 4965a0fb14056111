"""OmniDocBench (CVPR 2025; v1.5 and v1.6): Markdown of page images against annotated blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import hsdkit
from hsdkit.benchmarks import Figures, Item, Measured, existing, read_json
from hsdkit.components import Component, Requirement
from hsdkit.errors import BenchmarkError

if TYPE_CHECKING:
    from hsdkit_plugins.benchmarks._omnidocbench.cdm import CDM
    from hsdkit_plugins.benchmarks._omnidocbench.page import PageScores

FORMAT = "OmniDocBench: a JSON list of pages with `layout_dets`, or the folder that holds it"
#: Pages of each edition's whole set.
PAGES = {"1.5": 1355, "1.6": 1651}
NEEDS = tuple(Requirement(module, "hsdkit[eval]") for module in ("apted", "bs4", "lxml", "pylatexenc", "scipy"))


@dataclass(frozen=True)
class OmniDocBenchConfig:
    """path: OmniDocBench.json, or the folder that holds it.
    images: folder of the page images; by default `images` beside the JSON, or the JSON's own folder.
    version: the edition of the data, 1.5 or 1.6; figures of the two are not comparable.
    cdm: folder of the official evaluator (a clone of opendatalab/OmniDocBench), whose CDM is then run on formulas; it
    needs LaTeX, ImageMagick and node. Without it formulas are compared by edit distance.
    cdm_python: the Python that has the evaluator's requirements."""

    path: str = ""
    images: str = ""
    version: Literal["1.5", "1.6"] = "1.5"
    cdm: str = ""
    cdm_python: str = "python3"


class OmniDocBench:
    """Pages are measured one by one as `quick_match` of the evaluator's end-to-end task does."""

    name = "omnidocbench"

    def __init__(self, config: OmniDocBenchConfig) -> None:
        self._config = config

    @property
    def edition(self) -> str:
        return f"v{self._config.version}"

    @property
    def notes(self) -> tuple[str, ...]:
        notes = []
        if not self._config.cdm:
            notes.append(
                "formulas are compared by edit distance: CDM, which the official Overall takes, needs a renderer "
                "(benchmark.cdm=FOLDER of the official evaluator); overall_formula_edit has 1 - formula_edit instead"
            )
        if self._config.version == "1.6":
            notes.append(
                "v1.6 is measured by the rules of the evaluator of v1.5, and its own may differ: for figures to "
                "publish give it the folder predictions/"
            )
        return tuple(notes)

    @cached_property
    def _pages(self) -> dict[str, dict[str, Any]]:
        pages = read_json(self._file, FORMAT)
        if not isinstance(pages, list) or not all(isinstance(p, dict) and "layout_dets" in p for p in pages):
            raise BenchmarkError(f"{self._file}: not the format of {FORMAT}")
        for version, size in PAGES.items():
            if len(pages) == size and version != self._config.version:
                raise BenchmarkError(
                    f"{self._file}: has the {size} pages of v{version}, not those of {self.edition}: "
                    f"benchmark.version={version}"
                )
        try:
            return {Path(page["page_info"]["image_path"]).name: page for page in pages}
        except (KeyError, TypeError) as e:
            raise BenchmarkError(f"{self._file}: a page has no page_info.image_path; wanted is {FORMAT}") from e

    @cached_property
    def _file(self) -> Path:
        path = existing(self._config.path, FORMAT)
        if path.is_file():
            return path
        found = [path / "OmniDocBench.json"] if (path / "OmniDocBench.json").is_file() else sorted(path.glob("*.json"))
        if len(found) != 1:
            names = ", ".join(f.name for f in found) or "none"
            raise BenchmarkError(f"path={path}: which JSON file holds the ground truth? there: {names}")
        return found[0]

    def items(self) -> Sequence[Item]:
        pages = self._pages
        _ = self._cdm  # what it lacks is said before anything is decoded
        folders = [Path(self._config.images)] if self._config.images else [self._file.parent / "images"]
        folders.append(self._file.parent)
        return [
            Item(key, next((f / key for f in folders if (f / key).is_file()), folders[0] / key), groups=_groups(page))
            for key, page in pages.items()
        ]

    def measure(self, item: Item, markdown: str) -> Measured:
        from hsdkit_plugins.benchmarks._omnidocbench.ground_truth import truth
        from hsdkit_plugins.benchmarks._omnidocbench.page import score_page

        try:
            expected = truth(self._pages[item.key])
        except (KeyError, TypeError, ValueError) as e:
            raise BenchmarkError(f"{self._file}: the blocks of {item.key} are not as {FORMAT} has them: {e}") from e
        return _measured(score_page(expected, markdown), self._cdm)

    @cached_property
    def _cdm(self) -> CDM | None:
        from hsdkit_plugins.benchmarks._omnidocbench.cdm import CDM

        return CDM(Path(self._config.cdm), self._config.cdm_python) if self._config.cdm else None

    def summarise(self, pages: Sequence[Measured], group: bool = False) -> Figures:
        """As the evaluator: edits are summed up over a page and averaged over pages; TEDS and CDM are averaged over
        all tables and formulas, in a group first over those of a page."""
        text, order, formula = (_mean([_share(p[k]) for p in pages if p[k]]) for k in ("text", "order", "formula"))
        table, structure = (_mean_of([[t[i] for t in p["table"]] for p in pages], group) for i in (0, 1))
        cdm = _mean_of([p["cdm"] for p in pages], group) if self._config.cdm else None
        alike = [None if share is None else 1 - share for share in (text, formula)]
        parts = [alike[0], table, cdm if self._config.cdm else alike[1]]
        whole = None if any(p is None for p in parts) else 100 * fmean(p for p in parts if p is not None)
        figures: Figures = {"overall" if self._config.cdm else "overall_formula_edit": whole, "text_edit": text}
        if self._config.cdm:
            figures["formula_cdm"] = None if cdm is None else 100 * cdm
        return figures | {
            "formula_edit": formula,
            "table_teds": None if table is None else 100 * table,
            "table_teds_structure": None if structure is None else 100 * structure,
            "reading_order_edit": order,
        }

    def predictions(self, pages: Iterable[tuple[Item, str]]) -> Iterator[tuple[str, str]]:
        """One file a page, named as its image without the last four characters, as the evaluator looks for it."""
        return ((f"{item.key[:-4]}.md", markdown) for item, markdown in pages)


def _groups(page: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    attributes = page["page_info"].get("page_attribute") or {}
    named = {"document": "data_source", "language": "language", "layout": "layout", "issue": "special_issue"}
    found = {}
    for group, attribute in named.items():
        values = attributes.get(attribute) or ()
        found[group] = tuple(map(str, values)) if isinstance(values, (list, tuple)) else (str(values),)
    return {group: values for group, values in found.items() if values}


def _measured(scores: PageScores, cdm: CDM | None) -> Measured:
    """Edits as [edits, length of the longer text], tables as [TEDS, structure-only TEDS]."""
    return {
        "text": [[t.edits, t.length] for t in scores.texts],
        "formula": [[f.edits.edits, f.edits.length] for f in scores.formulas],
        "cdm": cdm.scores([(f.expected, f.predicted) for f in scores.formulas]) if cdm else None,
        "table": [[t.teds, t.structure] for t in scores.tables],
        "order": [[scores.order.edits, scores.order.length]] if scores.order else [],
    }


def _share(edits: Sequence[Sequence[int]]) -> float:
    return sum(e for e, _ in edits) / sum(length for _, length in edits)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _mean_of(pages: Sequence[Sequence[float]], by_page: bool) -> float | None:
    if by_page:
        return _mean([fmean(values) for values in pages if values])
    return _mean([value for values in pages for value in values])


@hsdkit.hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "page images of nine kinds of documents: text, formulas, tables, reading order, the overall score"
    yield Component("benchmark", OmniDocBench.name, summary, OmniDocBenchConfig, OmniDocBench, NEEDS)
