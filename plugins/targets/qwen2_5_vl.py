"""`qwen2_5_vl`: Qwen2.5-VL of any size."""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.targets._qwen import FORMULA, PAGE, TABLE, TEXT, QwenConfig, QwenTarget
from hsdkit_plugins.targets.profile import Profile, profile_component

from hsdkit import hookimpl
from hsdkit.components import Component

PROFILE = Profile(
    name="qwen2_5_vl",
    summary="Qwen2.5-VL of any size (target.model=...), asked to parse documents",
    model="Qwen/Qwen2.5-VL-3B-Instruct",
    revision="66285546d2b821cf421d4f5eb2576359d3770cd3",
    model_types=frozenset({"qwen2_5_vl"}),
    page=PAGE,
    text=TEXT,
    table=TABLE,
    formula=FORMULA,
    max_pixels=3_200_000,
    config=QwenConfig,
    target=QwenTarget,
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
