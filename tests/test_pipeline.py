"""The pipeline: a failing page, drafter or observer never costs another page; drafts are made only where they pay."""

from __future__ import annotations

import gc
import json
import weakref
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from toys import TOY, Toys, ToyVerifier, blank_pdf, register_toys, toy_registry

import hsdkit
from hsdkit import hookimpl
from hsdkit.config import compose
from hsdkit.documents import Page, open_document
from hsdkit.drafting import safe_draft
from hsdkit.errors import ConfigError, DocumentError, PluginError
from hsdkit.pipeline import Pipeline
from hsdkit.plugins import Plugins
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.results import PageResult
from hsdkit.results_json import draft_to_json, dumps


def pipeline(*overrides: str, registry: Plugins | None = None) -> Pipeline:
    registry = registry or toy_registry()
    return Pipeline(compose([*TOY, *overrides], registry=registry), registry=registry)


@pytest.fixture
def three(tmp_path: Path) -> Path:
    return blank_pdf(tmp_path / "three.pdf", 3)


def test_a_document_becomes_its_pages_in_order(three: Path):
    result = pipeline("verifier.tau=0.5").parse(three)
    assert result.ok
    assert [p.number for p in result.pages] == [1, 2, 3]
    assert result.markdown == "page 1 of three.pdf\n\npage 2 of three.pdf\n\npage 3 of three.pdf\n"
    assert result.pages[0].text == "RAW page 1 of three.pdf"
    assert {(p.verifier, p.tau, p.width, p.height) for p in result.pages} == {("toy", 0.5, 200, 100)}
    assert result.settings["verifier"]["tau"] == 0.5
    assert result.versions["model"] == "toy-checkpoint"
    assert result.versions["dtype"] == "float32"
    assert all(p.draft.seconds > 0 and p.seconds >= p.draft.seconds for p in result.pages)


def test_regions_that_the_model_names_are_in_the_page_and_its_json(three: Path):
    page = pipeline("pages=2").parse(three).pages[0]
    assert page.regions == (Region(Box(1, 2, 30, 40), Label.TEXT, page.text),)
    assert json.loads(hsdkit.DocumentResult("a", (page,)).to_json())["pages"][0]["regions"][0]["box"] == [1, 2, 30, 40]


def test_boxes_in_crops_are_not_taken_for_boxes_on_the_page(three: Path, monkeypatch: pytest.MonkeyPatch):
    stage = ToyVerifier.stage
    monkeypatch.setattr(ToyVerifier, "stage", lambda self, *args: replace(stage(self, *args), name="regions"))
    assert pipeline("pages=2").parse(three).pages[0].regions == ()


def test_one_pipeline_serves_many_documents(tmp_path: Path):
    one = pipeline("pages=1")
    paths = [blank_pdf(tmp_path / f"{n}.pdf") for n in "ab"]
    assert [one.parse(p).markdown for p in paths] == ["page 1 of a.pdf\n", "page 1 of b.pdf\n"]
    assert one.drafter.drafted == [1, 1]  # type: ignore[attr-defined]


def test_components_are_built_when_first_needed_and_once(three: Path):
    p = pipeline()
    assert "target" not in vars(p)
    p.load()
    target = p.target
    p.parse(three)
    assert p.target is target


def test_the_option_dpi_wins_over_what_the_target_prefers(three: Path):
    assert pipeline("dpi=144").parse(three).pages[0].width == 400


# -- failures


def test_a_page_that_fails_is_a_result_with_its_reason(three: Path):
    pages = pipeline("verifier.fail=[2]").parse(three).pages
    assert [p.error for p in pages] == [None, "three.pdf, page 2: RuntimeError: the toy broke", None]
    assert (pages[1].finish_reason, pages[1].markdown, pages[1].width) == ("error", "", 200)
    assert pages[1].seconds > 0


def test_a_page_that_cannot_be_read_is_a_result_with_its_reason(three: Path, monkeypatch: pytest.MonkeyPatch):
    from hsdkit.pdf_file import PdfFile

    read = PdfFile.page

    def broken(self: PdfFile, index: int) -> Any:
        if index == 1:
            raise DocumentError("cannot be rendered")
        return read(self, index)

    monkeypatch.setattr(PdfFile, "page", broken)
    seen: list[tuple[Page | None, PageResult]] = []
    pages = pipeline().parse(three, on_page=lambda page, result: seen.append((page, result))).pages
    assert [p.error for p in pages] == [None, "three.pdf, page 2: cannot be rendered", None]
    assert [page is None for page, _ in seen] == [False, True, False]


def test_a_file_that_cannot_be_opened_raises(tmp_path: Path):
    with pytest.raises(DocumentError, match="no such file"):
        pipeline().parse(tmp_path / "none.pdf")


def test_a_page_that_is_not_there_raises(three: Path):
    with pytest.raises(DocumentError, match="3 pages"):
        pipeline("pages=4").parse(three)


@pytest.mark.parametrize(
    ("behave", "note"),
    [
        ("refuse", "no draft: drafter 'toy' failed: the page is upside down"),
        ("crash", "no draft: drafter 'toy' failed: ZeroDivisionError: division by zero"),
        ("garbage", "no draft: drafter 'toy' failed: TypeError: returned list instead of a Draft"),
    ],
)
def test_a_failing_drafter_is_a_note_and_an_empty_draft(three: Path, behave: str, note: str):
    for page in pipeline(f"drafter.behave={behave}").parse(three).pages:
        assert page.error is None
        assert page.draft.regions == ()
        assert note in page.notes
        assert page.markdown


def test_malformed_regions_are_left_out_and_counted(three: Path):
    page = pipeline("drafter.behave=half").parse(three).pages[0]
    assert [r.text for r in page.draft.regions] == ["drafted"]
    assert "drafter 'toy': 1 malformed regions left out" in page.notes


def test_numbers_of_numpy_in_a_draft_become_plain_ones(three: Path):
    box = Box(*np.array([0, 1, 20, 30.5], np.float32))
    region = Region(box, Label.HEADING, "drafted", level=np.int64(2), score=np.float32(0.5))
    drafter = SimpleNamespace(name="layout", draft=lambda page: Draft((region,), "layout"))
    with open_document(three) as document:
        draft, notes = safe_draft(drafter, document.page(1))
    assert json.loads(dumps(draft_to_json(draft)))["regions"][0]["box"] == [0, 1, 20, 30.5]
    assert notes == ()


def test_wrong_settings_end_the_run_instead_of_failing_every_page(three: Path, monkeypatch: pytest.MonkeyPatch):
    p = pipeline()

    def refuse(*args: Any) -> Any:
        raise ConfigError("tau=7: must be at most 1")

    monkeypatch.setattr(p.verifier, "verify", refuse)
    with pytest.raises(ConfigError, match="tau=7"):
        p.parse(three)


def test_a_component_that_lacks_its_package_says_what_to_install(three: Path):
    with pytest.raises(PluginError, match=r'pip install "hsdkit\[toys\]"'):
        pipeline("drafter=toy_missing").parse(three)


def test_a_drafter_that_is_not_used_is_not_built(three: Path):
    p = pipeline("drafter=toy_missing", "verifier.uses_draft=no")
    assert p.parse(three).ok


def test_an_empty_page_is_flagged(three: Path):
    page = pipeline("verifier.text= ", "pages=1").parse(three).pages[0]
    assert page.error is None
    assert "the model wrote no text" in page.notes


# -- streaming


def test_pages_stream_and_only_one_image_is_held(tmp_path: Path):
    images: list[weakref.ref[Image.Image]] = []
    alive: list[int] = []

    def on_page(page: Page | None, result: PageResult) -> None:
        assert page is not None
        gc.collect()
        alive.append(sum(ref() is not None for ref in images))
        images.append(weakref.ref(page.image))

    pages = pipeline().pages(blank_pdf(tmp_path / "many.pdf", 5), on_page=on_page)
    assert next(pages).number == 1
    assert len(images) == 1
    assert [p.number for p in pages] == [2, 3, 4, 5]
    assert alive == [0, 0, 0, 0, 0]


def test_text_arrives_as_it_is_written(three: Path):
    texts: list[str] = []
    pipeline("pages=1").parse(three, on_text=lambda index, text: texts.append(text))
    assert texts == ["RAW page 1 of three.pdf"]


@pytest.mark.parametrize("error", [RuntimeError("observer broke"), SystemExit("observer broke")])
def test_observers_see_every_page_and_stop_neither_the_run_nor_each_other(
    three: Path, caplog: pytest.LogCaptureFixture, error: BaseException
):
    seen: list[tuple[str, int, bool]] = []
    others: list[int] = []

    class Observer:
        @hookimpl
        def hsdkit_page_finished(self, source: str, result: PageResult) -> None:
            seen.append((source, result.number, result.error is None))
            raise error

    class Other:
        @hookimpl
        def hsdkit_page_finished(self, result: PageResult) -> None:
            others.append(result.number)

    registry = toy_registry()
    for name in ("before", "after"):  # hooks are called last in, first out
        registry.register(Other(), name)
        if name == "before":
            registry.register(Observer(), "observer")
    result = pipeline("verifier.fail=[2]", registry=registry).parse(three)
    assert [p.error is None for p in result.pages] == [True, False, True]
    assert seen == [(str(three), 1, True), (str(three), 2, False), (str(three), 3, True)]
    assert others == [1, 1, 2, 2, 3, 3]
    assert "hsdkit_page_finished of plugin 'observer' failed" in caplog.text
    assert "observer broke" in caplog.text


# -- does a draft pay?


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    """Three pages of stripes: about 750 characters' worth of ink each."""
    page = Image.new("RGB", (300, 400), "white")
    for x in range(0, 300, 6):
        for y in range(0, 400, 8):
            page.paste("black", (x, y, x + 3, y + 5))
    path = tmp_path / "printed.tif"
    page.save(path, save_all=True, append_images=[page, page])
    return path


def test_a_draft_that_costs_more_than_it_saves_is_not_made_and_the_note_says_why(printed: Path):
    p = pipeline("drafter.seconds=60", "engine.token=0.001")
    page = p.parse(printed).pages[0]
    assert p.drafter.drafted == []  # type: ignore[attr-defined]
    assert page.draft.regions == ()
    assert any("no draft: making it would take about 60 s" in note for note in page.notes)


def test_draft_always_drafts_all_the_same(printed: Path):
    p = pipeline("drafter.seconds=60", "engine.token=0.001", "draft=always", "pages=1")
    assert p.parse(printed).pages[0].draft.regions
    assert p.drafter.drafted == [1]  # type: ignore[attr-defined]


def test_a_cheap_draft_is_made(printed: Path):
    p = pipeline("drafter.seconds=0.09", "engine.token=0.000001")  # too cheap to be judged
    p.parse(printed)
    assert p.drafter.drafted == [1, 2, 3]  # type: ignore[attr-defined]


def test_what_pages_showed_decides_for_the_next(printed: Path):
    # Page 1 looks as if its draft would pay, but the draft makes decoding slower: the others go without.
    p = pipeline("drafter.seconds=3", "engine.token=0.01", "verifier.step=0.1", f"verifier.text={'x' * 600}")
    pages = p.parse(printed).pages
    assert p.drafter.drafted == [1]  # type: ignore[attr-defined]
    assert any("no draft" in note for note in pages[1].notes)


# -- the public face


def test_parse_takes_a_path_and_options(three: Path):
    register_toys()
    result = hsdkit.parse(
        three, drafter="toy", target="toy", engine="toy", verifier={"name": "toy", "tau": 0.5}, pages="2"
    )
    assert [(p.number, p.tau) for p in result.pages] == [(2, 0.5)]


def test_parse_refuses_unknown_options(three: Path):
    with pytest.raises(ConfigError, match="did you mean pages"):
        hsdkit.parse(three, page="2")


def test_every_public_name_is_there():
    for name in hsdkit.__all__:
        assert getattr(hsdkit, name)
    with pytest.raises(AttributeError, match="no_such"):
        _ = hsdkit.no_such


def test_plugins_are_told_apart_by_name():
    registry = toy_registry()
    with pytest.raises(PluginError, match="already provided"):
        registry.register(Toys(), "again")


def drafted(page_file: Path, *regions: Any) -> tuple[Draft, tuple[str, ...]]:
    drafter = SimpleNamespace(name="odd", draft=lambda page: Draft(regions, "odd"))
    with open_document(page_file) as document:
        return safe_draft(drafter, document.page(1))


@pytest.mark.parametrize(
    "odd",
    [
        {"box": None}, {"box": (0, 0, 1, 1)}, {"box": Box("a", "b", "c", "d")}, {"box": Box(5, 0, 1, 1)},  # type: ignore[arg-type]
        {"label": "text"}, {"text": None}, {"text": b"x"}, {"format": "rtf"}, {"format": []},
        {"level": "two"}, {"level": float("inf")}, {"score": []},
    ],
)  # fmt: skip
def test_a_malformed_region_costs_no_other_region(three: Path, odd: dict[str, Any]):
    good = {"box": Box(0, 0, 20, 30), "label": Label.TEXT, "text": "drafted"}
    draft, notes = drafted(three, Region(**good), Region(**good | odd))
    assert [r.text for r in draft.regions] == ["drafted"]
    assert notes == ("drafter 'odd': 1 malformed regions left out",)


def test_hints_that_make_no_sense_and_lone_surrogates_are_dropped(three: Path):
    box = Box(0, 0, 20, 30)
    regions = [Region(box, Label.HEADING, "a \ud800", level=v, score=s) for v, s in ((99, 9.0), (0, float("nan")))]
    draft, notes = drafted(three, *regions)
    assert [(r.text, r.level, r.score) for r in draft.regions] == [("a ?", None, None)] * 2
    assert notes == ()


def test_a_draft_longer_than_any_page_is_cut(three: Path):
    few = [Region(Box(0, 0, 20, 30), Label.TEXT, text) for text in ("a", "b" * 1_000_000, "c")]
    many = [Region(Box(0, 0, 20, 30), Label.TEXT, "a")] * 10_000
    for regions, kept in ((few, 1), (many, 2_000)):
        draft, (note,) = drafted(three, *regions)
        assert len(draft.regions) == kept
        assert f"its last {len(regions) - kept} regions left out" in note


def test_a_drafter_that_exits_or_has_no_name_costs_its_draft_only(three: Path):
    def leave(page: Page) -> Draft:
        raise SystemExit("no licence\nfound")

    with open_document(three) as document:
        draft, notes = safe_draft(SimpleNamespace(draft=leave), document.page(1))
    assert draft.regions == ()
    assert notes == ("no draft: drafter 'SimpleNamespace' failed: SystemExit: no licence found",)
