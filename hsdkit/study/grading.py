"""A benchmark's view of a cell: its pages as sources, and its figures of what the cell wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hsdkit.benchmarks import Benchmark, Item, Measured, figures_of
from hsdkit.study.fingerprint import truth_digest
from hsdkit.study.records import PageRecord
from hsdkit.study.sources import Source


@dataclass(frozen=True)
class Grader:
    """`options` are those that the benchmark was built with."""

    benchmark: Benchmark
    items: tuple[Item, ...]
    options: Mapping[str, Any]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What figures depend on besides the text: benchmark, edition, options, ground truth, pages."""
        pages = [[i.key, i.page] for i in self.items]
        truth = {"truth": truth_digest(self.options)}
        return {"name": self.benchmark.name, "edition": self.benchmark.edition, **self.options, **truth, "pages": pages}

    @property
    def about(self) -> dict[str, str]:
        """Whose figures these are: name and edition of the benchmark, digest of its ground truth ("" without one)."""
        return {k: str(self.identity[k]) for k in ("name", "edition", "truth")}

    @property
    def notes(self) -> tuple[str, ...]:
        """Which figures these are, and what their reader should know."""
        name, edition, truth = self.about.values()
        said = f"benchmark {name} {edition}" + (f", ground truth sha256 {truth[:12]}" if truth else "")
        return (said, *self.benchmark.notes)

    def sources(self) -> list[Source]:
        numbers: dict[Path, set[int]] = {}
        for item in self.items:
            numbers.setdefault(item.document, set()).add(item.page)
        return [Source(path, tuple(sorted(found))) for path, found in numbers.items()]

    def graded(self, pages: Iterable[PageRecord]) -> tuple[tuple[PageRecord, ...], dict[str, float]]:
        """The pages with their groups and figures, and the figures of all; a page that failed counts as empty, as in
        the official evaluators. `draft NAME` is the main figure of the drafts as they are, over the pages that had one.
        Figures with a slash in their name (single tests) are left to `hsdkit eval`."""
        found = {(p.document, p.page): p for p in pages}
        measured: list[Measured] = []
        drafts: list[Measured] = []
        kept: list[PageRecord] = []
        for item in self.items:
            page = found.get((str(item.document), item.page))
            measured.append(self.benchmark.measure(item, page.text if page else ""))
            if page:
                groups = {k: ", ".join(v) for k, v in item.groups.items()}
                kept.append(replace(page, groups=groups, metrics=figures_of(self.benchmark, measured[-1:])))
                if page.draft is not None:
                    drafts.append(self.benchmark.measure(item, page.draft))
        of_drafts = list(figures_of(self.benchmark, drafts).items())[:1] if drafts else []
        return tuple(kept), figures_of(self.benchmark, measured) | {f"draft {name}": v for name, v in of_drafts}
