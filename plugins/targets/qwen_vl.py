"""`qwen_vl`: Qwen2.5-VL and Qwen3-VL of any size, from the hub or a local folder, prompted to parse documents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.transformers_target import CheckpointConfig, TransformersTarget

from hsdkit import hookimpl
from hsdkit.components import Component, Requirement
from hsdkit.regions import Label

_RULES = "Write {tables} and formulas as LaTeX between $$. Write down exactly what is printed, and nothing else."
_TABLES = {"html": "tables as HTML (<table><tr><td>)", "markdown": "tables as Markdown"}

PAGE_PROMPT = (
    "Convert this document page to Markdown in reading order. Leave out page headers, page footers, page numbers and "
    "pictures. " + _RULES
)
TEXT_PROMPT = "Convert the text in this image to Markdown. " + _RULES
TABLE_PROMPT = "Convert the table in this image. Write {tables}, and nothing else."
FORMULA_PROMPT = "Write the formula in this image as LaTeX between $$, and nothing else."


@dataclass(frozen=True)
class QwenVLConfig(CheckpointConfig):
    """Options of `qwen_vl`.

    model: hub id or local folder of a Qwen2.5-VL or Qwen3-VL checkpoint; by default the smallest Qwen3-VL.
    max_pixels: by default an A4 page at about 180 dpi (3,000 to 4,000 image tokens); larger pages are scaled down.
    tables: how the model is asked to write tables, and how drafts of tables are written.
    page_prompt, text_prompt, table_prompt, formula_prompt: instructions for the page and for crops of regions;
        `{tables}` stands for the words about tables.
    """

    model: str = "Qwen/Qwen3-VL-2B-Instruct"
    max_pixels: int | None = 3_200_000
    tables: Literal["html", "markdown"] = "html"
    page_prompt: str = PAGE_PROMPT
    text_prompt: str = TEXT_PROMPT
    table_prompt: str = TABLE_PROMPT
    formula_prompt: str = FORMULA_PROMPT


class QwenVLTarget(TransformersTarget):
    name = "qwen_vl"
    model_types = frozenset({"qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe"})

    def __init__(self, config: QwenVLConfig) -> None:
        super().__init__(config, Dialect(tables=config.tables))
        prompts = {None: config.page_prompt, Label.TABLE: config.table_prompt, Label.FORMULA: config.formula_prompt}
        self._text_prompt = self._filled(config.text_prompt, config)
        self._prompts = {label: self._filled(prompt, config) for label, prompt in prompts.items()}

    @staticmethod
    def _filled(prompt: str, config: QwenVLConfig) -> str:
        return prompt.replace("{tables}", _TABLES[config.tables])

    def prompt(self, label: Label | None) -> str:
        return self._prompts.get(label, self._text_prompt)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [
        Component(
            kind="target",
            name="qwen_vl",
            summary="Qwen2.5-VL and Qwen3-VL, from a hub id or local folder (target.model=...)",
            config=QwenVLConfig,
            factory=QwenVLTarget,
            requires=(Requirement("torch", "hsdkit"), Requirement("transformers", "hsdkit")),
        )
    ]
