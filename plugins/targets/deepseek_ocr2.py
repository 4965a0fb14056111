"""`deepseek_ocr2`: DeepSeek-OCR 2, in `transformers`' own classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from hsdkit_plugins.targets._deepseek import DIALECT, FREE, GROUNDED, TAGS, GroundedConfig, GroundedTarget
from hsdkit_plugins.targets.profile import Profile, profile_component
from hsdkit_plugins.targets.views import Mode, Views

from hsdkit import hookimpl
from hsdkit.components import Component


@dataclass(frozen=True)
class DeepseekOcr2Config(GroundedConfig):
    """Options of `deepseek_ocr2`.

    mode: resolution of a page: small (768 px, 144 image tokens), base (1024, 256) or gundam (base beside tiles of 768
        px with 144 each); one token an image comes on top. The model has queries for these two sizes only.
    """

    mode: Literal["small", "base", "gundam"] = "gundam"
    max_tiles: int = 6
    ngram_size: int = 20
    ngram_window: int = 50


class DeepseekOcr2Target(GroundedTarget):
    modes: ClassVar = {"small": Mode(768, stretched=True), "base": Mode(1024), "gundam": Mode(1024, tile=768)}

    def image_token_count(self, seen: Views) -> int:
        """No newline tokens: the learned queries of a view stand for the whole of it."""
        whole, tile = seen.cells
        return whole * whole + 1 + seen.rows * seen.columns * tile * tile

    def layout_inputs(self, seen: Sequence[Views]) -> dict[str, Any]:
        return {"num_local_patches": [v.rows * v.columns for v in seen]}


PROFILE = Profile(
    name="deepseek_ocr2",
    summary="DeepSeek-OCR 2: 145 to 1121 image tokens a page (target.mode=...)",
    model="deepseek-community/DeepSeek-OCR-2",
    model_types=frozenset({"deepseek_ocr2"}),
    page=GROUNDED,
    text=FREE,
    dialect=DIALECT,
    written_tokens=TAGS,
    config=DeepseekOcr2Config,
    target=DeepseekOcr2Target,
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
