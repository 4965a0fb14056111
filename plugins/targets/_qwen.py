"""What Qwen2.5-VL and Qwen3-VL share: general models that parse documents as they are told to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.profile import Profile, ProfileConfig, ProfileTarget

from hsdkit.regions import Label

_TABLES = {"html": "tables as HTML (<table><tr><td>)", "markdown": "tables as Markdown"}
_RULES = "Write {tables} and formulas as LaTeX between $$. Write down exactly what is printed, and nothing else."

PAGE = (
    "Convert this document page to Markdown in reading order. Leave out page headers, page footers, page numbers and "
    "pictures. " + _RULES
)
TEXT = "Convert the text in this image to Markdown. " + _RULES
TABLE = "Convert the table in this image. Write {tables}, and nothing else."
FORMULA = "Write the formula in this image as LaTeX between $$, and nothing else."


@dataclass(frozen=True)
class QwenConfig(ProfileConfig):
    """Options beyond those of every profile.

    max_pixels: by default an A4 page at about 180 dpi (3,000 to 4,000 image tokens); larger pages are scaled down.
    tables: how the model is asked to write tables (`{tables}` in a prompt), and how drafts of tables are written.
    """

    tables: Literal["html", "markdown"] = "html"


class QwenTarget(ProfileTarget):
    def __init__(self, profile: Profile, config: QwenConfig) -> None:
        super().__init__(profile, config)
        self.dialect = Dialect(tables=config.tables)
        self._words = _TABLES[config.tables]

    def prompt(self, label: Label | None) -> str:
        return super().prompt(label).replace("{tables}", self._words)


#: A profile but for its name, summary, checkpoint and model types.
qwen_profile = partial(
    Profile,
    page=PAGE,
    text=TEXT,
    table=TABLE,
    formula=FORMULA,
    max_pixels=3_200_000,
    config=QwenConfig,
    target=QwenTarget,
)
