"""Options of a component that another one names and builds, such as `drafter=noise drafter.base_options.dpi=200`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from hsdkit.components import Component
from hsdkit.errors import ConfigError, HsdkitError
from hsdkit.suggestions import did_you_mean, nearest


def typed_options(component: Component, values: Mapping[str, Any], prefix: str) -> Any:
    """An instance of `component.config` from plain values; groups of options are mappings.

    `prefix` is how users write the mapping (`drafter.base_options`). Raises `ConfigError` that names option and value,
    and the nearest options where there is none of that name.
    """
    # Plugins import this module when they are listed, which needs no OmegaConf.
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from hsdkit.config_types import convert, describe, field_type, option_names, typed_tree

    tree = typed_tree(component.config)
    for name, value in _flat(component.config, values):
        hint = field_type(component.config, name.split("."))
        if hint is None:
            own = option_names(component.config)
            near = did_you_mean([f"{prefix}.{near}" for near in nearest(name, own)])
            raise ConfigError(
                f"{prefix}.{name}: {component.kind} {component.name!r} has no option {name!r}:{near} "
                f"its options: {', '.join(own) or 'none'}"
            )
        try:
            OmegaConf.update(tree, name, convert(value, hint, literal=False))
        except (OmegaConfBaseException, ValueError, TypeError):
            raise ConfigError(f"{prefix}.{name}={value!r} is not {describe(hint, value)}") from None
    try:
        return OmegaConf.to_object(tree)
    except HsdkitError as e:  # of a component that it names in turn, which calls options as its own user would
        raise type(e)(f"{prefix}: {e}") from None
    except (OmegaConfBaseException, ValueError, TypeError) as e:  # the config's own __post_init__ may refuse
        raise ConfigError(f"{prefix}: {component.kind} {component.name!r}: {str(e).splitlines()[0]}") from None


def _flat(config: type, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Option by option, those of a group as `group.option`."""
    from hsdkit.config_types import field_type

    for name, value in values.items():
        hint = field_type(config, [str(name)])
        if is_dataclass(hint) and isinstance(hint, type) and isinstance(value, Mapping):
            yield from ((f"{name}.{inner}", v) for inner, v in _flat(hint, value))
        else:
            yield str(name), value
