"""`paddleocr_vl`: PaddleOCR-VL 1.0, 1.5 and 1.6, 0.9B parameters (arXiv 2510.14528)."""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.otsl import TOKENS
from hsdkit_plugins.targets.profile import Profile, profile_component

from hsdkit import hookimpl
from hsdkit.components import Component

#: It is trained to read single elements, and reads a whole page as one text; tables come as OTSL.
PROFILE = Profile(
    name="paddleocr_vl",
    summary="PaddleOCR-VL (0.9B): elements of a page, with tables in OTSL",
    model="PaddlePaddle/PaddleOCR-VL",
    revision="baee27eebcbf26cdeab160116679d765f13a3f27",
    model_types=frozenset({"paddleocr_vl"}),
    page="OCR:",
    table="Table Recognition:",
    formula="Formula Recognition:",
    dialect=Dialect(tables="otsl", formula=("\\[", "\\]"), inline=("\\(", "\\)")),
    written_tokens=TOKENS,
    end_tokens=("</s>",),
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
