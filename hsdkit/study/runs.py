"""Reads what is to be compared: results of `run`, `eval` and `bench`, of a sweep or one of its cells, all as `Run`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hsdkit.document_result import DocumentResult
from hsdkit.errors import DocumentError, described
from hsdkit.evaluation.efficiency import decode_seconds
from hsdkit.evaluation.record import Record
from hsdkit.evaluation.store import NAME as EVALUATION
from hsdkit.evaluation.store import lines
from hsdkit.results import PageResult
from hsdkit.study.fingerprint import relevant
from hsdkit.study.records import CellRecord, PageRecord, Store
from hsdkit.totals import Totals

#: (document name, page number), or the key of a benchmark's page.
PageKey = tuple[str, int]

BENCH = "bench.json"

#: The figure of a page that is no benchmark's.
EDIT = "edit distance to plain decoding"


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page: seconds end to end and of decoding (drafting included), one a round; tokens per step; the Markdown,
    None where it was not kept. `metrics` are a benchmark's figures of this page, and `EDIT`, 0..1, where known."""

    e2e: tuple[float, ...]
    decode: tuple[float, ...]
    tokens_per_step: float
    text: str | None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """One side of a comparison. `settings` by dotted name; `inputs` are digests by file name, "" where unknown."""

    name: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    inputs: Mapping[str, str]
    pages: Mapping[PageKey, RunPage]
    failed: tuple[PageKey, ...] = ()


def load_runs(path: Path) -> dict[str, Run]:
    """The runs at `path`: one, named "", or a sweep's by the labels of their cells, a bench's by its sides. Raises
    `DocumentError`."""
    if path.is_dir():
        if (path / "sweep.json").exists():
            return {_label(r): _cell(r, path) for r in Store(path).cells() if r.pages}
        if (path / EVALUATION).exists():
            return {"": _evaluation(path / EVALUATION)}
        if (path / BENCH).exists():
            return load_runs(path / BENCH)
        return {"": _documents(str(path), _results(path))}
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError) as e:
        raise DocumentError(f"{path}: cannot be read: {e.strerror if isinstance(e, OSError) else e}") from None
    if isinstance(data, dict) and "samples" in data:
        return _bench(data, path)
    if isinstance(data, dict) and "schema" in data:
        return {"": _cell(_record(path), path)}
    return {"": _documents(str(path), [DocumentResult.load(path)])}


def _results(folder: Path) -> list[DocumentResult]:
    found = []
    for file in sorted(folder.glob("*.json")):
        if not file.name.endswith(".drafts.json") and file.name != BENCH:
            found.append(DocumentResult.load(file))
    if not found:
        raise DocumentError(f"{folder}: holds no results of `hsdkit run`, `bench`, `sweep` or `eval`")
    return found


def _documents(name: str, documents: Iterable[DocumentResult]) -> Run:
    pages: dict[PageKey, RunPage] = {}
    failed: list[PageKey] = []
    settings: dict[str, Any] = {}
    versions: dict[str, str] = {}
    inputs: dict[str, str] = {}
    for document in documents:
        source = Path(document.source).name
        settings |= document.settings
        versions |= {k: v for k, v in document.versions.items() if k != "input_sha256"}
        inputs[source] = document.versions.get("input_sha256", "")
        for page in document.pages:
            if page.error:
                failed.append((source, page.number))
            else:
                pages[source, page.number] = page_of(page)
    return Run(name, flat(relevant(settings)), versions, inputs, pages, tuple(failed))


def page_of(page: PageResult, metrics: Mapping[str, float] | None = None) -> RunPage:
    """A page of `hsdkit run` or `eval`."""
    per_step = Totals.of(page).tokens_per_step
    return RunPage((page.seconds,), (decode_seconds(page),), per_step, page.markdown, metrics or {})


def _bench(data: dict[str, Any], path: Path) -> dict[str, Run]:
    """The sides of a bench, by name. It keeps no texts, only whether outputs are the same within it."""
    try:
        settings = flat(relevant(data["settings"])) | {"rounds": data["rounds"]}
        about = {k: v for k, v in data["machine"].items() if v not in ("", None)}
        versions = data["versions"] | {k: str(v) for k, v in about.items()}
        inputs = {Path(name).name: digest for name, digest in data.get("inputs", {}).items()}
        sides: dict[str, dict[PageKey, list[dict[str, Any]]]] = {}
        for sample in data["samples"]:
            key = Path(sample["document"]).name, int(sample["page"])
            sides.setdefault(sample["side"], {}).setdefault(key, []).append(sample)
        return {
            name: Run(f"{path}, {name}", settings, versions, inputs, {k: _benched(s) for k, s in pages.items()})
            for name, pages in sides.items()
        }
    except (KeyError, TypeError, AttributeError, ValueError) as e:
        raise DocumentError(f"{path}: not a bench.json of `hsdkit bench`: {described(e)}") from None


def _benched(samples: Iterable[Mapping[str, Any]]) -> RunPage:
    """Of the tokens of a page, the first of each sequence comes from the prefill, the others from its steps."""
    rounds = list(samples)
    last = rounds[-1]
    per_step = last["emitted"] / last["steps"] if last["steps"] else 0.0
    return RunPage(tuple(s["e2e"] for s in rounds), tuple(s["decode"] for s in rounds), per_step, None)


def _record(path: Path) -> CellRecord:
    try:
        return CellRecord.from_json(path.read_bytes())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise DocumentError(f"{path}: not a cell of a sweep: {described(e)}") from None


def _cell(record: CellRecord, path: Path) -> Run:
    pages = {(Path(p.document).name, p.page): _recorded(p) for p in record.pages}
    inputs = {Path(name).name: digest for name, digest in record.inputs.items()}
    about = {k: v for k, v in record.machine.items() if v not in ("", None)}
    versions = record.versions | {k: str(v) for k, v in about.items()}
    settings = flat({"benchmark": record.benchmark} | relevant(record.settings)) | {"rounds": record.rounds}
    return Run(str(path), settings, versions, inputs, pages)


def _recorded(page: PageRecord) -> RunPage:
    e2e, decode = tuple(t.e2e for t in page.turns), tuple(t.decode for t in page.turns)
    metrics = page.metrics | ({EDIT: page.edit} if page.edit is not None else {})
    return RunPage(e2e, decode, page.emitted / page.steps if page.steps else 0.0, page.text, metrics)


def _evaluation(file: Path) -> Run:
    try:
        found = (json.loads(line) for _, line in lines(file))
        told = next(found)["evaluation"]
        records = [Record.from_json(page) for page in found]
        name = next(iter(told["sides"]))
        of_benchmark = {"benchmark": told["benchmark"], "contents": told.get("contents", {})}
        settings = flat(of_benchmark | relevant(told["sides"][name]))
    except (OSError, ValueError, KeyError, TypeError, StopIteration) as e:
        raise DocumentError(f"{file}: not the results of an evaluation: {described(e)}") from None
    pages: dict[PageKey, RunPage] = {}
    failed: list[PageKey] = []
    for record in records:
        side = record.sides[name]
        if side.error:
            failed.append((record.key, record.page))
        else:
            pages[record.key, record.page] = page_of(side.page, side.figures or _numbers(side.measured or {}))
    versions, digests = _made_with(file.parent)
    inputs = {record.key: digests.get(record.document, "") for record in records}
    return Run(str(file.parent), settings, versions, inputs, pages, tuple(failed))


def _made_with(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Versions and machine, and digests of the documents by path, of an evaluation that came to its end."""
    try:
        summary = json.loads((folder / "summary.json").read_bytes())
        made = {k: str(v) for part in ("versions", "machine") for k, v in summary.get(part, {}).items()}
        return made, {str(k): str(v) for k, v in summary.get("inputs", {}).items()}
    except (OSError, ValueError, AttributeError):
        return {}, {}


def _numbers(measured: Mapping[str, Any]) -> dict[str, float]:
    """In place of the figures that results of older versions do not hold."""
    return {k: float(v) for k, v in measured.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Options by dotted name; the name of a component by its kind."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        name = prefix.rstrip(".") if prefix and key == "name" else f"{prefix}{key}"
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {name: value}
    return out


def _label(record: CellRecord) -> str:
    return " ".join(f"{k}={v}" for k, v in record.at.items())
