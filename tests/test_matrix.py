"""Every drafter with every target, end to end on one page: real or recorded drafts, tiny random checkpoints.

The registry says who takes part, so a new component is in it. What a drafter needs to draft here (its options, its
library's recorded JSON) and what a target needs (a tiny checkpoint) is known to `Drafts` and `Targets`, which know
nothing of each other: no pair has code of its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from document_models import DOCUMENT_MODELS
from heavy import make_ready
from models import ARCHITECTURES, make
from models_deepseek import MAKE
from models_dots import make_dots

from hsdkit.components import Component, Kind
from hsdkit.config import compose
from hsdkit.documents import Page, open_document
from hsdkit.draft_files import SavedDraft, save_drafts
from hsdkit.drafting import safe_draft
from hsdkit.pipeline import Pipeline
from hsdkit.plugins import plugins
from hsdkit.protocols import Drafter
from hsdkit.regions import Draft, Label
from hsdkit.results import PageResult
from hsdkit.workers import Library, WorkerOptions, environments
from hsdkit.workers import drafter as workers

READER = workers.reader
REPORT = Path(__file__).parent.parent / "examples" / "report.pdf"
NATIVE = Path(__file__).parent / "data" / "native"
#: Makers of tiny checkpoints by the target's name; `tiny` is its own.
CHECKPOINTS: dict[str, Callable[[Path], Path]] = {
    **{name: (lambda folder, name=name: make(name, folder)) for name in (*ARCHITECTURES, *DOCUMENT_MODELS)},
    **MAKE,
    "dots_ocr": make_dots,
}
#: Options without which a component can do nothing here, or takes long.
DRAFTER_OPTIONS: dict[str, list[str]] = {
    "noise": ["drafter.base=pdftext", "drafter.recognition.char_error_rate=0.05", "drafter.layout.jitter=0.02"],
    "replay": ["drafter.path=saved.drafts.json"],
}
TARGET_OPTIONS = {
    "deepseek_ocr": ["target.mode=tiny"],
    "deepseek_ocr2": ["target.mode=small"],
    "unlimited_ocr": ["target.mode=base"],
}
#: Short outputs, fixed widths: nothing is measured, so that a pair takes a fraction of a second.
RUN = ["draft=always", "pages=1", "dpi=90", "engine.threads=1", "verifier.max_new_tokens=12"]


def names(kind: Kind) -> list[str]:
    """Components of that kind that come with hsdkit."""
    return [c.name for c, plugin in plugins().components(kind) if plugin.package == "hsdkit"]


class Drafts:
    """The page's draft by each drafter, made once; a library that lives elsewhere says what it said when recorded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = cache(self._made)

    def _made(self, name: str) -> Draft:
        component = plugins().component("drafter", name)
        if component.missing:
            pytest.skip(f"drafter {name} is not installed: {component.install}")
        with open_document(REPORT, pages=1, dpi=90) as document:
            page = document.page(1)
            draft, notes = safe_draft(self._drafter(component, page), page)
        assert not notes, notes
        assert draft.readable
        return draft

    def _drafter(self, component: Component, page: Page) -> Drafter:
        if component.name == "replay":
            save_drafts(
                "saved.drafts.json", [SavedDraft(page.source, 1, page.width, page.height, self.made("pdftext"))]
            )
        chosen = compose([f"drafter={component.name}", *DRAFTER_OPTIONS.get(component.name, [])]).drafter
        if component.environment is not None and environments.state(component.environment) != "ready":
            make_ready(component.environment)
        drafter: Drafter = plugins().build("drafter", chosen.name, chosen.options)
        return drafter

    def recorded(self, library: Library, config: WorkerOptions) -> workers.Reader:
        """The worker of a library, with a script that answers as the library did."""
        return READER(replace(library, script=self._worker(library.environment.name)), config)

    def _worker(self, name: str) -> Path:
        """A worker script that answers with what the library said when it was recorded."""
        recorded = sorted([*NATIVE.glob(f"{name}.json"), *NATIVE.glob(f"{name}_*.json")])
        found = [p for p in recorded if "_server" not in p.stem]
        assert found, f"no recorded JSON of drafter {name}: tests/data/native/{name}.json"
        script = self.folder / f"{name}_recorded.py"
        script.write_text(
            "import json\n\ndef load(options):\n"
            f"    native = json.load(open({str(found[0])!r}, encoding='utf-8'))\n"
            "    return lambda path: native\n"
        )
        return script


class Targets:
    """A pipeline for each target, loaded once, and what it writes without a draft."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loaded = cache(self._loaded)
        self.plain = cache(self._plain)

    def _loaded(self, name: str) -> Pipeline:
        return Pipeline(compose([*self._options(name), "drafter=pdftext", "verifier=autoregressive"]))

    def _plain(self, name: str) -> PageResult:
        [page] = self.loaded(name).parse(REPORT).pages
        assert page.error is None
        return page

    def _options(self, name: str) -> list[str]:
        options = [*RUN, f"target={name}", *TARGET_OPTIONS.get(name, [])]
        if name == "tiny":
            return options
        assert name in CHECKPOINTS, (
            f"no tiny checkpoint of target {name}: add a maker of that name to tests/*models*.py"
        )
        folder = self.folder / name
        if not folder.exists():
            folder.mkdir()
            CHECKPOINTS[name](folder)
        return [*options, f"target.model={folder}"]

    def decode(self, name: str, drafter: Drafter) -> PageResult:
        """The page, read in both stages from that drafter's draft."""
        options = ["verifier=hsd", "verifier.stage1=always", "verifier.max_packed=8", "drafter=pdftext"]
        pipeline = Pipeline(compose([*self._options(name), *options]))
        loaded = self.loaded(name)
        vars(pipeline).update(target=loaded.target, engine=loaded.engine, drafter=drafter)
        [page] = pipeline.parse(REPORT).pages
        return page


class Once:
    """A drafter that says what it said before: two regions, one of them a table if there is one."""

    def __init__(self, draft: Draft) -> None:
        self.name = draft.drafter
        tables = [r for r in draft.readable if r.label is Label.TABLE][:1]
        others = [r for r in draft.readable if r.label is not Label.TABLE][: 2 - len(tables)]
        self._draft = replace(draft, regions=tuple(others + tables))

    def draft(self, page: Page) -> Draft:
        return self._draft


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("matrix")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HSDKIT_HOME", str(folder / "home"))
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def drafts(home: Path) -> Iterator[Drafts]:
    made = Drafts(home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "reader", made.recorded)
        yield made


@pytest.fixture(scope="module")
def targets(home: Path) -> Targets:
    return Targets(home)


@pytest.mark.parametrize("target", names("target"))
@pytest.mark.parametrize("drafter", names("drafter"))
def test_every_drafter_works_with_every_target(drafter: str, target: str, drafts: Drafts, targets: Targets):
    draft = drafts.made(drafter)
    page = targets.decode(target, Once(draft))
    assert page.error is None
    assert page.draft.drafter == draft.drafter
    assert [stage.name for stage in page.stages] == ["regions", "page"]
    assert page.stages[0].region_index == tuple(range(len(page.draft.regions)))
    written, plain = page.stages[-1].sequences[0], targets.plain(target).stages[-1].sequences[0]
    assert written.tokens == plain.tokens, "the draft changed what the target writes"
    assert any(step.nodes for step in written.steps), "nothing was drafted"
