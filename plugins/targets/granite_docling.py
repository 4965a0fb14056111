"""`granite_docling`: Granite-Docling of IBM, 258M parameters, and SmolDocling before it (arXiv 2503.11576)."""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.formats.doctags import TOKENS, DocTags
from hsdkit_plugins.targets.profile import Profile, profile_component

from hsdkit import hookimpl
from hsdkit.components import Component

PROFILE = Profile(
    name="granite_docling",
    summary="Granite-Docling (258M): pages to DocTags, with boxes",
    model="ibm-granite/granite-docling-258M",
    revision="982fe3b40f2fa73c365bdb1bcacf6c81b7184bfe",
    model_types=frozenset({"idefics3"}),
    processor_class="Idefics3Processor",
    page="Convert this page to docling.",
    table="Convert table to OTSL.",
    formula="Convert formula to LaTeX.",
    dialect=Dialect(
        tables="otsl",
        heads=True,
        formula=("", ""),
        title=0,
        heading=0,
        numbers="printed",
        fence=False,
        layout=DocTags(),
        layout_in_crops=True,
    ),
    written_tokens=TOKENS,
    end_tokens=("</doctag>", "<|end_of_text|>", "<end_of_utterance>"),
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
