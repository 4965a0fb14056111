"""Verifiers on the embedded model with the real engine: exactness against plain decoding, stages, notes, options."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hsdkit_plugins.targets.tiny import TinyConfig, TinyTarget
from hsdkit_plugins.verifiers.common import crops_of
from models import make
from PIL import Image, ImageDraw, ImageFont
from rapidfuzz import fuzz

from hsdkit.deadline import EngineUntil
from hsdkit.documents import Page
from hsdkit.plugins import Plugins, plugins
from hsdkit.protocols import SUFFIX_TREES, Decoded, DecodeRequest, Engine, Verdict
from hsdkit.regions import Box, Draft, Label, Region

BLOCKS = [
    (Label.HEADING, "The harbour", 18),
    (Label.TEXT, "In the winter of the year the\nharbour was closed to ships.", 13),
    (Label.TEXT, "The light on the pier was seen\nby all of the men on board.", 13),
]


@cache
def page() -> Page:
    image = Image.new("RGB", (250, 150), "white")
    draw = ImageDraw.Draw(image)
    for (_, text, size), box in zip(BLOCKS, boxes(), strict=True):
        draw.multiline_text((box.x0, box.y0), text, fill="black", font=ImageFont.load_default(size))
    return Page(1, image, "harbour.png")


def boxes() -> list[Box]:
    return [Box(10, 8, 240, 30), Box(10, 40, 240, 80), Box(10, 90, 240, 130)]


@cache
def target() -> TinyTarget:
    return TinyTarget(TinyConfig())


@cache
def engine() -> Engine:
    built: Engine = plugins().build("engine", "transformers", None, target=target())
    return built


NO_DRAFT = Draft()


def verify(name: str, draft: Draft = NO_DRAFT, **options: Any) -> Verdict:
    registry: Plugins = plugins()
    config = registry.component("verifier", name).config(max_new_tokens=150, **options)
    verdict: Verdict = registry.build("verifier", name, config).verify(page(), draft, target(), engine())
    return verdict


@cache
def plain() -> Verdict:
    return verify("autoregressive")


def tokens(verdict: Verdict) -> tuple[int, ...]:
    return verdict.stages[-1].sequences[0].tokens


def good() -> Draft:
    return Draft(tuple(Region(b, label, text) for b, (label, text, _) in zip(boxes(), BLOCKS, strict=True)), "test")


def with_texts(*texts: str) -> Draft:
    return Draft(tuple(replace(r, text=t) for r, t in zip(good().regions, texts, strict=True)), "test")


def noisy() -> Draft:
    dice = random.Random(3)
    return with_texts(
        *["".join(dice.choice("etaoin1I") if dice.random() < 0.08 else c for c in r.text) for r in good().regions]
    )


DRAFTS = {
    "good": good(),
    "noisy": noisy(),
    "empty": Draft(),
    "blank": with_texts("", " ", "\n"),
    "shuffled": Draft(good().regions[::-1], "test"),
    "repeating": with_texts("the " * 300, "ships " * 200, "harbour harbour"),
    "end tokens": with_texts("<|im_end|>", "The<|im_end|>", "light"),
}


def test_plain_decoding_takes_one_pass_a_token_and_no_draft() -> None:
    (stage,) = plain().stages
    assert stage.name == "page"
    assert stage.steps == stage.tokens - 1 == stage.forwards
    assert stage.accepted == 0
    assert len(stage.sequences[0].tokens) > 40


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize(
    ("name", "options"),
    [("hsd", {"stage1": "always"}), ("page", {}), ("page", {"matching": "paper", "max_packed": 32})],
)  # fmt: skip
def test_the_output_is_that_of_plain_decoding_token_for_token(draft: str, name: str, options: dict[str, Any]) -> None:
    verdict = verify(name, DRAFTS[draft], **options)
    assert tokens(verdict) == tokens(plain())
    assert verdict.text == plain().text
    assert verdict.finish_reason == plain().finish_reason


def test_prompt_lookup_is_exact_and_needs_no_draft() -> None:
    assert tokens(verify("prompt_lookup")) == tokens(plain())


@pytest.mark.skipif(not SUFFIX_TREES.installed, reason="arctic-inference is not installed: pip install hsdkit[suffix]")
@pytest.mark.parametrize("draft", ["good", "noisy", "empty", "repeating"])
def test_suffix_trees_are_exact(draft: str) -> None:
    assert tokens(verify("page", DRAFTS[draft], matching="suffix", max_packed=24)) == tokens(plain())


@pytest.mark.parametrize("name", ["hsd", "page"])
def test_a_good_draft_saves_passes(name: str) -> None:
    verdict = verify(name, good(), max_packed=24)
    assert verdict.stages[-1].forwards < plain().stages[0].forwards / 2


def test_stage_1_reads_every_region_and_stage_2_drafts_from_it() -> None:
    header = Region(Box(10, 0, 90, 6), Label.HEADER, "page 7")
    outside = Region(Box(300, 0, 400, 20), Label.TEXT, "not on the page")
    flat = Region(Box(10, 60, 10, 70), Label.TEXT, "no width")
    draft = Draft((header, good().regions[0], outside, flat, *good().regions[1:]), "test")
    verdict = verify("hsd", draft, stage1="always")
    first, second = verdict.stages
    assert (first.name, second.name) == ("regions", "page")
    assert first.region_index == (1, 4, 5)
    assert len(first.sequences) == 3
    assert first.times.total > 0
    texts = [region.text for region in good().regions]
    for sequence, own in zip(first.sequences, texts, strict=True):
        # whatever weights ship, they misread a letter here and there
        assert fuzz.ratio(own, sequence.text) > 70, sequence.text
        assert max(texts, key=lambda text: fuzz.ratio(text, sequence.text)) == own
    assert verdict.notes == ()


def test_a_page_survives_a_stage_1_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = type(engine()).decode

    def short_of_memory(self: Engine, requests: Sequence[DecodeRequest], *rest: Any) -> Decoded:
        if len(requests) > 1:
            raise MemoryError("no room for the crops")
        return decode(self, requests, *rest)

    monkeypatch.setattr(type(engine()), "decode", short_of_memory)
    verdict = verify("hsd", good(), stage1="always")
    assert tokens(verdict) == tokens(plain())
    assert [s.name for s in verdict.stages] == ["page"]
    assert verdict.stages[0].accepted > 0
    assert "Stage 1 failed" in verdict.notes[0]
    assert "no room for the crops" in verdict.notes[0]


def test_crops_grow_by_the_margin_and_stay_on_the_page() -> None:
    corner = Region(Box(-3, 2, 40, 30), Label.TEXT, "corner")
    (crop,) = crops_of(page(), Draft((corner,)), target(), 5)
    assert crop.box == Box(0, 0, 45, 35)


def test_one_region_is_no_hierarchy() -> None:
    verdict = verify("hsd", Draft(good().regions[:1], "test"), stage1="always")
    assert [s.name for s in verdict.stages] == ["page"]
    assert "only one region" in verdict.notes[0]


def test_never_is_page_level() -> None:
    verdict = verify("hsd", good(), stage1="never")
    assert [s.name for s in verdict.stages] == ["page"]
    assert verdict.notes == ()


@pytest.mark.parametrize("stage1", ["always", "never"])
def test_nothing_is_measured_where_width_and_stages_are_fixed(stage1: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(engine()), "cost_curve", lambda *_: pytest.fail("measured"))
    assert tokens(verify("hsd", noisy(), stage1=stage1, max_packed=16)) == tokens(plain())


def test_auto_leaves_stage_1_out_for_drafts_that_are_known_to_be_right() -> None:
    sure = Draft(tuple(replace(r, score=1.0) for r in good().regions), "test")
    verdict = verify("hsd", sure)
    assert [s.name for s in verdict.stages] == ["page"]
    assert "Stage 1 left out" in verdict.notes[0]
    assert "verifier.stage1=always" in verdict.notes[0]


def test_region_joins_what_the_crops_say_in_drafter_order() -> None:
    verdict = verify("region", DRAFTS["shuffled"])
    (stage,) = verdict.stages
    assert stage.region_index == (0, 1, 2)
    assert verdict.text == "\n\n".join(s.text.strip() for s in stage.sequences)
    assert verdict.text.index("light") < verdict.text.index("winter")


def test_region_without_regions_says_that_nothing_was_read() -> None:
    verdict = verify("region", Draft())
    assert verdict.text == ""
    assert "nothing was read" in verdict.notes[0]


def test_text_arrives_while_it_is_decoded() -> None:
    heard: list[tuple[int, str]] = []
    registry = plugins()
    for name in ("hsd", "region"):
        heard.clear()
        verifier = registry.build("verifier", name)
        verdict = verifier.verify(page(), good(), target(), engine(), lambda row, text: heard.append((row, text)))
        assert {row for row, _ in heard} == {0}
        assert "".join(text for _, text in heard) == verdict.text


def test_a_page_larger_than_the_model_reads_is_noted() -> None:
    small = TinyTarget(TinyConfig(max_pixels=20_000))
    built = plugins().build("engine", "transformers", None, target=small)
    verifier = plugins().build("verifier", "page", plugins().component("verifier", "page").config(max_new_tokens=3))
    (note,) = verifier.verify(page(), Draft(), small, built).notes
    assert "250 x 150 px" in note


@pytest.mark.parametrize("architecture", ["qwen2_5_vl", "qwen3_vl", "hunyuanocr", "granite_docling"])
def test_hsd_is_exact_on_other_architectures(architecture: str, tmp_path: Path) -> None:
    component = plugins().component("target", architecture)
    other = component.factory(component.config(model=str(make(architecture, tmp_path / architecture))))
    built = plugins().build("engine", "transformers", None, target=other)

    def run(name: str, draft: Draft, **options: Any) -> Verdict:
        chosen = plugins().component("verifier", name).config(max_new_tokens=40, **options)
        verdict: Verdict = plugins().build("verifier", name, chosen).verify(page(), draft, other, built)
        return verdict

    expected = run("autoregressive", NO_DRAFT)
    text = expected.text
    likely = with_texts(text[:20], text[15:35], text[30:])
    for draft in (likely, good()):
        assert tokens(run("hsd", draft, stage1="always")) == tokens(expected)
        assert tokens(run("page", draft)) == tokens(expected)
    assert tokens(run("prompt_lookup", NO_DRAFT)) == tokens(expected)


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("hsd", {"tau": 0.0}, "tau=0.0: must be above 0"),
        ("page", {"tau": 1.5}, "tau=1.5"),
        ("hsd", {"matching": "exact"}, "must be aligned, paper or suffix"),
        ("hsd", {"stage1": "maybe"}, "auto, always or never"),
        ("hsd", {"n": 0}, "n=0"),
        ("page", {"n": 100_000_000}, "n=100000000: must be between 1 and 64"),
        ("page", {"max_packed": 0}, "max_packed=0"),
        ("page", {"max_packed": "many"}, "must be auto, or a number"),
        ("region", {"region_margin": -1}, "region_margin=-1"),
        ("autoregressive", {"max_new_tokens": 0}, "max_new_tokens=0"),
        ("prompt_lookup", {"self_lookup": False}, "use verifier=autoregressive"),
    ],
)
def test_options_out_of_range_name_the_valid_ones(name: str, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        plugins().component("verifier", name).config(**wrong)


class Watched:
    """The engine; `left` is how many seconds each batch was given."""

    def __init__(self) -> None:
        self.left: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(engine(), name)

    def decode(self, requests: Sequence[DecodeRequest], settings: Any, on_text: Any = None) -> Decoded:
        self.left.append(settings.deadline - time.monotonic())
        return engine().decode(requests, settings, on_text)


def within(seconds: float) -> tuple[Watched, Verdict]:
    watched, registry = Watched(), plugins()
    config = registry.component("verifier", "hsd").config(max_new_tokens=150, stage1="always")
    limited = EngineUntil(watched, time.monotonic() + seconds)  # type: ignore[arg-type]
    return watched, registry.build("verifier", "hsd", config).verify(page(), good(), target(), limited)


def test_stage_1_may_take_half_of_the_time_that_is_left_and_the_page_the_rest() -> None:
    watched, verdict = within(1000)
    regions, whole = watched.left
    assert 450 < regions <= 500
    assert 900 < whole <= 1000
    assert tokens(verdict) == tokens(plain())


def test_when_the_time_is_over_no_region_is_read() -> None:
    watched, verdict = within(0)
    assert len(watched.left) == 1
    assert (verdict.finish_reason, tokens(verdict)) == ("time", tokens(plain())[:1])
    assert "Stage 1 left out: the page's time (page_seconds) was over before" in verdict.notes
