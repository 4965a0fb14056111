"""`qwen2_5_vl`: Qwen2.5-VL of any size."""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.targets._qwen import qwen_profile
from hsdkit_plugins.targets.profile import profile_component

from hsdkit import hookimpl
from hsdkit.components import Component

PROFILE = qwen_profile(
    name="qwen2_5_vl",
    summary="Qwen2.5-VL of any size (target.model=...), asked to parse documents",
    model="Qwen/Qwen2.5-VL-3B-Instruct",
    revision="66285546d2b821cf421d4f5eb2576359d3770cd3",
    model_types=frozenset({"qwen2_5_vl"}),
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
