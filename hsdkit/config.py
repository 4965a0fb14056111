"""From names, YAML files and `key=value` overrides to one typed, frozen `RunConfig`.

Later layers win: the defaults in the dataclasses, `config.yaml`, `KIND/NAME.yaml` of each chosen component, the
experiment, the command line (or keyword arguments). All YAML lives in the data package `hsdkit_conf`; an experiment may
also be a file of your own, such as the output of `hsdkit run --show-config`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from hsdkit.components import KINDS, Component, Kind
from hsdkit.config_layers import (
    Assignment,
    component_layer,
    default_layer,
    experiment_layers,
    override_layer,
    study_axes,
    study_note,
)
from hsdkit.config_types import convert, describe, field_type, option_names, plain_text, typed_tree
from hsdkit.documents import MAX_PIXELS, check_options
from hsdkit.errors import ConfigError, PluginError
from hsdkit.plugins import Plugins, plugins
from hsdkit.policy import BY_DEFAULT, Action
from hsdkit.protocols import DecodeSettings
from hsdkit.suggestions import did_you_mean, nearest

#: Verifiers share this vocabulary, so an experiment's values for it carry over when another verifier is chosen.
_SHARED_BY_VERIFIERS = frozenset(f.name for f in fields(DecodeSettings))


@dataclass(frozen=True)
class RunOptions:
    """Everything about a run that is no option of a component.

    input: files, folders, globs, or for `hsdkit run` lists of them (@files.txt).
    output: folder for the results; made if it is not there.
    experiment: name of a shipped experiment, or path of a YAML file.
    pages: pages to parse, counted from 1, such as "1-3,7" or "5-"; null for all. A document that
        lacks one of them fails.
    dpi: resolution PDF pages are rendered at; null for what the target prefers.
    password: password of encrypted PDFs; never written to results.
    rotate: turn every page clockwise by 0, 90, 180 or 270 degrees before it is parsed.
    max_pixels: most pixels a page image may have; larger pages are rendered smaller.
    draft: `auto` leaves the draft out where making it would take longer than it saves; `always` never does.
    save_drafts: also write NAME.drafts.json, for drafter=replay drafter.path=NAME.drafts.json.
    reuse_drafts: take the drafts of costly drafters from the cache on disk where it has them, and keep new ones there.
    page_seconds: most seconds that drafting and decoding of a page may take, all attempts together; decoding then ends
        with the step under way, and what was written is kept. null for no limit.
    on_failure: what to try, in this order, where a page failed and it can help: `retry`, `page` (without Stage 1),
        `plain` (without a draft), `rotate` (the page turned), `draft` (the drafter's text, marked as such); [] to give
        up at once.
    concurrency: pages decoded at the same time, sharing the model's passes; `auto` is what the engine profits from, one
        on a CPU. One page alone is decoded fastest.
    preparing: processes that open, render and draft pages ahead of decoding, so that a file or drafter that crashes,
        hangs or eats memory costs its page or draft only; 0 does that in this process. `auto` is 0 for up to four
        pages, else one for every four cores, at most four.
    page_memory: MB of memory that each of these processes may take (not on Windows or macOS).
    prepare_seconds: seconds that preparing a page may take there.
    """

    input: tuple[str, ...] = ()
    output: str = "out"
    experiment: str | None = None
    pages: str | None = None
    dpi: float | None = None
    password: str | None = None
    rotate: Literal[0, 90, 180, 270] = 0
    max_pixels: int = MAX_PIXELS
    draft: Literal["auto", "always"] = "auto"
    save_drafts: bool = False
    reuse_drafts: bool = True
    page_seconds: float | None = None
    on_failure: tuple[Action, ...] = BY_DEFAULT
    concurrency: int | str = "auto"
    preparing: int | str = "auto"
    page_memory: int = 4000
    prepare_seconds: float = 180.0


@dataclass(frozen=True)
class Choice:
    """A chosen component and its options, an instance of `Component.config`."""

    name: str
    options: Any


@dataclass(frozen=True, kw_only=True)
class RunConfig(RunOptions):
    """The composed configuration. `notes` say what of an experiment does not apply to the chosen components, and
    what `HSDKIT_PLUGINS` names in vain."""

    drafter: Choice
    target: Choice
    verifier: Choice
    engine: Choice
    notes: tuple[str, ...] = ()
    composed: dict[str, Any] = field(repr=False)

    def to_yaml(self) -> str:
        """The whole configuration; as a file it is a valid `experiment=FILE`."""
        return yaml.safe_dump(plain_text(self.composed), sort_keys=False, allow_unicode=True, width=120)

    def settings(self) -> dict[str, Any]:
        """Plain values for result files: everything but the input and the password."""
        return {k: v for k, v in self.composed.items() if k not in ("input", "password")}


def compose(
    overrides: Iterable[str] | Mapping[str, Any] = (), *, inputs: Iterable[str] = (), registry: Plugins | None = None
) -> RunConfig:
    """Compose a run.

    `overrides` are `key=value` strings as on the command line, or a mapping from (dotted) keys to values, where a
    component is a name or a mapping with a `name`. `inputs` are added to `input`. Raises `ConfigError` for an unknown
    key, component or value, naming the nearest valid ones and where it came from.
    """
    registry = registry or plugins()
    last = override_layer(overrides)
    experiment = next((a for a in reversed(last) if a.key == "experiment"), None)
    layers = [*default_layer(), *experiment_layers(experiment), *last]
    chosen = {kind: _chosen(registry, kind, layers) for kind in KINDS}
    layers = [a for kind in KINDS for a in component_layer(kind, chosen[kind].name)] + layers

    trees = _schemas(chosen)
    notes: dict[str, None] = {}
    if experiment and study_axes(experiment):
        notes[study_note(str(experiment.value))] = None
    for assignment in layers:
        if note := _foreign(assignment, chosen):
            notes[note] = None
        elif assignment.option != "name":
            _assign(trees, assignment, chosen, registry)
    if found := [*trees["run"].input, *(str(path) for path in inputs)]:
        OmegaConf.update(trees["run"], "input", [plain_text(path) for path in found])
    return _typed(trees, chosen, (*registry.notes, *notes))


def _chosen(registry: Plugins, kind: Kind, layers: list[Assignment]) -> Component:
    choice = next((a for a in reversed(layers) if a.kind == kind and a.option == "name"), None)
    if choice is None:
        raise ConfigError(f"no {kind} chosen: say {kind}=NAME; known: {', '.join(_names(registry, kind)) or 'none'}")
    try:
        return registry.component(kind, str(choice.value))
    except PluginError as e:
        raise ConfigError(f"{choice.origin}: {e}") from None


def _names(registry: Plugins, kind: Kind) -> list[str]:
    return [component.name for component, _ in registry.components(kind)]


def _schemas(chosen: Mapping[Kind, Component]) -> dict[str, DictConfig]:
    """One typed tree for the run and one a component, holding the defaults."""
    trees = {"run": typed_tree(RunOptions)}
    for kind, component in chosen.items():
        try:
            trees[kind] = typed_tree(component.config)
        except Exception as e:  # of a plugin: no dataclass, types no option can have, defaults of another type
            reason = " ".join(str(e).split())
            raise PluginError(f"{kind} {component.name!r} is broken: its options are unusable: {reason}") from e
    return trees


def _foreign(assignment: Assignment, chosen: Mapping[Kind, Component]) -> str | None:
    """A note when the value was written for another component than the chosen one and means nothing to this one."""
    kind, owner = assignment.kind, assignment.owner
    if kind is None or owner is None or owner == chosen[kind].name or assignment.option == "name":
        return None
    if kind == "verifier" and assignment.option in _SHARED_BY_VERIFIERS and _has(chosen[kind], assignment.option):
        return None
    return f"{assignment.origin} sets {assignment.key} for {owner!r}; it does not apply to {kind} {chosen[kind].name!r}"


def _has(component: Component, option: str) -> bool:
    return field_type(component.config, option.split(".")) is not None


def _assign(
    trees: Mapping[str, DictConfig], assignment: Assignment, chosen: Mapping[Kind, Component], registry: Plugins
) -> None:
    kind, key = assignment.kind, assignment.option
    hint = field_type(chosen[kind].config if kind else RunOptions, key.split("."))
    if hint is None:
        raise ConfigError(f"{assignment.origin}: {_unknown(assignment, chosen, registry)}")
    try:
        group = yaml.safe_load(assignment.value) if assignment.literal and is_dataclass(hint) else assignment.value
        if is_dataclass(hint) and isinstance(group, Mapping):  # each option by itself, so that errors name it
            for name, value in group.items():
                part = replace(assignment, key=f"{assignment.key}.{name}", value=value, literal=False)
                _assign(trees, part, chosen, registry)
            return
        OmegaConf.update(trees[kind or "run"], key, convert(assignment.value, hint, assignment.literal))
    except (OmegaConfBaseException, yaml.YAMLError, ValueError, TypeError):
        given = "***" if key == "password" else repr(assignment.value)
        expected = describe(hint, assignment.value)
        raise ConfigError(f"{assignment.origin}: {assignment.key}={given} is not {expected}") from None


def _unknown(assignment: Assignment, chosen: Mapping[Kind, Component], registry: Plugins) -> str:
    kind, key = assignment.kind, assignment.key
    if kind:
        own = option_names(chosen[kind].config)
        elsewhere = [
            c.name for c, _ in registry.components(kind) if c is not chosen[kind] and _has(c, assignment.option)
        ]
        near = [name for name in own if name.endswith(f".{assignment.option}")] or nearest(assignment.option, own)
        said = f"{kind} {chosen[kind].name!r} has no option {assignment.option!r}"
        if near:
            said += f":{did_you_mean([f'{kind}.{n}' for n in near])}"
        elif elsewhere:
            said += f": it is an option of {', '.join(f'{kind}={n}' for n in elsewhere)}"
        return f"{said}{';' if near or elsewhere else ':'} its options: {', '.join(own) or 'none'}"
    known = [f.name for f in fields(RunOptions)] + list(KINDS)
    dotted = [f"{k}.{name}" for k in KINDS for name in option_names(chosen[k].config)]
    near = [k for k in dotted if k.partition(".")[2] == key] or nearest(key, known + dotted)
    return f"no option {key!r}:{did_you_mean(near)} known: {', '.join(known)}, and KIND.OPTION of the chosen components"


def _typed(trees: Mapping[str, DictConfig], chosen: Mapping[Kind, Component], notes: tuple[str, ...]) -> RunConfig:
    run: Any = OmegaConf.to_object(trees["run"])
    check_options(144 if run.dpi is None else run.dpi, run.rotate, run.max_pixels)  # before a model is loaded for it
    _check_processes(run)
    if run.page_seconds is not None and not run.page_seconds > 0:
        raise ConfigError(f"page_seconds={run.page_seconds:g}: must be above 0, or null for no limit")
    values: dict[str, Any] = {f.name: getattr(run, f.name) for f in fields(RunOptions)}
    composed: dict[str, Any] = _plain(trees["run"])
    for kind, component in chosen.items():
        values[kind] = Choice(component.name, _options(trees[kind], component))
        composed[kind] = {"name": component.name} | _plain(trees[kind])
    return RunConfig(**values, notes=notes, composed=composed)


def _check_processes(run: RunOptions) -> None:
    for name, least, most in (("concurrency", 1, 1024), ("preparing", 0, 64)):
        value = getattr(run, name)
        number = isinstance(value, int) and not isinstance(value, bool)
        if value != "auto" and not (number and least <= value <= most):
            raise ConfigError(f"{name}={value}: must be auto, or a number from {least} to {most}")
    if run.page_memory < 200:
        raise ConfigError(f"page_memory={run.page_memory}: must be at least 200 (MB)")
    if not 0 < run.prepare_seconds <= 1_000_000:
        raise ConfigError(f"prepare_seconds={run.prepare_seconds:g}: must be above 0 and at most 1,000,000")


def _plain(value: Any) -> Any:
    """Only what YAML and JSON can hold and `compose` can read again."""
    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, resolve=True, enum_to_str=True)
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, Path) else value


def _options(tree: DictConfig, component: Component) -> Any:
    try:
        return OmegaConf.to_object(tree)
    except (OmegaConfBaseException, ValueError, TypeError) as e:  # the config's own __post_init__ may refuse
        raise ConfigError(f"{component.kind} {component.name!r}: {str(e).splitlines()[0]}") from None
