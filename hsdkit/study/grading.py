"""A benchmark's view of a cell: its pages as sources, and its figures of what the cell wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hsdkit.benchmarks import Benchmark, Item
from hsdkit.study.records import PageRecord
from hsdkit.study.sources import Source


@dataclass(frozen=True)
class Grader:
    """`options` are those that the benchmark was built with."""

    benchmark: Benchmark
    items: tuple[Item, ...]
    options: Mapping[str, Any]

    @property
    def identity(self) -> dict[str, Any]:
        """What figures depend on besides the text: benchmark, edition, options, pages."""
        pages = [[i.key, i.page] for i in self.items]
        return {"name": self.benchmark.name, "edition": self.benchmark.edition, **self.options, "pages": pages}

    def sources(self) -> list[Source]:
        numbers: dict[Path, set[int]] = {}
        for item in self.items:
            numbers.setdefault(item.document, set()).add(item.page)
        return [Source(path, tuple(sorted(found))) for path, found in numbers.items()]

    def graded(self, pages: Iterable[PageRecord]) -> tuple[tuple[PageRecord, ...], dict[str, float]]:
        """The pages with their groups, and the figures of all; a page that failed counts as empty, as in the official
        evaluators. Figures with a slash in their name (single tests) are left to `hsdkit eval`."""
        found = {(p.document, p.page): p for p in pages}
        measured: list[Any] = []
        kept: dict[tuple[str, int], PageRecord] = {}
        for item in self.items:
            key = str(item.document), item.page
            page = found.get(key)
            measured.append(self.benchmark.measure(item, page.text if page else ""))
            if page:
                kept[key] = replace(page, groups={k: ", ".join(v) for k, v in item.groups.items()})
        figures = self.benchmark.summarise(measured)
        return tuple(kept.values()), {k: float(v) for k, v in figures.items() if v is not None and "/" not in k}
