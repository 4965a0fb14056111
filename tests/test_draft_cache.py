"""Drafts kept on disk: what they are found by, and everything that can go wrong with files."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from heavy import FakeConfig, Heavy, library, make_ready
from PIL import Image
from toys import TOY, Toys, blank_pdf

from hsdkit.config import compose
from hsdkit.documents import Page
from hsdkit.draft_cache import CachedDrafter, DraftCache, cached
from hsdkit.drafting import expected_seconds
from hsdkit.errors import DrafterError
from hsdkit.pipeline import Pipeline
from hsdkit.plugins import Plugins
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.textlayer import TextLayer, Word

DRAFT = Draft((Region(Box(0, 0, 5, 5), Label.TABLE, "<table></table>", "html", None, 0.5),), "slow", 1.5, ("a note",))


def page(colour: str = "red", words: str = "", size: tuple[int, int] = (40, 30)) -> Page:
    layer = TextLayer((Word(words, Box(0, 0, 1, 1), 1, 1),)) if words else None
    return Page(
        1, Image.new("RGB", size, colour), "a.pdf", read_text=lambda: layer or TextLayer(), read_pdf=lambda: b""
    )


class Slow:
    name, cache_key = "slow", "slow 1.0"

    def __init__(self, fails: bool = False) -> None:
        self.drafted = 0
        self.fails = fails

    def draft(self, page: Page) -> Draft:
        self.drafted += 1
        if self.fails:
            raise DrafterError("no")
        return DRAFT

    def expected_seconds(self, page: Page) -> float:
        return 7.0

    def load(self) -> str:
        return "loaded"


@pytest.fixture
def cache(tmp_path: Path) -> DraftCache:
    return DraftCache(tmp_path / "drafts")


def test_a_draft_is_found_again_and_says_so(cache: DraftCache):
    slow = Slow()
    drafter = CachedDrafter(slow, "key", cache)
    assert expected_seconds(drafter, page()) == 7
    assert drafter.draft(page()) == DRAFT
    again = drafter.draft(page())
    assert again.regions == DRAFT.regions
    assert again.notes == ("a note", "draft from the cache; it took 1.50 s to make")
    assert slow.drafted == 1
    assert expected_seconds(drafter, page()) == 0
    assert drafter.load() == "loaded"  # type: ignore[operator]


@pytest.mark.parametrize(
    "other", [page("blue"), page(words="under"), page(size=(40, 31)), page(size=(30, 40))], ids=range(4)
)
def test_another_page_is_another_draft(cache: DraftCache, other: Page):
    cache.put(page(), "key", DRAFT)
    assert cache.get(other, "key") is None


def test_text_that_is_not_handed_over_is_not_looked_at(cache: DraftCache):
    def never() -> TextLayer:
        raise AssertionError

    cache.put(replace(page(), read_text=never, read_pdf=None), "key", DRAFT)
    assert cache.size()[0] == 1


def test_another_key_is_another_draft(cache: DraftCache):
    cache.put(page(), "key", DRAFT)
    assert cache.get(page(), "key 2") is None


def test_the_same_page_of_another_file_is_found(cache: DraftCache):
    cache.put(page(), "key", DRAFT)
    assert cache.get(replace(page(), source="b.pdf", number=9), "key") == DRAFT


def test_failures_are_not_kept(cache: DraftCache):
    drafter = CachedDrafter(Slow(fails=True), "key", cache)
    for _ in range(2):
        with pytest.raises(DrafterError):
            drafter.draft(page())
    assert cache.size() == (0, 0)


def spoil(write: Callable[[Path], object], cache: DraftCache) -> None:
    cache.put(page(), "key", DRAFT)
    [file] = cache.folder.glob("*/*")
    write(file)


@pytest.mark.parametrize(
    "write",
    [lambda f: f.write_bytes(f.read_bytes()[:-20]), lambda f: f.write_bytes(b""), lambda f: f.write_bytes(b"\xff" * 9),
     lambda f: f.write_text("{}"), lambda f: f.write_text('{"format":"hsdkit-drafts","version":1,"drafts":[]}'),
     lambda f: (f.unlink(), f.mkdir())],
    ids=["cut", "empty", "bytes", "other", "none", "folder"],
)  # fmt: skip
def test_a_corrupt_entry_is_a_miss_and_is_made_anew(cache: DraftCache, write: Callable[[Path], object]):
    spoil(write, cache)
    slow = Slow()
    assert CachedDrafter(slow, "key", cache).draft(page()) == DRAFT
    assert slow.drafted == 1


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path):
    (tmp_path / "file").write_text("")
    drafter = CachedDrafter(Slow(), "key", DraftCache(tmp_path / "file"))
    assert drafter.draft(page()) == DRAFT
    assert drafter.draft(page()) == DRAFT


def test_the_bound_removes_what_was_not_used_for_longest(cache: DraftCache):
    for age, colour in enumerate(("red", "green", "blue")):
        cache.put(page(colour), "key", DRAFT)
        os.utime(cache._file(page(colour), "key"), (age, age))
    one = cache.size()[1] // 3
    assert cache.get(page("red"), "key") == DRAFT  # now the one used last
    cache.prune(2 * one)
    assert [cache.get(page(c), "key") is None for c in ("red", "green", "blue")] == [False, True, False]
    cache.prune(0)
    assert cache.size() == (0, 0)


def test_many_writers_of_one_entry_leave_one_whole_entry(tmp_path: Path):
    def use(_: int) -> Draft | None:
        mine = DraftCache(tmp_path)
        mine.put(page(), "key", DRAFT)
        return mine.get(page(), "key")

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(use, range(40))) == {DRAFT}
    assert DraftCache(tmp_path).size()[0] == 1
    assert list(tmp_path.glob("*/.*")) == []


def test_a_draft_that_json_does_not_take_is_not_kept(cache: DraftCache):
    odd = replace(DRAFT, regions=(replace(DRAFT.regions[0], score=object()),))  # type: ignore[arg-type]
    cache.put(page(), "key", odd)
    assert cache.size() == (0, 0)


def test_what_a_killed_process_left_is_counted_and_goes(cache: DraftCache):
    cache.put(page(), "key", DRAFT)
    [file] = cache.folder.glob("*/*")
    left = file.with_name(f"..1234-{file.name}.part")
    left.write_text("half")
    os.utime(left, (0, 0))
    assert cache.size()[0] == 2
    cache.prune(cache.size()[1] - 1)
    assert not left.exists()
    assert cache.get(page(), "key") == DRAFT


def test_drafters_that_do_not_play_along_are_left_as_they_are():
    class Odd:
        name = "odd"

        @property
        def cache_key(self) -> str:
            raise ValueError("no key today")

    class Fixed:
        name = "fixed"
        base = property(lambda self: Slow())

    for made in (Odd(), Fixed()):
        assert cached(made) is made  # type: ignore[arg-type,comparison-overlap]


def test_cheap_drafters_are_not_cached():
    class Cheap:
        name = "cheap"

    cheap = Cheap()
    assert cached(cheap) is cheap  # type: ignore[arg-type,comparison-overlap]


def test_the_key_of_a_heavy_drafter_holds_version_settings_and_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HSDKIT_HOME", str(tmp_path))
    made = library(tmp_path)
    make_ready(made.environment)
    keys = [
        made.drafter(FakeConfig()).cache_key,
        made.drafter(FakeConfig(told='{"a": 1}')).cache_key,
        replace(made, script=Path(__file__)).drafter(FakeConfig()).cache_key,
        replace(made, convert=lambda native, page: []).drafter(FakeConfig()).cache_key,
    ]
    assert len(set(keys)) == len(keys)
    assert made.drafter(FakeConfig(timeout=3, max_pages=7)).cache_key == keys[0], "changes no draft"
    loaded = made.drafter(FakeConfig())
    loaded.load()
    assert loaded.cache_key == keys[0]
    assert made.drafter(FakeConfig(url="http://h")).cache_key == "", "what a server runs may change"


def test_a_run_reuses_drafts_unless_told_not_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HSDKIT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    heavy = Heavy(tmp_path / "home")
    make_ready(heavy.library.environment)
    registry = Plugins()
    registry.register(Toys(), "toys")
    registry.register(heavy, "heavy")
    path = blank_pdf(tmp_path / "a.pdf")

    def notes(*overrides: str) -> tuple[str, ...]:
        chosen = compose([*TOY, "drafter=fake", "draft=always", *overrides], registry=registry)
        [result] = Pipeline(chosen, registry=registry).parse(path).pages
        return result.draft.notes

    assert notes() == ()
    assert notes()[0].startswith("draft from the cache; ")
    assert notes("reuse_drafts=false") == ()
