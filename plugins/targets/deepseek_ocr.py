"""`deepseek_ocr`: DeepSeek-OCR (version 1), a page in as few image tokens as the mode says.

Facts: modes, prompts and image layout of the authors' `config.py` and `modeling_deepseekocr.py`, the n-gram ban of
vLLM's recipe, outputs published by users. The checkpoint ships code; it is not run: `models/deepseek_ocr.py` reads the
weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal

from hsdkit_plugins.targets._deepseek import DIALECT, FREE, GROUNDED, TAGS, GroundedConfig, GroundedTarget
from hsdkit_plugins.targets.profile import Profile, profile_component
from hsdkit_plugins.targets.views import Mode

from hsdkit import hookimpl
from hsdkit.components import Component


@dataclass(frozen=True)
class DeepseekOcrConfig(GroundedConfig):
    """Options of `deepseek_ocr`.

    mode: resolution of a page: tiny (512 px, 64 image tokens), small (640, 100), base (1024, 256), large (1280, 400) or
        gundam (base beside tiles of 640 px with 100 each); one token a row and one an image come on top.
    """

    mode: Literal["tiny", "small", "base", "large", "gundam"] = "gundam"


class DeepseekOcrTarget(GroundedTarget):
    modes: ClassVar = {
        "tiny": Mode(512, stretched=True),
        "small": Mode(640, stretched=True),
        "base": Mode(1024),
        "large": Mode(1280),
        "gundam": Mode(1024, tile=640),
    }


def _register() -> None:
    from hsdkit_plugins.targets.models.deepseek_ocr import register

    register()


PROFILE = Profile(
    name="deepseek_ocr",
    summary="DeepSeek-OCR (1): visual token compression, 64 to 1200 tokens a page (target.mode=...)",
    model="deepseek-ai/DeepSeek-OCR",
    revision="9f30c71f441d010e5429c532364a86705536c53a",
    model_types=frozenset({"deepseek_vl_v2"}),
    page=GROUNDED,
    text=FREE,
    dialect=DIALECT,
    written_tokens=TAGS,
    register=_register,
    config=DeepseekOcrConfig,
    target=DeepseekOcrTarget,
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
