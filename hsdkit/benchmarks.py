"""What a benchmark is: pages to parse, what is measured of each, and how many pages become figures.

A plugin brings one as a component of the kind `benchmark`; `hsdkit eval benchmark=NAME path=...` runs it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from hsdkit.errors import BenchmarkError

#: What was found of one page: plain values that JSON can hold.
Measured = Mapping[str, Any]
#: Names and values of metrics; None where the pages hold nothing that the metric looks at.
Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Item:
    """One page to parse: page `page` (from 1) of the file `document`.

    `key` names it in results and is unique in its benchmark. `groups` are what results are told apart by, such as
    `{"document": ("newspaper",), "language": ("english",)}`.
    """

    key: str
    document: Path
    page: int = 1
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Benchmark(Protocol):
    """One benchmark over its ground truth. `edition` says which data and rules (`v1.5`): figures of two editions are
    never compared. `notes` say in plain words what a reader of its figures should know."""

    name: str

    @property
    def edition(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    def items(self) -> Sequence[Item]:
        """All pages, in the order of the ground truth. Raises `BenchmarkError` when it cannot be read."""
        ...

    def measure(self, item: Item, markdown: str) -> Measured:
        """What is found of one page, from which `summarise` makes figures. A page that failed is measured as ""."""
        ...

    def summarise(self, pages: Sequence[Measured], group: bool = False) -> Figures:
        """The figures over pages, the main one first. `group`: these are the pages of one group, not all of them."""
        ...

    def predictions(self, pages: Iterable[tuple[Item, str]]) -> Iterator[tuple[str, str]]:
        """(relative path, content) of the files that the official evaluator reads, from each page and its Markdown."""
        ...


def read_json(path: Path, format: str) -> Any:
    """The content of a ground truth file. Raises `BenchmarkError` that names file and format."""
    try:
        return json.loads(path.read_bytes())
    except OSError as e:
        raise BenchmarkError(f"{path}: cannot be read: {e.strerror}; path= names the ground truth of {format}") from e
    except ValueError as e:
        raise BenchmarkError(f"{path}: is no JSON ({e}); path= names the ground truth of {format}") from e


def existing(path: str, format: str) -> Path:
    """`path` if there is such a file or folder. Raises `BenchmarkError` that says what is wanted."""
    if not path:
        raise BenchmarkError(f"path= is missing: the ground truth of {format}")
    if not Path(path).exists():
        raise BenchmarkError(f"path={path}: no such file or folder; wanted is the ground truth of {format}")
    return Path(path)


def figures_of(benchmark: Benchmark, pages: Sequence[Measured]) -> dict[str, float]:
    """The figures that there are, but for those of single tests, which have a slash in their name."""
    return {k: float(v) for k, v in benchmark.summarise(pages).items() if v is not None and "/" not in k}
