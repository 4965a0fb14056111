"""A target as data: `Profile` says what a model is called, how it is prompted, how it writes; `profile_component` makes
it a target. What data cannot say goes into a subclass of `ProfileTarget`, named by the profile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass, replace
from functools import partial
from typing import Any, get_type_hints

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.inputs import cells
from hsdkit_plugins.targets.transformers_target import CheckpointConfig, TransformersTarget

from hsdkit.components import Component, Requirement
from hsdkit.regions import Label


@dataclass(frozen=True)
class ProfileConfig(CheckpointConfig):
    """Options of every target that is a profile; the defaults are the profile's.

    model: Hugging Face id or local folder.
    page_prompt: the instruction for a whole page.
    text_prompt, table_prompt, formula_prompt: instructions for crops of regions, by label; text_prompt is for all that
        are neither table nor formula.
    """

    page_prompt: str = ""
    text_prompt: str = ""
    table_prompt: str = ""
    formula_prompt: str = ""


class ProfileTarget(TransformersTarget):
    """A target made of a profile and the user's options."""

    def __init__(self, profile: Profile, config: ProfileConfig) -> None:
        self.name = profile.name
        self.model_types = profile.model_types
        self.end_tokens = profile.end_tokens
        self.written_tokens = profile.written_tokens
        self.system = profile.system
        self.image_tokens = profile.image_tokens
        self.processor_class = profile.processor_class
        self.model_class = profile.model_class
        self.register = profile.register
        self.profile = profile
        if config.model != profile.model and config.revision == profile.revision:
            config = replace(config, revision=None)  # the profile's commit is one of its own model
        super().__init__(config, profile.dialect)
        self._prompts = {Label.TABLE: config.table_prompt, Label.FORMULA: config.formula_prompt}
        self._page_prompt, self._text_prompt = config.page_prompt, config.text_prompt

    def prompt(self, label: Label | None) -> str:
        return self._page_prompt if label is None else self._prompts.get(label, self._text_prompt)


@dataclass(frozen=True)
class Profile:
    """What hsdkit has to know of a model that `transformers` loads.

    name, summary: as `hsdkit plugins` shows them; the target is chosen by `target=NAME`.
    model, revision: the default checkpoint: hub id and, where known, the 40 hex digits of a commit.
    model_types: the `model_type`s of config.json it can be; empty for any.
    page: the instruction for a whole page.
    text, table, formula: instructions for crops; a None text is the page's instruction, a None table or formula the
        text's.
    dialect: how the model writes, so that drafts are written alike.
    dpi: resolution of PDF pages the model reads best.
    min_pixels, max_pixels: bounds of the image it sees; None for the checkpoint's own.
    end_tokens: tokens, as text, that end its output beside those of its generation settings.
    written_tokens: special tokens, as text, that belong to what it writes: tags of tables, boxes, labels.
    system: the system message of its chat, None for none.
    image_tokens: how many image tokens stand for a grid of `height` x `width` merged cells.
    processor_class: the class of `transformers` that lays out image tokens, for models without such a grid.
    model_class: the class of `transformers` it is, where its config.json names another one.
    register: called before the checkpoint is read; registers model classes of our own with the Auto classes.
    config, target: subclasses with options or behaviour beyond this.
    """

    name: str
    summary: str
    model: str
    page: str
    text: str | None = None
    table: str | None = None
    formula: str | None = None
    revision: str | None = None
    model_types: frozenset[str] = frozenset()
    dialect: Dialect = field(default_factory=Dialect)
    dpi: int = 144
    min_pixels: int | None = None
    max_pixels: int | None = None
    end_tokens: tuple[str, ...] = ()
    written_tokens: tuple[str, ...] = ()
    system: str | None = None
    image_tokens: Callable[[int, int], int] = cells
    processor_class: str | None = None
    model_class: str | None = None
    register: Callable[[], None] | None = None
    config: type[ProfileConfig] = ProfileConfig
    target: type[ProfileTarget] = ProfileTarget

    @property
    def defaults(self) -> dict[str, Any]:
        """Of the options, by name."""
        text = self.page if self.text is None else self.text
        return {
            "model": self.model,
            "revision": self.revision,
            "dpi": self.dpi,
            "min_pixels": self.min_pixels,
            "max_pixels": self.max_pixels,
            "page_prompt": self.page,
            "text_prompt": text,
            "table_prompt": text if self.table is None else self.table,
            "formula_prompt": text if self.formula is None else self.formula,
        }


def config_class(profile: Profile) -> type[ProfileConfig]:
    """The profile's config class with the profile's values as defaults."""
    base = profile.config
    defaults = profile.defaults
    types = get_type_hints(base)
    options = [(name, types[name], value) for name, value in defaults.items()]
    name = f"{profile.name.title().replace('_', '')}Config"
    made: type[ProfileConfig] = make_dataclass(name, options, bases=(base,), frozen=True)
    made.__module__ = base.__module__
    made.__doc__ = f"Options of `{profile.name}`."
    return made


def profile_component(profile: Profile) -> Component:
    """The component that a plugin's `hsdkit_components` returns for a profile."""
    return Component(
        kind="target",
        name=profile.name,
        summary=profile.summary,
        config=config_class(profile),
        factory=partial(profile.target, profile),
        requires=(Requirement("torch", "hsdkit"), Requirement("transformers", "hsdkit")),
    )
