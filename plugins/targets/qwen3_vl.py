"""`qwen3_vl`: Qwen3-VL of any size."""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.targets._qwen import qwen_profile
from hsdkit_plugins.targets.profile import profile_component

from hsdkit import hookimpl
from hsdkit.components import Component

PROFILE = qwen_profile(
    name="qwen3_vl",
    summary="Qwen3-VL of any size (target.model=...), asked to parse documents",
    model="Qwen/Qwen3-VL-2B-Instruct",
    revision="89644892e4d85e24eaac8bacfd4f463576704203",
    model_types=frozenset({"qwen3_vl", "qwen3_vl_moe"}),
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
