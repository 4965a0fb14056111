"""`lightonocr`: LightOnOCR 1 and 2, 1B parameters (arXiv 2601.14251)."""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.profile import Profile, profile_component

from hsdkit import hookimpl
from hsdkit.components import Component

PROFILE = Profile(
    name="lightonocr",
    summary="LightOnOCR (1B): pages to Markdown, without an instruction",
    model="lightonai/LightOnOCR-2-1B",
    # Its published config.json calls it a Mistral 3; its layers are those of the class named here.
    model_types=frozenset({"lighton_ocr", "mistral3"}),
    model_class="LightOnOcrForConditionalGeneration",
    processor_class="LightOnOcrProcessor",
    # Its model card: no system prompt and no instruction, which it would repeat in its answer.
    page="",
    dialect=Dialect(tables="html", formula=("$$\n", "\n$$")),
    # 1540 px is the longest edge it was trained on: the long edge of A4 at 130 dpi has 1520.
    dpi=130,
    end_tokens=("<|im_end|>", "<|endoftext|>"),
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
