"""Option types: finding them in config dataclasses, reading command-line text by them, and naming them in errors."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from omegaconf import DictConfig, OmegaConf

from hsdkit.suggestions import did_you_mean, nearest

_NAMES = {int: "an integer", float: "a number", bool: "true or false", str: "text", Path: "a path", type(None): "null"}


def typed_tree(config: type) -> DictConfig:
    """A config dataclass as a tree of its defaults that takes values of the right types only.

    OmegaConf makes the nodes of frozen dataclasses read-only; they are frozen once composed, not before.
    """
    tree: DictConfig = OmegaConf.structured(config)
    _writable(tree)
    return tree


def _writable(node: Any) -> None:
    OmegaConf.set_readonly(node, False)
    if isinstance(node, DictConfig) and not node._is_none():
        for key in node:
            child = node._get_node(key)
            if OmegaConf.is_config(child):
                _writable(child)


def field_type(config: type, path: Sequence[str]) -> Any:
    """The type of a (nested) option of a config dataclass; None when there is none of that name."""
    hint: Any = config
    for part in path:
        inner = [m for m in _members(hint) if is_dataclass(m)]
        if inner:
            hints = get_type_hints(inner[0])
            if part not in hints:
                return None
            hint = hints[part]
        elif get_origin(hint) is dict or hint in (dict, Any):
            hint = (get_args(hint) or (Any, Any))[1]
        else:
            return None
    return hint


def option_names(config: type) -> list[str]:
    """The options of a config dataclass; those of a group, a dataclass itself, as `group.option`."""
    hints = get_type_hints(config)
    groups: dict[str, list[Any]] = {
        f.name: [m for m in _members(hints[f.name]) if is_dataclass(m)] for f in fields(config)
    }
    return [
        name for f, group in groups.items()
        for name in ([f"{f}.{inner}" for inner in option_names(group[0])] if group else [f])
    ]  # fmt: skip


def convert(value: Any, hint: Any, literal: bool) -> Any:
    """Make `value` fit for OmegaConf, which then checks it against the type.

    Text from the command line is read as YAML unless the option holds text, so that `password=0123` stays what it is.
    One value stands for a list of one.
    """
    members = _members(hint)
    listed = any(get_origin(m) in (list, tuple) or m in (list, tuple) for m in members)
    if literal:
        if value == "null" and type(None) in members:
            return None
        if not all(_textual(m) for m in members) and not (listed and not value.startswith("[")):
            value = OmegaConf.from_dotlist([f"value={plain_text(value)}"]).value
            value = OmegaConf.to_container(value, resolve=True) if OmegaConf.is_config(value) else value
    if listed and not isinstance(value, (list, tuple, types.NoneType)):
        value = [value]
    if bool in members and len([m for m in members if m is not type(None)]) == 1 and isinstance(value, (int, float)):
        if value not in (0, 1):
            raise ValueError(value)
        return bool(value)
    return plain_text(value)


def plain_text(value: Any) -> Any:
    """`value` with texts that OmegaConf takes as they stand: a path or a password holds no interpolation."""
    if isinstance(value, str):
        return re.sub(r"(\\*)\$\{", r"\1\1\\${", value)
    if isinstance(value, dict):
        return {k: plain_text(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_text(v) for v in value]
    return value


def texts_in(value: Any) -> Iterator[str]:
    """Every text in nested settings: those that may name files."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from texts_in(inner)


def describe(hint: Any, value: Any = None) -> str:
    """A type in words, with the nearest choices to `value` where it is a list of choices."""
    choices = [c for m in _members(hint) for c in _choices(m)]
    others = [m for m in _members(hint) if not _choices(m)]
    words = [_NAMES.get(m) or _container(m) for m in others]
    if choices:
        words.insert(0, f"one of {', '.join(map(str, choices))}")
    said = " or ".join(words)
    near = nearest(str(value), [str(c) for c in choices]) if choices else []
    return f"{said} ({did_you_mean(near[:1]).strip()})" if near else said


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _choices(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return [e.name for e in hint]
    return []


def _textual(hint: Any) -> bool:
    choices = _choices(hint)
    return hint in (str, Path, type(None)) or (bool(choices) and all(isinstance(c, str) for c in choices))


def _container(hint: Any) -> str:
    origin, args = get_origin(hint) or hint, [a for a in get_args(hint) if a is not Ellipsis]
    if origin in (list, tuple):
        return f"a list (each {describe(args[0])})" if args else "a list"
    if origin is dict or issubclass(origin, Mapping) or is_dataclass(hint):
        return "a mapping"
    return str(getattr(hint, "__name__", hint))
