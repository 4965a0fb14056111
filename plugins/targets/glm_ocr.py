"""`glm_ocr`: GLM-OCR of Z.ai, 0.9B parameters."""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.profile import Profile, profile_component
from hsdkit_plugins.targets.tables import HtmlStyle

from hsdkit import hookimpl
from hsdkit.components import Component

PROFILE = Profile(
    name="glm_ocr",
    summary="GLM-OCR (0.9B): pages and elements to Markdown with HTML tables",
    model="zai-org/GLM-OCR",
    revision="ca5d8b3e287e52589e37c28385d9655ee4372f9d",
    model_types=frozenset({"glm_ocr"}),
    # As its own toolkit asks for a page without layout analysis, and for single elements.
    page=(
        "Recognize the text in the image and output in Markdown format. Preserve the original layout "
        "(headings/paragraphs/tables/formulas). Do not fabricate content that does not exist in the image."
    ),
    text="Text Recognition:",
    table="Table Recognition:",
    formula="Formula Recognition:",
    dialect=Dialect(tables="html", html=HtmlStyle(table=' border="1"'), formula=("$$\n", "\n$$")),
    dpi=200,
    end_tokens=("<|endoftext|>", "<|user|>"),
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
