"""The cells of a sweep: the product of its axes, each composed like a run; what cannot be composed has its reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from hsdkit.bench import check_measurable
from hsdkit.config import RunConfig, compose
from hsdkit.errors import ConfigError, PluginError
from hsdkit.plugins import Plugins
from hsdkit.study.axes import Axis


@dataclass(frozen=True)
class Cell:
    """One combination: the label of its value on each axis, and its configuration, or why there is none."""

    at: tuple[str, ...]
    config: RunConfig | None
    reason: str = ""


@dataclass(frozen=True)
class Plan:
    """All cells in the order of the axes, the last one changing fastest. `notes` are those of their composition."""

    axes: tuple[Axis, ...]
    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(axis.key for axis in self.axes)

    @property
    def first(self) -> RunConfig:
        return next(c.config for c in self.cells if c.config)


def make_plan(
    fixed: Sequence[str], axes: Sequence[Axis], inputs: Iterable[str] = (), registry: Plugins | None = None
) -> Plan:
    """Compose every combination. Raises `ConfigError` when none can be: an axis that applies to no cell is an error,
    one that does not apply to some cells is their reason."""
    inputs = list(inputs)
    cells = []
    for values in product(*(axis.values for axis in axes)):
        overrides = [*fixed, *(o for value in values for o in value.overrides)]
        at = tuple(value.label for value in values)
        try:
            config = compose(overrides, inputs=inputs, registry=registry)
            check_measurable(config)
            cells.append(Cell(at, config))
        except (ConfigError, PluginError) as e:
            cells.append(Cell(at, None, str(e)))
    if all(c.config is None for c in cells):
        reasons = dict.fromkeys(c.reason for c in cells)
        more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
        whole = f"no cell of the sweep can run: {next(iter(reasons))}{more}"
        raise ConfigError(whole if len(cells) > 1 else next(iter(reasons)))
    notes = dict.fromkeys(n for c in cells if c.config for n in c.config.notes)
    return Plan(tuple(axes), tuple(cells), tuple(notes))
