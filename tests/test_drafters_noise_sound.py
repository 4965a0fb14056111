"""Noise on drafts: never a draft that cannot be used."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

from hsdkit_plugins.drafters._noise.confusable import confusable
from hsdkit_plugins.drafters._noise.layout import LayoutNoise
from hsdkit_plugins.drafters._noise.markup import glyphs
from hsdkit_plugins.drafters._noise.recognition import RecognitionNoise, misread_region
from hsdkit_plugins.drafters.noise import Noise, NoiseConfig
from hypothesis import given, settings
from hypothesis import strategies as st
from noisy import BOX, FORMULA, REGIONS, SMALL, TABLE, Fixed, page, prose

from hsdkit.drafting import sound
from hsdkit.regions import Box, Draft, Format, Label, Region


class Tags(HTMLParser):
    """The tags of a table, and whether each is closed in turn."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(f"<{tag} {attrs}>")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.tags.append(f"</{tag}>")


def check_latex(text: str) -> None:
    depth = 0
    for match in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        assert depth >= 0
    assert depth == 0
    assert not re.search(r"[\^_]\s*(?:[}&^_]|\\\\|\\right|\\end|$)", text)
    assert not re.search(r"\^(?:\{[^{}]*\}|[^{\\])\s*\^", text)


strengths = st.floats(0, 1)
recognition = st.builds(
    RecognitionNoise, strengths, st.floats(0, 0.5), st.floats(0, 0.5), strengths, strengths, strengths
)
layout = st.builds(LayoutNoise, strengths, strengths, strengths, strengths, strengths)
texts = st.one_of(
    st.text(max_size=60), st.text(st.sampled_from("ab \n\t|-1.<>&;$\\{}^_文"), max_size=40),
    st.sampled_from([TABLE, FORMULA, "- a\n- b", prose(30)]),
)  # fmt: skip
boxes = st.builds(lambda x, y, w, h: Box(x, y, x + w, y + h), *[st.floats(-50, 1300)] * 2, *[st.floats(0, 1000)] * 2)
any_region = st.builds(
    Region, boxes, st.sampled_from(list(Label)), texts, st.sampled_from(["text", "html", "latex"]),
    st.none() | st.integers(1, 6), st.none() | st.floats(0, 1),
)  # fmt: skip


@settings(max_examples=60)
@given(st.lists(any_region, max_size=6), recognition, layout, st.integers(0, 9))
def test_any_noise_on_any_draft_gives_a_sound_draft(regions, how, where, seed):
    drafter = Noise(NoiseConfig("pdftext", {}, seed, layout=where, recognition=how))
    drafter.base = Fixed(Draft(tuple(regions)))
    draft = drafter.draft(SMALL)
    assert sound(draft) == (draft, ())
    assert all(r.label in {x.label for x in regions} for r in draft.regions)


@settings(max_examples=40)
@given(st.floats(0, 1), st.floats(0, 1), st.integers(0, 999))
def test_misread_cells_and_formulas_still_parse(rate: float, spaces: float, seed: int):
    how = RecognitionNoise(rate, space_loss=spaces)
    table = misread_region(Region(BOX, Label.TABLE, TABLE, "html"), how, seed, "p", 0).text
    assert Tags(table).tags == Tags(TABLE).tags
    assert table.count("&amp;") == 1
    for cell in re.findall(r"\$.*?\$", table):
        check_latex(cell.strip("$"))
    formula = misread_region(Region(BOX, Label.FORMULA, FORMULA, "latex"), how, seed, "p", 0).text
    commands = re.compile(r"\\(?:[A-Za-z]+|.)")
    assert commands.findall(formula) == commands.findall(FORMULA)
    check_latex(formula)
    items = misread_region(REGIONS[2], how, seed, "p", 0).text.split("\n")
    assert [re.match(r"\s*(?:-|1\.) ", i)[0] for i in items] == ["- ", "  - ", "1. "]


@settings(max_examples=30)
@given(strengths, strengths, strengths, st.integers(0, 99))
def test_tables_stay_tables_when_rows_are_lost_cells_swapped_and_regions_cut(lines, swaps, cut, seed):
    drafter = Noise(
        NoiseConfig(
            "pdftext", {}, seed,
            layout=LayoutNoise(split=cut), recognition=RecognitionNoise(0.2, line_loss=lines, cell_swaps=swaps),
        )
    )  # fmt: skip
    drafter.base = Fixed(Draft((REGIONS[3],)))
    for region in drafter.draft(SMALL).regions:
        assert Tags(region.text).open == []
        assert region.text.startswith("<table>")
        assert region.text.endswith("</table>")


@given(st.sampled_from(REGIONS), texts, st.sampled_from(["text", "html", "latex"]))
def test_the_pieces_of_a_text_are_the_text(region: Region, text: str, form: Format):
    assert "".join(t for t, _ in glyphs(replace(region, text=text, format=form))) == text


def test_what_looks_alike_is_never_the_character_itself():
    for c in map(chr, [*range(33, 127), *range(0xC0, 0x180), *range(0x4E00, 0x4E80), *range(0xAC00, 0xAC10)]):
        assert c not in confusable(c)
        assert all(len(other) in (1, 2) for other in confusable(c))
    assert "0" in confusable("O")
    assert "已" in confusable("己")
    assert "e" in confusable("é")


def test_malformed_regions_of_the_base_are_left_out_and_told():
    drafter = Noise(NoiseConfig("pdftext", recognition=RecognitionNoise(0.5)))
    drafter.base = Fixed(Draft((Region(Box(0, 0, float("nan"), 1), Label.TEXT, "x"), REGIONS[1])))
    draft = drafter.draft(page())
    assert len(draft.regions) == 1
    assert "malformed" in " ".join(draft.notes)
