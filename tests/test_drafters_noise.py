"""Noise on drafts: none where none is asked for, the same on every run, around any base."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hsdkit_plugins.drafters._noise.image import ImageNoise, degraded, turned_upright
from hsdkit_plugins.drafters._noise.layout import LayoutNoise
from hsdkit_plugins.drafters._noise.recognition import RecognitionNoise
from hsdkit_plugins.drafters._noise.seeds import numbers
from hsdkit_plugins.drafters.noise import Noise, NoiseConfig
from noisy import ALL, BOX, REGIONS, Fixed, noise, page, save
from PIL import Image, ImageDraw

from hsdkit.config import compose
from hsdkit.documents import Page
from hsdkit.errors import ConfigError, DrafterError, PluginError
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.textlayer import TextLayer


@pytest.fixture
def saved(tmp_path: Path) -> str:
    return save(tmp_path)


def test_no_noise_changes_nothing_at_all(saved: str):
    for seed in (0, 7):
        assert replace(noise(saved, seed=seed).draft(page()), seconds=0.25) == Draft(
            REGIONS, "pdftext", 0.25, ("a note",)
        )


def test_one_strength_alone_leaves_the_rest_as_it_was(saved: str):
    draft = noise(saved, recognition=RecognitionNoise(0.1)).draft(page())
    assert [replace(r, text="") for r in draft.regions] == [replace(r, text="") for r in REGIONS]
    assert draft.regions[1].text != REGIONS[1].text
    moved = noise(saved, layout=LayoutNoise(jitter=0.02)).draft(page())
    assert [r.text for r in moved.regions] == [r.text for r in REGIONS]
    assert all(a.box != b.box for a, b in zip(moved.regions, REGIONS, strict=True))


def test_the_draft_says_what_was_done_to_it(saved: str):
    draft = noise(saved, recognition=RecognitionNoise(0.05), seed=3).draft(page())
    assert draft.drafter == "noise(pdftext)"
    assert draft.notes == (
        "a note",
        "noise: recognition.char_error_rate=0.05, recognition.deletions=0.15, recognition.insertions=0.1 (seed 3)",
    )
    assert "insertions" not in noise(saved, layout=LayoutNoise(drop=0.5)).draft(page()).notes[-1]


# -- the same again


def test_the_order_of_pages_does_not_matter(saved: str):
    pages = [page(n, seed=n) for n in (1, 2, 3)]
    first = noise(saved, **ALL)
    forward = [first.draft(p).regions for p in pages]
    backward = [noise(saved, **ALL).draft(p).regions for p in reversed(pages)]
    assert forward == backward[::-1]
    assert len(set(forward)) == 3


def test_another_process_makes_the_same_errors(saved: str):
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1])\n"
        "import noisy as t\n"
        "print(ascii(t.noise(sys.argv[2], **t.ALL).draft(t.page()).regions))"
    )
    here = str(Path(__file__).parent)
    out = subprocess.run(
        [sys.executable, "-c", code, here, saved], capture_output=True, text=True, check=True,
        env={"PYTHONHASHSEED": "5", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert out.stdout.strip() == ascii(noise(saved, **ALL).draft(page()).regions)


def test_another_seed_makes_other_errors(saved: str):
    assert len({noise(saved, **ALL, seed=s).draft(page()).regions for s in range(4)}) == 4


def test_more_noise_of_one_kind_leaves_the_other_kinds_as_they_were(saved: str):
    drop = LayoutNoise(drop=0.4)
    kept = [r.box for r in noise(saved, layout=drop).draft(page()).regions]
    misread = noise(saved, layout=drop, recognition=RecognitionNoise(0.2)).draft(page()).regions
    assert [r.box for r in misread] == kept
    whole = noise(saved, recognition=RecognitionNoise(0.2)).draft(page()).regions
    assert set(misread) <= set(whole)


# -- the page, as the base sees it


class Looking(Fixed):
    def draft(self, page: Page) -> Draft:
        self.page = page
        if page.read_text:
            _ = page.text_layer
        return Draft((Region(BOX, Label.TEXT, "seen"),), "looking")


@pytest.mark.parametrize(
    "strength",
    [{"blur": 2.0}, {"noise": 20}, {"jpeg": 80}, {"resolution": 0.5}, {"skew": 2.0}, {"contrast": 0.5}],
    ids=str,
)
def test_the_base_drafts_a_degraded_copy_of_the_same_page(strength: dict[str, Any]):
    before = page(2, read_pdf=lambda: b"%PDF")
    pixels = np.asarray(before.image).copy()
    drafter = Noise(NoiseConfig("pdftext", image=ImageNoise(**strength)))
    drafter.base = looking = Looking(None)
    drafter.draft(before)
    seen = looking.page
    assert (seen.number, seen.source, seen.image.size, seen.image.mode) == (2, "a.pdf", (1000, 1200), "RGB")
    assert seen.pdf is None  # else a drafter that is fed PDFs would see the clean page
    assert np.mean(np.abs(np.asarray(seen.image, float) - pixels)) > 0.3
    assert np.array_equal(np.asarray(before.image), pixels)


def test_stronger_image_noise_is_further_from_the_page():
    clean = page().image.crop((0, 0, 500, 300))

    def distance(how: ImageNoise) -> float:
        noisy = degraded(clean, how, numbers(0, "p", "image"))
        return float(np.abs(np.asarray(noisy, float) - np.asarray(clean, float)).mean())

    for name, weak, strong in (("blur", 1, 3), ("noise", 5, 25), ("jpeg", 20, 95), ("resolution", 0.3, 0.8),
                               ("contrast", 0.2, 0.8)):  # fmt: skip
        assert 0 < distance(ImageNoise(**{name: weak})) < distance(ImageNoise(**{name: strong})), name


def test_boxes_found_on_a_skewed_page_are_turned_back():
    image = Image.new("RGB", (1000, 1200), "white")
    ImageDraw.Draw(image).rectangle((700, 200, 719, 219), fill="black")
    skewed = np.asarray(degraded(image, ImageNoise(skew=3), numbers(0, "p", "image")).convert("L"))
    ys, xs = np.nonzero(skewed < 128)
    assert xs.mean() > 720  # clockwise: what is above the middle moves to the right
    found = turned_upright(Box(xs.min(), ys.min(), xs.max() + 1, ys.max() + 1), 3, 1000, 1200)
    assert ((found.x0 + found.x1) / 2, (found.y0 + found.y1) / 2) == pytest.approx((710, 210), abs=1)


def test_a_base_that_reads_the_text_layer_is_told_to_be_out_of_reach_of_image_noise():
    drafter = Noise(NoiseConfig("pdftext", image=ImageNoise(blur=2)))
    drafter.base = Looking(None)
    assert "text layer" not in " ".join(drafter.draft(page()).notes)
    layer = TextLayer((), (), ())
    assert "drafter 'pdftext' read the PDF's text layer, which image noise does not change" in drafter.draft(
        page(read_text=lambda: layer)
    ).notes  # fmt: skip


def test_what_the_base_expects_to_take_and_its_failures_pass_through(saved: str):
    drafter = noise(saved, **ALL)
    assert drafter.expected_seconds(page()) == 0.0
    drafter.base.expected_seconds = lambda page: 7.5  # type: ignore[attr-defined]
    assert drafter.expected_seconds(page()) == 7.5
    with pytest.raises(DrafterError, match=r"a\.pdf, page 9: no draft of it"):
        drafter.draft(page(9))


# -- configuration


def settings_of(*overrides: str) -> NoiseConfig:
    options = compose(["drafter=noise", "drafter.base=pdftext", *overrides]).drafter.options
    assert isinstance(options, NoiseConfig)
    return options


def test_strengths_and_options_of_the_base_are_set_by_dotted_keys(tmp_path: Path):
    keys = (
        "drafter.recognition.char_error_rate=0.05", "drafter.image.blur=2", "drafter.layout={drop: 0.1, split: 0.2}",
        "drafter.base_options.least_score=0.3", "drafter.seed=4",
    )  # fmt: skip
    config = settings_of(*keys)
    assert config.recognition == RecognitionNoise(0.05)
    assert config.image == ImageNoise(blur=2)
    assert config.layout == LayoutNoise(drop=0.1, split=0.2)
    assert Noise(config).base.config.least_score == 0.3  # type: ignore[attr-defined]
    (tmp_path / "mine.yaml").write_text(compose(["drafter=noise", "drafter.base=pdftext", *keys]).to_yaml())
    again = compose([f"experiment={tmp_path / 'mine.yaml'}"]).drafter.options
    assert again == config


def test_noise_can_be_put_on_noise():
    config = settings_of(
        "drafter.base=noise", "drafter.base_options.base=pdftext", "drafter.base_options.image.blur=2",
        "drafter.base_options.base_options.least_score=0.3",
    )  # fmt: skip
    inner = Noise(config).base
    assert isinstance(inner, Noise)
    assert inner.config.image == ImageNoise(blur=2)
    assert inner.config.base_options == {"least_score": 0.3}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("drafter.image.blurr=2", "has no option 'image.blurr': did you mean drafter.image.blur?"),
        ("drafter.blur=2", "did you mean drafter.image.blur?"),
        ("drafter.image={nois: 2}", "has no option 'image.nois': did you mean drafter.image.noise or"),
        ("drafter.image={noise: much}", "drafter.image.noise='much' is not a number"),
        ("drafter.image=2", "drafter.image='2' is not a mapping"),
        ("drafter.base_options.least_scor=1", "did you mean drafter.base_options.least_score?"),
        ("drafter.base_options.least_score=x", "drafter.base_options.least_score='x' is not a number"),
        ("drafter.image.jpeg=100", "image.jpeg=100: must be between 0 and 99"),
        ("drafter.image.skew=90", "image.skew=90: must be between -45 and 45"),
        ("drafter.layout.drop=2", "layout.drop=2: must be between 0 and 1"),
        ("drafter.recognition.char_error_rate=5", "recognition.char_error_rate=5: must be between 0 and 1"),
        ("drafter.recognition={deletions: 0.8, insertions: 0.7}", "together 1.5, above 1"),
    ],
)
def test_options_that_make_no_sense_are_refused_by_name(override: str, said: str):
    with pytest.raises(ConfigError) as caught:
        settings_of(override)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_base_is_refused_with_the_nearest():
    with pytest.raises(PluginError, match=r"drafter\.base=rapidorc: no drafter named 'rapidorc': did you mean 'rapid"):
        settings_of("drafter.base=rapidorc")
    with pytest.raises(PluginError, match=r"^drafter\.base_options: drafter\.base=rapidorc: "):
        settings_of("drafter.base=noise", "drafter.base_options.base=rapidorc")


def test_base_drafts_are_cached_whatever_the_noise(saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from hsdkit.draft_cache import cached

    monkeypatch.setenv("HSDKIT_HOME", str(tmp_path / "home"))
    asked = []

    class Costly(Fixed):
        cache_key = "costly 1"

        def draft(self, page: Page) -> Draft:
            asked.append(page.number)
            return Draft(REGIONS, "costly")

    texts = set()
    for rate in (0.0, 0.05, 0.1):
        drafter = noise(saved, recognition=RecognitionNoise(rate))
        drafter.base = Costly(None)
        wrapped = cached(drafter)
        texts.add(wrapped.draft(page()).regions[1].text)
    assert asked == [1]
    assert len(texts) == 3
