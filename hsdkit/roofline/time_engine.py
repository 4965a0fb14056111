"""Measures the engine and model of a recording, in the range of the passes that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from hsdkit.config import compose
from hsdkit.decoding.protocol import TargetModel
from hsdkit.errors import ConfigError
from hsdkit.hub import must_be_fetched
from hsdkit.pipeline import Pipeline
from hsdkit.protocols import Target
from hsdkit.roofline.calibrate import torch_threads
from hsdkit.roofline.measured_engine import MeasuredEngine
from hsdkit.roofline.steps import Work
from hsdkit.roofline.time_prompts import prompt_seconds
from hsdkit.roofline.time_steps import step_seconds

#: Share of the time that goes to verification steps; the others are prompts and images.
_STEPS = 0.8


def recorded_engine(settings: Mapping[str, Any]) -> tuple[TargetModel, Target]:
    """The model of a recording with these settings, made on a CPU, loaded as it was then, and its target. Raises
    `ConfigError`, `PluginError` or `TargetError` where it cannot be, where it would have to be fetched or run code of
    its own (the recording may be anybody's), or where its engine has it elsewhere: its passes cannot be made one by one
    then."""
    chosen = {kind: dict(settings[kind]) for kind in ("target", "engine") if settings.get(kind)}
    options = chosen.get("target", {})
    if options.get("trust_remote_code"):
        raise ConfigError("target.trust_remote_code=true: no code is run because a recording says so")
    if must_be_fetched(model := str(options.get("model") or ""), options.get("revision")):
        raise ConfigError(f"target.model={model}: its weights are not on this machine")
    if "device" in chosen.get("engine", ()):
        chosen["engine"]["device"] = "cpu"
    pipeline = Pipeline(compose(chosen))
    engine: Any = pipeline.engine
    if hasattr(type(engine), "facts"):  # see `Engine`
        raise ConfigError(f"engine={pipeline.config.engine.name} has the model elsewhere")
    engine.load()
    return engine.model, pipeline.target


def measure_engine(
    model: TargetModel, target: Target, made: Work, threads: int | None = None, seconds: float = 15.0
) -> MeasuredEngine:
    """Measure for about `seconds`, with so many CPU threads (None: as torch is set), as wide, long and many rows as the
    passes of `made`, of which there must be some."""
    rows = _up_to(max(p.rows for p in made.passes), 4)
    widths = _up_to(max(p.width for p in made.passes), 2)
    lengths = [p.cached for p in made.passes]
    cached = tuple(sorted({min(lengths), (min(lengths) + max(lengths)) // 2, max(lengths)}))
    longest = max((p.width for p in made.prefills), default=1)
    with torch_threads(threads):
        found = step_seconds(model, rows, widths, cached, _STEPS * seconds)
        prompts, images = prompt_seconds(model, target, longest, (1 - _STEPS) * seconds)
        used = torch.get_num_threads()
    passes = np.array([[[found[r, k, c] for c in cached] for k in widths] for r in rows])
    for axis in range(passes.ndim):  # noise only ever adds: no pass takes longer than a larger one
        passes = np.flip(np.minimum.accumulate(np.flip(passes, axis), axis), axis)
    name = f"this CPU (the recorded model itself, threads={used})"
    table = tuple(tuple(map(tuple, plane)) for plane in passes.tolist())
    return MeasuredEngine(name, rows, widths, cached, table, prompts, images)


def _up_to(most: int, base: int) -> tuple[int, ...]:
    """The powers of `base` below `most`, and `most`."""
    found = [1]
    while found[-1] * base < most:
        found.append(found[-1] * base)
    return (*found, most) if most > 1 else (1,)
