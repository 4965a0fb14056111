"""Devices: published peaks of named ones, or figures of your own. Roofline: the slower of computing and moving data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from hsdkit.errors import ConfigError
from hsdkit.roofline.costs import Cost, Pass, decoder_cost, vision_cost
from hsdkit.roofline.shape import Shape
from hsdkit.suggestions import did_you_mean, nearest


class Machine(Protocol):
    """What can say how long passes take."""

    @property
    def name(self) -> str: ...

    def pass_seconds(self, shape: Shape, p: Pass, dtype: str) -> float: ...

    def vision_seconds(self, shape: Shape, image_tokens: int, dtype: str) -> float: ...


@dataclass(frozen=True, slots=True)
class Device:
    """Peak operations a second by type, peak bytes a second, bytes of memory, and who says so. Nothing is deducted:
    real kernels stay below the peaks, so times are lower bounds, and ratios of them fair guesses."""

    name: str
    flops: Mapping[str, float]
    bandwidth: float
    memory: float
    source: str

    def seconds(self, cost: Cost, dtype: str) -> float:
        return max(cost.flops / self.peak(dtype), cost.bytes / self.bandwidth)

    def ridge(self, dtype: str) -> float:
        """Operations per byte above which computing is what takes the time."""
        return self.peak(dtype) / self.bandwidth

    def peak(self, dtype: str) -> float:
        """Raises `ConfigError` for a type whose peak is not published."""
        if dtype not in self.flops:
            raise ConfigError(f"dtype={dtype}: no peak of {self.name} in it is known; known: {', '.join(self.flops)}")
        return self.flops[dtype]

    def pass_seconds(self, shape: Shape, p: Pass, dtype: str) -> float:
        return self.seconds(decoder_cost(shape.decoder, p, dtype), dtype)

    def vision_seconds(self, shape: Shape, image_tokens: int, dtype: str) -> float:
        return self.seconds(vision_cost(shape.vision, image_tokens, dtype), dtype) if shape.vision else 0.0


def _gpu(name: str, half: float, single: float, bandwidth: float, memory: float, source: str, **more: float) -> Device:
    flops = {"bf16": half, "fp16": half, "fp32": single, **more}
    return Device(name, flops, bandwidth, memory, f"{source}; dense, fp32 without TF32")


#: By name. Tensor-core figures are those without sparsity (the data sheets of L4, H100 and H200 print twice as much).
DEVICES = {
    d.name: d
    for d in (
        _gpu("A100", 312e12, 19.5e12, 2039e9, 80e9, "NVIDIA A100 data sheet (SXM, 80 GB)"),
        _gpu("H100", 989.5e12, 67e12, 3.35e12, 80e9, "NVIDIA H100 data sheet (SXM)", fp8=1979e12),
        _gpu("H200", 989.5e12, 67e12, 4.8e12, 141e9, "NVIDIA H200 data sheet (SXM)", fp8=1979e12),
        _gpu("L4", 121e12, 30.3e12, 300e9, 24e9, "NVIDIA L4 data sheet", fp8=242.5e12),
    )
}
#: This machine, measured.
CPU = "cpu"


def device(name: str) -> Device:
    """A published device, in any spelling of case. Raises `ConfigError` for an unknown one."""
    known = {n.lower(): d for n, d in DEVICES.items()}
    if name.lower() not in known:
        names = [*DEVICES, CPU]
        raise ConfigError(f"device={name}: unknown;{did_you_mean(nearest(name, names))} known: {', '.join(names)}")
    return known[name.lower()]
