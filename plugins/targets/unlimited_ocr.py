"""`unlimited_ocr`: Baidu's Unlimited-OCR, DeepSeek-OCR with attention to the page and the last words only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from hsdkit_plugins.targets._deepseek import LABELS, TAGS, DeepseekConfig, DeepseekTarget
from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.formats.grounding import Grounding
from hsdkit_plugins.targets.profile import Profile, profile_component
from hsdkit_plugins.targets.views import Mode

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.regions import Label

#: One block a line, the text right behind its label and box; headings without marks; page headers and the like too.
LAYOUT = Grounding(
    LABELS | {Label.HEADING: "title", Label.HEADER: "header", Label.FOOTER: "footer", Label.PAGE_NUMBER: "page_number"},
    tag="<|det|>{name} [{box}]<|/det|>",
    joint="",
    trailer="",
    separator="\n",
    pairs=False,
)


@dataclass(frozen=True)
class UnlimitedOcrConfig(DeepseekConfig):
    """Options of `unlimited_ocr`.

    mode: resolution of a page: base (1024 px, 256 image tokens) or gundam (base beside tiles of 640 px with 100 each);
        one token a row and one an image come on top. The model is published for these two.
    """

    mode: Literal["base", "gundam"] = "gundam"
    max_tiles: int = 32
    ngram_size: int = 35
    ngram_window: int = 128


class UnlimitedOcrTarget(DeepseekTarget):
    modes: ClassVar = {"base": Mode(1024), "gundam": Mode(1024, tile=640)}
    after_image = ""
    repeatable: tuple[str, ...] = ()


def _register() -> None:
    from hsdkit_plugins.targets.models.deepseek_ocr import register

    register()


PROFILE = Profile(
    name="unlimited_ocr",
    summary="Unlimited-OCR: DeepSeek-OCR that attends to the page and its last words, for long outputs",
    model="baidu/Unlimited-OCR",
    model_types=frozenset({"unlimited_ocr", "unlimited-ocr"}),
    page="document parsing.",
    dialect=Dialect(
        formula=("\\[", "\\]"),
        inline=("\\(", "\\)"),
        title=0,
        heading=0,
        layout=LAYOUT,
        layout_in_crops=True,
    ),
    written_tokens=TAGS,
    register=_register,
    config=UnlimitedOcrConfig,
    target=UnlimitedOcrTarget,
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
