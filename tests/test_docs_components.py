"""The pages of targets and drafters: tables are those of the registry, every component has its section."""

from __future__ import annotations

import re

import pytest
from test_docs import ROOT, load, read

from hsdkit.plugins import plugins


@pytest.mark.parametrize("kind", ["target", "drafter"])
def test_the_table_of_components_is_that_of_the_registry(kind: str) -> None:
    components = load(ROOT / "docs" / "components.py")
    page = read(f"docs/{kind}s.md")
    assert components.updated(f"{kind}s.md", page) == page, "run `python docs/components.py`"


@pytest.mark.parametrize("kind", ["target", "drafter"])
def test_every_component_has_a_section_and_no_section_is_of_another(kind: str) -> None:
    sections = re.findall(r"^### `(\w+)`\n\n\S", read(f"docs/{kind}s.md"), re.MULTILINE)
    ours = [c.name for c, plugin in plugins().components(kind) if plugin.package == "hsdkit"]  # type: ignore[arg-type]
    assert sorted(sections) == ours


@pytest.mark.parametrize("kind", ["target", "drafter"])
def test_options_and_values_named_on_the_page_are_there(kind: str) -> None:
    page = read(f"docs/{kind}s.md")
    for name, section in re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", page, re.MULTILINE | re.DOTALL):
        config = plugins().component(kind, name).config  # type: ignore[arg-type]
        for option in re.findall(rf"`{kind}\.(\w+)", section):
            assert hasattr(config(), option), f"{kind}={name} has no option {option}"
