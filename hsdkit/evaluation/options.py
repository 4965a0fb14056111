"""The options that only an evaluation has, apart from those of the run that it measures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from hsdkit.benchmarks import Benchmark
from hsdkit.component_options import typed_options
from hsdkit.config import RunConfig, compose
from hsdkit.errors import ConfigError, PluginError
from hsdkit.plugins import Plugins

_OWN = re.compile(r"(benchmark(\.\w+)*|path|limit|subset|baseline)=", re.ASCII)


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """benchmark: name of the benchmark; its options are `benchmark.NAME=VALUE`.
    path: its ground truth, short for `benchmark.path`.
    limit: how many pages to run, spread evenly over the benchmark.
    subset: only pages of these groups, such as `newspaper` or `language=english`; several with commas.
    baseline: a second verifier to run on the same pages, so that speedups can be told; `autoregressive` is plain
    decoding."""

    benchmark: str
    limit: int | None = None
    subset: str | None = None
    baseline: str | None = None
    given: dict[str, str] = field(default_factory=dict)


def split_options(arguments: Iterable[str]) -> tuple[EvalOptions, list[str]]:
    """The options of the evaluation, and the arguments that are the run's. Raises `ConfigError`."""
    arguments = list(arguments)
    own = dict(a.split("=", 1) for a in arguments if _OWN.match(a))
    given = {k.removeprefix("benchmark."): v for k, v in own.items() if k.startswith("benchmark.") or k == "path"}
    if "path" in own and "benchmark.path" in own:
        raise ConfigError("path= and benchmark.path= say the same: give one of them")
    if not own.get("benchmark"):
        raise ConfigError("no benchmark chosen: say benchmark=NAME (`hsdkit plugins benchmark` lists them) and path=")
    options = EvalOptions(
        own["benchmark"], _limit(own.get("limit")), own.get("subset"), own.get("baseline") or None, given
    )
    return options, [a for a in arguments if not _OWN.match(a)]


def _limit(given: str | None) -> int | None:
    if given in (None, "null"):
        return None
    assert given is not None
    if not given.isascii() or not given.isdigit() or int(given) < 1:
        raise ConfigError(f"limit={given}: must be a number of pages from 1 on, or null for all")
    return int(given)


def build_benchmark(options: EvalOptions, registry: Plugins) -> tuple[Benchmark, dict[str, Any]]:
    """The benchmark, and its composed options. Raises `ConfigError`, `PluginError`."""
    try:
        component = registry.component("benchmark", options.benchmark)
    except PluginError as e:
        raise ConfigError(str(e)) from None
    config = typed_options(component, options.given, "benchmark")
    composed = {f.name: getattr(config, f.name) for f in fields(component.config)}
    return registry.build("benchmark", options.benchmark, config), composed


def with_verifier(config: RunConfig, name: str, overrides: Iterable[str], registry: Plugins) -> RunConfig:
    """The same run with another verifier, which decodes within the same limits."""
    try:
        known = {f.name for f in fields(registry.component("verifier", name).config)}
    except PluginError as e:
        raise ConfigError(f"baseline={name}: {e}") from None
    own = config.verifier.options
    kept = [f"verifier.{f.name}={getattr(own, f.name)}" for f in fields(own) if f.name in known & _SHARED]
    others = [a for a in overrides if not a.startswith(("verifier=", "verifier."))]
    return compose([*others, f"verifier={name}", *kept], registry=registry)


#: Limits of decoding that must be the same on both sides.
_SHARED = {"max_new_tokens", "stop_loops"}
