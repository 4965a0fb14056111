"""Where configuration comes from: each source is read into assignments, which remember it for error messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf

from hsdkit.components import KINDS, Kind
from hsdkit.errors import ConfigError
from hsdkit.suggestions import did_you_mean, nearest

COMMAND_LINE = "command line"

#: The section of an experiment that makes it a study.
STUDY = "sweep"


@dataclass(frozen=True, slots=True)
class Assignment:
    """`key=value` from one source.

    `literal`: the value is text from the command line, still to be read according to the option's type. `owner`: the
    component its source names for the key's kind; the value was written for that one.
    """

    key: str
    value: Any
    origin: str
    literal: bool = False
    owner: str | None = None

    @property
    def kind(self) -> Kind | None:
        return next((k for k in KINDS if self.key.startswith(f"{k}.")), None)

    @property
    def option(self) -> str:
        """The key without its kind."""
        return self.key.removeprefix(f"{self.kind}.")


def default_layer() -> list[Assignment]:
    """`config.yaml`: which components are chosen when nobody says."""
    return _read(_data("config.yaml"), "config.yaml")


def component_layer(kind: Kind, name: str) -> list[Assignment]:
    """`KIND/NAME.yaml`, the shipped options of a component, if there is such a file."""
    source = _data(kind, f"{name}.yaml")
    origin = f"{kind}/{name}.yaml"
    return _assignments({kind: _mapping(source, origin)}, origin) if source.is_file() else []


def experiment_layers(choice: Assignment | None) -> list[Assignment]:
    """The chosen experiment, after the one it builds on (its own `experiment:` key), if any."""
    layers = [[a for a in layer if a.key not in ("experiment", STUDY)] for layer in _chain(choice)]
    return [a for layer in reversed(layers) for a in layer]


def study_axes(choice: Assignment | None) -> dict[str, Any]:
    """What the experiment says under `sweep:`, or else the one it builds on: axes for `hsdkit sweep`, {} for none.
    Raises `ConfigError` when that is no mapping."""
    for layer in _chain(choice):
        for a in layer:
            if a.key == STUDY:
                if not isinstance(a.value, Mapping):
                    raise ConfigError(f"{a.origin}: {STUDY} must be a mapping from options to lists of values")
                return dict(a.value)
    return {}


def study_note(name: str) -> str:
    """What a run is told of an experiment that is a study."""
    return (
        f"experiment {name} is a study, this is one run of it: `hsdkit sweep experiment={name}` goes through them all"
    )


def _chain(choice: Assignment | None) -> list[list[Assignment]]:
    """The layer of the chosen experiment, then those of the ones it builds on."""
    layers: list[list[Assignment]] = []
    seen: list[str] = []
    while choice is not None and choice.value not in (None, "null"):
        name = str(choice.value)
        if name in seen:
            raise ConfigError(f"experiments build on each other in a circle: {' -> '.join([*seen, name])}")
        seen.append(name)
        layers.append(_read(_experiment(name, choice.origin), f"experiment {name}"))
        choice = next((a for a in layers[-1] if a.key == "experiment"), None)
    return layers


def experiments() -> list[str]:
    """Names of the shipped experiments."""
    folder = _data("experiment")
    return sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))


def override_layer(overrides: Iterable[str] | Mapping[str, Any]) -> list[Assignment]:
    """`key=value` strings (command line) or a mapping (keyword arguments)."""
    if isinstance(overrides, Mapping):
        return _assignments(overrides, "argument")
    layer: dict[str, str] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ConfigError(f"{COMMAND_LINE}: {text!r} is not of the form key=value")
        layer[key] = value
    return [
        Assignment(f"{key}.name" if key in KINDS else key, value, COMMAND_LINE, literal=True)
        for key, value in layer.items()
    ]


def _data(*parts: str) -> Traversable:
    return files("hsdkit_conf").joinpath(*parts)


def _experiment(name: str, origin: str) -> Traversable:
    if name.endswith((".yaml", ".yml")) or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise ConfigError(f"{origin}: no experiment file {name}")
        return path
    if name in experiments():
        return _data("experiment", f"{name}.yaml")
    hint = did_you_mean(nearest(name, experiments()))
    known = ", ".join([*experiments(), "or the path of a YAML file"])
    raise ConfigError(f"{origin}: no experiment {name!r}:{hint} known: {known}")


def _read(source: Traversable, origin: str) -> list[Assignment]:
    return _assignments(_mapping(source, origin), origin)


def _mapping(source: Traversable, origin: str) -> dict[str, Any]:
    try:
        tree = OmegaConf.create(source.read_text(encoding="utf-8"))
        if not isinstance(tree, DictConfig):
            raise ConfigError(f"{origin}: expected `key: value` lines")
        plain = OmegaConf.to_container(tree, resolve=True)
    except (yaml.YAMLError, OSError, UnicodeDecodeError, ValueError) as e:
        raise ConfigError(f"{origin} cannot be read: {' '.join(str(e).split())}") from None
    assert isinstance(plain, dict)
    return {str(k): v for k, v in plain.items()}


def _assignments(tree: Mapping[str, Any], origin: str) -> list[Assignment]:
    """Flatten to one assignment an option; what is below an option stays its value."""
    found = []
    for key, value in tree.items():
        if key not in KINDS:
            found.append(Assignment(key, value, origin))
        elif isinstance(value, Mapping):
            owner = value.get("name")
            found += [Assignment(f"{key}.{k}", v, origin, owner=owner) for k, v in value.items()]
        else:
            found.append(Assignment(f"{key}.name", value, origin))
    return found
