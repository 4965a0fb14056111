"""Axes of a sweep: which options take which values, from the command line and from a study's `sweep:` section."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hsdkit.config_layers import COMMAND_LINE
from hsdkit.errors import ConfigError

#: Options of a run that are the same for all cells: a comma in them is part of the value.
SAME_FOR_ALL = frozenset({"input", "output", "pages", "password", "save_drafts"})

_PAIRS = {"[": "]", "{": "}", "(": ")"}


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an axis: what tables call it, and the `key=value` overrides it stands for."""

    label: str
    overrides: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Axis:
    """An option with its values, or named variants, each of several options."""

    key: str
    values: tuple[Value, ...]

    @property
    def keys(self) -> frozenset[str]:
        """The options that its values set."""
        return frozenset(o.partition("=")[0] for v in self.values for o in v.overrides)


def split_values(text: str) -> list[str]:
    """A comma list. Commas in brackets and in quotes divide nothing; quotes around a whole value are taken off."""
    values, start, closing, quote = [], 0, [""], ""
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'" and not text[start:i].strip():  # only where a value begins: an apostrophe is no quote
            quote = c
        elif c in _PAIRS:
            closing.append(_PAIRS[c])
        elif c == closing[-1]:
            closing.pop()
        elif c == "," and len(closing) == 1:
            values.append(text[start:i])
            start = i + 1
    return [_unquoted(v.strip()) for v in [*values, text[start:]]]


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def read_axes(overrides: Iterable[str], study: Mapping[str, Any] | None = None) -> tuple[list[str], list[Axis]]:
    """The overrides that hold for all cells, and the axes: those of the study, then those of the command line.

    What is given on the command line for the key of a study's axis takes the place of that axis. Raises `ConfigError`
    for what is no list of values, and where two axes, or an axis and an override, set the same option.
    """
    fixed: dict[str, str] = {}
    given: dict[str, Axis | None] = {}
    for text in overrides:
        key, equals, value = text.partition("=")
        values = split_values(value) if equals and key not in SAME_FOR_ALL else [value]
        given.pop(key, None)  # the last word decides, the order of axes too
        if len(values) > 1:
            given[key] = _axis(key, list(dict.fromkeys(values)), COMMAND_LINE)
            fixed.pop(key, None)
        else:
            given[key] = None
            fixed[key] = text if key in SAME_FOR_ALL or not equals else f"{key}={values[0]}"
    axes = [_axis(k, v, "sweep") for k, v in (study or {}).items() if k not in given]
    axes += [axis for axis in given.values() if axis]
    _no_clash(fixed, axes)
    return list(fixed.values()), axes


def _axis(key: str, values: Any, origin: str) -> Axis:
    if isinstance(values, Mapping) and values:
        return Axis(key, tuple(_variant(key, str(name), options) for name, options in values.items()))
    if not isinstance(values, list) or not values or any(v == "" for v in values):
        raise ConfigError(f"{origin}: {key}={values!r} is no list of values, such as {key}=A,B")
    texts = [_text(v) for v in values]
    return Axis(key, tuple(Value(text, (f"{key}={text}",)) for text in texts))


def _variant(axis: str, name: str, options: Any) -> Value:
    if not isinstance(options, Mapping):
        raise ConfigError(f"sweep: {axis}: {name!r} must be a mapping from options to values")
    return Value(name, tuple(f"{key}={_text(value)}" for key, value in options.items()))


def _text(value: Any) -> str:
    """A value of YAML as it is written on the command line."""
    return value if isinstance(value, str) else json.dumps(value)


def _no_clash(fixed: Mapping[str, str], axes: Iterable[Axis]) -> None:
    seen: dict[str, str] = {}
    for axis in axes:
        for key in sorted(axis.keys):
            if key in fixed:
                raise ConfigError(f"{fixed[key]}: {key} is set by the axis {axis.key!r}; leave one of them out")
            if key in seen:
                raise ConfigError(f"{key} is set by the axes {seen[key]!r} and {axis.key!r}; leave one of them out")
            seen[key] = axis.key
