"""Runs a sweep: every cell that has no record yet, models kept while they serve the next cell, failures as records."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from hsdkit.bench import BenchResult, Side, VerifierSide, measure
from hsdkit.config import Choice, RunConfig
from hsdkit.errors import ConfigError, HsdkitError, cause
from hsdkit.pipeline import Pipeline
from hsdkit.plugins import Plugins, plugins
from hsdkit.study.fingerprint import fingerprint, input_digests
from hsdkit.study.grading import Grader
from hsdkit.study.measured import PageKey, page_records
from hsdkit.study.plan import Plan
from hsdkit.study.probe import drift, probe, shortened
from hsdkit.study.records import CellRecord, PageRecord, Store
from hsdkit.study.side import StudySide
from hsdkit.study.sources import Source, open_all
from hsdkit.versions import machine

#: Names of the sides: what is studied, and what it is compared with.
CELL, BASELINE = "cell", "baseline"


@dataclass(frozen=True, slots=True)
class Options:
    """rounds: how often every page is measured.
    baseline: the verifier that speed and text are compared with.
    paired: measure the baseline within every cell, in turn with it, instead of once for all cells of a target: slower,
        and what the machine does meanwhile hits both sides alike.
    """

    rounds: int = 3
    baseline: str = "autoregressive"
    paired: bool = False


class Watch(Protocol):
    """Is told how a sweep goes on."""

    def cell(self, at: dict[str, str]) -> None:
        """A cell begins."""

    def turn(self, what: str, round_: int, document: str, page: int) -> None:
        """A page begins to be measured; `what` is `cell` or `baseline`."""

    def finished(self, record: CellRecord, done: int, total: int, left: float | None) -> None:
        """A cell has its record: `done` of `total` have one now; `left` seconds are expected for the rest."""


class Sweep:
    """A plan on documents, or the pages of a benchmark, with its results in `store`. Nothing is loaded before a cell
    needs it."""

    def __init__(
        self,
        plan: Plan,
        documents: Sequence[Path] | Grader,
        store: Store,
        options: Options,
        registry: Plugins | None = None,
    ) -> None:
        self.plan, self.store, self.options = plan, store, options
        self._grader = documents if isinstance(documents, Grader) else None
        self.sources = documents.sources() if isinstance(documents, Grader) else [Source(path) for path in documents]
        self._registry = registry or plugins()
        self._pipeline: Pipeline | None = None
        self._baselines: dict[str, CellRecord] = {}
        self._plain_seconds = 0.0  # spent on baselines so far
        self._broken: dict[str, str] = {}  # targets and engines that cannot be loaded, with the reason
        self.inputs = input_digests(s.path for s in self.sources)
        try:
            self._registry.component("verifier", options.baseline)
        except HsdkitError as e:
            raise ConfigError(f"baseline={options.baseline}: {e}") from None
        self.keys = [self._key(cell.config, cell.at) for cell in plan.cells]

    def at(self, index: int) -> dict[str, str]:
        return dict(zip(self.plan.keys, self.plan.cells[index].at, strict=True))

    def write_plan(self, about: dict[str, Any]) -> Path:
        """Raises `OutputError`."""
        cells = [(key, self.at(i)) for i, key in enumerate(self.keys)]
        return self.store.plan(self.plan.keys, cells, about)

    def run(self, watch: Watch, check: Callable[[], None] = lambda: None) -> Iterator[CellRecord]:
        """Measure what has no record that is done; yields each new record after it is stored. Raises KeyboardInterrupt
        (`check` may raise it, too), and `OutputError` when a record cannot be written."""
        todo = self.todo()
        total, left = len(self.plan.cells), len(todo)
        spent: list[float] = []
        try:
            for index in todo:
                check()
                watch.cell(self.at(index))
                start, before = time.perf_counter(), self._plain_seconds
                record = self._cell(index, watch, check)
                if record.status != "invalid":
                    # The baseline is paid once: the cells to come will not wait for it.
                    spent.append(time.perf_counter() - start - (self._plain_seconds - before))
                self.store.save("cells", record)
                left -= 1
                watch.finished(record, total - left, total, left * sum(spent) / len(spent) if spent and left else None)
                yield record
        finally:
            self._close()

    def todo(self) -> list[int]:
        """Cells without a finished record: those that cannot run, then those of one target and engine together."""
        groups: dict[str, list[int]] = {"": []}
        seen: set[str] = set()
        for i, cell in enumerate(self.plan.cells):
            record = self.store.load("cells", self.keys[i])
            if self.keys[i] not in seen and (record is None or not record.done):
                seen.add(self.keys[i])
                groups.setdefault(_model(cell.config) if cell.config else "", []).append(i)
        return [i for group in groups.values() for i in group]

    def _key(self, config: RunConfig | None, at: Sequence[str]) -> str:
        settings = config.settings() if config else {"invalid": list(at)}
        return fingerprint(settings, self.inputs, benchmark=self._benchmark, **asdict(self.options))

    @property
    def _benchmark(self) -> dict[str, Any] | None:
        return self._grader.identity if self._grader else None

    def _cell(self, index: int, watch: Watch, check: Callable[[], None]) -> CellRecord:
        cell, start = self.plan.cells[index], time.perf_counter()
        blank = CellRecord(self.keys[index], self.at(index), "failed", measured=_now(), inputs=self.inputs)
        if cell.config is None:
            return replace(blank, status="invalid", reason=cell.reason)
        blank = replace(blank, settings=cell.config.settings(), rounds=self.options.rounds)
        try:
            if reason := self._broken.get(_model(cell.config)):
                return replace(blank, reason=reason)
            pipeline = self._pipeline_for(cell.config)
            record = self._measured(blank, pipeline, cell.config, watch, check)
        except Exception as e:  # whatever a cell does is its record, the others go on
            check()  # a swallowed interrupt looks like a failure
            record = replace(blank, reason=" ".join(cause(e).split()))
        return replace(record, seconds=time.perf_counter() - start)

    def _measured(
        self, blank: CellRecord, pipeline: Pipeline, config: RunConfig, watch: Watch, check: Callable[[], None]
    ) -> CellRecord:
        base_config = self._baseline_config(config)
        side = StudySide(VerifierSide(CELL, pipeline.verifier, pipeline.target, pipeline.engine))
        about = replace(blank, versions=pipeline.versions(), machine=machine())
        plainly: tuple[str, ...] = ()
        if self.options.paired:
            base_pipeline = pipeline.with_config(base_config)
            plain = VerifierSide(BASELINE, base_pipeline.verifier, pipeline.target, pipeline.engine)
            result, unopened = self._bench([plain, side], pipeline, CELL, watch, check)
            own = [s for s in result.samples if s.side == BASELINE]
            baseline = _by_page(page_records(own, pipeline.target.clean, {}, {}, {}))
        else:
            found = self._baseline(blank, pipeline.with_config(base_config), base_config, watch, check)
            if not found.pages:
                return replace(about, reason=f"baseline: {found.reason}")
            baseline, plainly = _by_page(found.pages), found.failures
            before = self._probe(pipeline, base_config)
            result, unopened = self._bench([side], pipeline, CELL, watch, check)
            probes = [*before, *self._probe(pipeline, base_config)]
            about = replace(about, probe=tuple(probes), drift=drift(found.probe, probes))
        samples = [s for s in result.samples if s.side == CELL]
        pages = page_records(samples, pipeline.target.clean, baseline, side.drafts, side.fates) if baseline else ()
        if self._grader and pages:
            pages, metrics = self._grader.graded(pages)
            about = replace(about, benchmark=self._grader.about, metrics=metrics, notes=self._grader.notes)
        record = _finished(about, pages, result, unopened)
        only_plainly = [f"baseline: {f}" for f in plainly if f not in record.failures]
        if only_plainly and record.pages:
            record = replace(record, status="partial", failures=(*record.failures, *only_plainly))
        return record

    def _baseline(
        self, blank: CellRecord, pipeline: Pipeline, config: RunConfig, watch: Watch, check: Callable[[], None]
    ) -> CellRecord:
        """The record of plain decoding for this target and input: of this sweep, of an earlier one, or made now."""
        settings = {k: v for k, v in config.settings().items() if k not in ("drafter", "draft", "reuse_drafts")}
        key = fingerprint(settings, self.inputs, benchmark=self._benchmark, rounds=self.options.rounds)
        if key not in self._baselines:
            record = self.store.load("baselines", key)
            if record is None or not record.done:
                start = time.perf_counter()
                about = replace(blank, key=key, at={}, settings=settings, versions=pipeline.versions())
                side = VerifierSide(BASELINE, pipeline.verifier, pipeline.target, pipeline.engine)
                before = self._probe(pipeline, config)
                result, unopened = self._bench([side], pipeline, BASELINE, watch, check)
                about = replace(about, probe=(*before, *self._probe(pipeline, config)), machine=machine())
                pages = page_records(result.samples, pipeline.target.clean, {}, {}, {})
                record = _finished(replace(about, measured=_now()), pages, result, unopened)
                self.store.save("baselines", record)
                self._plain_seconds += time.perf_counter() - start
            self._baselines[key] = record
        return self._baselines[key]

    def _probe(self, pipeline: Pipeline, baseline: RunConfig) -> list[float]:
        """Seconds, one or none."""
        choice = replace(baseline.verifier, options=shortened(baseline.verifier.options))
        seconds = probe(pipeline.with_config(replace(baseline, verifier=choice)), self.sources)
        return [] if seconds is None else [seconds]

    def _bench(
        self, sides: Sequence[Side], pipeline: Pipeline, what: str, watch: Watch, check: Callable[[], None]
    ) -> tuple[BenchResult, list[str]]:
        def on_turn(round_: int, document: str, page: int) -> None:
            watch.turn(what, round_, document, page)

        with ExitStack() as stack:
            documents, unopened = open_all(pipeline, self.sources, stack)
            result = measure(documents, sides, pipeline.draft, pipeline.target, self.options.rounds, on_turn, check)
        if result.interrupted:
            raise KeyboardInterrupt
        return result, unopened

    def _pipeline_for(self, config: RunConfig) -> Pipeline:
        """A loaded pipeline; the model stays where it serves this cell too, else it goes before the next is loaded."""
        old = self._pipeline
        if old is None:
            new = Pipeline(config, registry=self._registry)
        else:
            new = old.with_config(config)
            if "drafter" not in new.__dict__:
                _close_drafter(old)
        old = self._pipeline = None
        try:
            new.load()
        except HsdkitError as e:
            if "engine" not in new.__dict__ or _model_fails(new):
                self._broken[_model(config)] = str(e)
            raise
        self._pipeline = new
        return new

    def _baseline_config(self, config: RunConfig) -> RunConfig:
        """The cell with the baseline as verifier; the options that both have are the cell's. tau is left at 1."""
        name = self.options.baseline
        component = self._registry.component("verifier", name)
        shared = {f.name for f in fields(component.config)} & {"max_new_tokens", "stop_loops"}
        own = config.verifier.options
        options = component.config(**{k: getattr(own, k) for k in shared if hasattr(own, k)})
        composed = config.composed | {"verifier": {"name": name} | asdict(options)}
        return replace(config, verifier=Choice(name, options), composed=composed)

    def _close(self) -> None:
        if self._pipeline is not None:
            _close_drafter(self._pipeline)
            self._pipeline = None


def _finished(
    about: CellRecord, pages: tuple[PageRecord, ...], result: BenchResult, unopened: Sequence[str]
) -> CellRecord:
    failures = [*unopened]
    for f in result.failures:
        where, why = f"{Path(f.document).name}, page {f.page}", " ".join(f.reason.split())
        failures.append(why if why.startswith(where) else f"{where}: {why}")
    missing = f"no page could be measured: {failures[0]}" if failures else "no page was measured"
    return replace(
        about,
        pages=pages,
        status=("partial" if failures else "ok") if pages else "failed",
        reason="" if pages else missing,
        failures=tuple(failures),
        notes=(*about.notes, *result.notes),
    )


def _by_page(pages: Sequence[PageRecord]) -> dict[PageKey, PageRecord]:
    return {(p.document, p.page): p for p in pages}


def _model(config: RunConfig) -> str:
    return repr((config.composed["target"], config.composed["engine"]))


def _model_fails(pipeline: Pipeline) -> bool:
    """Whether it is the model that cannot be loaded, and not the drafter."""
    try:
        pipeline.engine.load()
    except HsdkitError:
        return True
    return False


def _close_drafter(pipeline: Pipeline) -> None:
    if "drafter" in pipeline.__dict__ and (close := getattr(pipeline.drafter, "close", None)):
        with contextlib.suppress(Exception):
            close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
