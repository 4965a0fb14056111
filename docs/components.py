"""Writes the tables of docs/targets.md and docs/drafters.md from the registry: `python docs/components.py`.

What the code cannot know, the licence of a model's weights, is said here; a component that nobody has said it of fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hsdkit.components import Component, Kind
from hsdkit.plugins import plugins

HERE = Path(__file__).parent
BEGIN, END = "<!-- table: made by docs/components.py -->", "<!-- table: end -->"

#: As the model cards on the hub say.
LICENCES = {
    "deepseek_ocr": "MIT",
    "deepseek_ocr2": "Apache-2.0",
    "dots_ocr": "MIT, with the dots.ocr License Agreement (names prohibited uses)",
    "glm_ocr": "MIT",
    "granite_docling": "Apache-2.0",
    "hunyuanocr": "Tencent Hunyuan Community License (restricts use, also by region)",
    "lightonocr": "Apache-2.0",
    "paddleocr_vl": "Apache-2.0",
    "qwen2_5_vl": "Qwen Research License (3B, not commercial); Apache-2.0 (7B)",
    "qwen3_vl": "Apache-2.0",
    "tiny": "Apache-2.0, as hsdkit",
    "unlimited_ocr": "MIT",
}
FORMATS = {
    "NoneType": "Markdown",
    "Records": "JSON records with boxes",
    "Grounding": "grounding tags with boxes",
    "DocTags": "DocTags with boxes",
}


def built_in(kind: Kind) -> Iterator[Component]:
    return (c for c, plugin in plugins().components(kind) if plugin.package == "hsdkit")


def target_row(component: Component) -> list[str]:
    config: Any = component.config()
    dialect = plugins().build("target", component.name).dialect
    tables = {"html": "HTML", "otsl": "OTSL", "markdown": "Markdown"}[dialect.tables]
    writes = f"{FORMATS[type(dialect.layout).__name__]}, tables as {tables}"
    if config.model:
        revision = f" at `{config.revision[:7]}`" if config.revision else ""
        checkpoint = f"[{config.model}](https://huggingface.co/{config.model}){revision}"
    else:
        checkpoint = "ships with hsdkit"
    return [f"`{component.name}`", component.summary, checkpoint, writes, str(config.dpi), LICENCES[component.name]]


def drafter_row(component: Component) -> list[str]:
    environment = component.environment
    extras = dict.fromkeys(f'`pip install "{r.install}"`' for r in component.requires)
    if environment is None:
        return [f"`{component.name}`", component.summary, "in process", ", ".join(extras) or "nothing", ""]
    needs = f"`hsdkit drafter install {component.name}` ({environment.pins[0]})"
    server = f"`{environment.server}`" if environment.server else ""
    return [f"`{component.name}`", component.summary, "own environment, in process or server", needs, server]


PAGES: dict[str, tuple[Kind, list[str], Callable[[Component], list[str]]]] = {
    "targets.md": (
        "target",
        ["target", "what it is", "default checkpoint", "writes", "dpi", "licence of the weights"],
        target_row,
    ),
    "drafters.md": (
        "drafter",
        ["drafter", "what it is", "runs", "needs", "server for `drafter.url=`"],
        drafter_row,
    ),
}


def table(name: str) -> str:
    kind, head, row = PAGES[name]
    rows = [head, ["---"] * len(head), *map(row, built_in(kind))]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in rows)


def updated(name: str, page: str) -> str:
    """The page with its table made anew."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table(name)}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    for name in PAGES:
        path = HERE / name
        path.write_text(updated(name, path.read_text(encoding="utf-8")), encoding="utf-8")
        sys.stdout.write(f"{path}: written\n")
