"""Saving drafts and replaying them; files that are no drafts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hsdkit_plugins.drafters.replay import Replay, ReplayConfig
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hsdkit.documents import Page
from hsdkit.draft_files import SavedDraft, load_drafts, save_drafts
from hsdkit.errors import ConfigError, DrafterError, OutputError
from hsdkit.regions import Box, Draft, Label, Region

REGIONS = (
    Region(Box(1, 2, 30, 40.5), Label.HEADING, "On «pages» — 頁", level=2, score=0.5),
    Region(Box(5, 50, 90, 80), Label.TABLE, "<table><tr><td>1</td></tr></table>", "html"),
)
SAVED = SavedDraft("a.pdf", 3, 100, 200, Draft(REGIONS, "pdftext", 0.25, ("a note",)))


def page(number: int = 3, size: tuple[int, int] = (100, 200), source: str = "a.pdf") -> Page:
    return Page(number, Image.new("RGB", size), source)


def test_drafts_come_back_as_they_were_saved(tmp_path: Path):
    save_drafts(tmp_path / "d.json", [SAVED])
    assert load_drafts(tmp_path / "d.json") == {("a.pdf", 3): SAVED}
    assert [p.name for p in tmp_path.iterdir()] == ["d.json"]


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)
numbers = st.integers(0, 10_000).map(float)


@given(st.lists(st.tuples(texts, st.sampled_from(list(Label)), numbers, numbers), max_size=5), texts)
def test_any_draft_survives(tmp_path_factory: pytest.TempPathFactory, drawn, name):
    regions = tuple(Region(Box(x, y, x + 1, y + 2), label, text) for text, label, x, y in drawn)
    saved = SavedDraft(name, 1, 10, 10, Draft(regions))
    path = tmp_path_factory.mktemp("drafts") / "d.json"
    save_drafts(path, [saved])
    assert load_drafts(path) == {(name, 1): saved}


def test_text_that_is_no_unicode_does_not_cost_the_file(tmp_path: Path):
    broken = replace(SAVED, draft=Draft((replace(REGIONS[0], text="lone \ud800 surrogate"),)))
    save_drafts(tmp_path / "d.json", [broken])
    assert load_drafts(tmp_path / "d.json")["a.pdf", 3] == broken


def test_replay_gives_the_draft_of_that_page_scaled_to_its_size(tmp_path: Path):
    save_drafts(tmp_path / "a.drafts.json", [SAVED])
    for path in (tmp_path / "a.drafts.json", tmp_path):
        drafter = Replay(ReplayConfig(str(path)))
        assert drafter.draft(page()).regions == REGIONS
        doubled = drafter.draft(page(size=(200, 400)))
        assert doubled.regions[0].box == Box(2, 4, 60, 81)
        assert doubled.drafter == "pdftext"
        with pytest.raises(DrafterError, match=r"a\.pdf, page 4: no draft of it in "):
            drafter.draft(page(4))


def test_replay_needs_a_path():
    with pytest.raises(ConfigError, match=r"drafter\.path=PATH"):
        Replay(ReplayConfig())


def spoiled(path: Path, **changes) -> str:
    """The message for a file of drafts in which fields (by dotted path) have been replaced."""
    save_drafts(path, [SAVED])
    content = json.loads(path.read_text())
    for where, value in changes.items():
        *parents, last = (int(k) if k.isdigit() else k for k in where.split("__"))
        target = content
        for key in parents:
            target = target[key]
        if value is None and last != "score":
            del target[last]
        else:
            target[last] = value
    path.write_text(json.dumps(content))
    with pytest.raises(DrafterError) as caught:
        load_drafts(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("where", "value", "expected"),
    [
        ("format", "other", "is not a file of drafts"),
        ("version", 7, "version 7 of the format"),
        ("drafts", {}, "drafts must be a list"),
        ("drafts__0__page", 0, "drafts[0].page must be a whole number from 1, not 0"),
        ("drafts__0__source", None, "drafts[0].source is missing"),
        ("drafts__0__regions__1__text", 5, "drafts[0].regions[1].text must be text, not 5"),
        ("drafts__0__regions__0__label", "poem", "drafts[0].regions[0].label must be one of title, heading"),
        ("drafts__0__regions__0__format", "rtf", "drafts[0].regions[0].format must be one of text, html, latex"),
        ("drafts__0__regions__0__box", [1, 2, 3], "drafts[0].regions[0].box must be [x0, y0, x1, y1]"),
        ("drafts__0__regions__0__box", [1, 2, "3", 4], "drafts[0].regions[0].box[2] must be a number, not '3'"),
        ("drafts__0__regions__0__box", [9, 2, 3, 4], "drafts[0].regions[0].box must be [x0, y0, x1, y1] with x0 <= x1"),
        ("drafts__0__regions__0", "x", "drafts[0].regions[0] must be an object"),
    ],
)
def test_a_bad_file_is_named_with_its_field(tmp_path: Path, where: str, value: object, expected: str):
    assert expected in spoiled(tmp_path / "d.json", **{where: value})


def test_a_second_draft_of_a_page_is_an_error(tmp_path: Path):
    save_drafts(tmp_path / "d.json", [SAVED, SAVED])
    with pytest.raises(DrafterError, match=r"drafts\[1\] is a second draft of a.pdf, page 3"):
        load_drafts(tmp_path / "d.json")


def test_files_that_are_not_there_or_not_json(tmp_path: Path):
    with pytest.raises(DrafterError, match="No such file"):
        load_drafts(tmp_path / "gone.json")
    for content in (b"\xff{", b"[" * 100_000, b"9" * 5_000):
        (tmp_path / "d.json").write_bytes(content)
        with pytest.raises(DrafterError, match="is not JSON"):
            load_drafts(tmp_path / "d.json")
    with pytest.raises(DrafterError, match=r"no \*\.drafts\.json in this folder"):
        load_drafts(tmp_path)
    with pytest.raises(OutputError, match="cannot be written"):
        save_drafts(tmp_path / "no" / "d.json", [SAVED])


def test_a_number_too_large_for_a_float_is_an_error(tmp_path: Path):
    save_drafts(tmp_path / "d.json", [SAVED])
    content = json.loads((tmp_path / "d.json").read_text())
    content["drafts"][0]["seconds"] = 10**400
    (tmp_path / "d.json").write_text(json.dumps(content))
    with pytest.raises(DrafterError, match=r"drafts\[0\].seconds is too large a number"):
        load_drafts(tmp_path / "d.json")
