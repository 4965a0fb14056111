"""What decoding costs and how long it takes elsewhere: from a model's config and the recorded steps of a run (paper,
Appendix B)."""

from hsdkit.roofline.costs import BYTES, Cost, Pass, decoder_cost, vision_cost
from hsdkit.roofline.devices import CPU, DEVICES, Device, Machine, device
from hsdkit.roofline.measured_engine import MeasuredEngine
from hsdkit.roofline.predict import Prediction, SideWork, Times, predict, sides, speedup_of_sums
from hsdkit.roofline.records import Records, load
from hsdkit.roofline.shape import Shape, read_shape

__all__ = [
    "BYTES",
    "CPU",
    "DEVICES",
    "Cost",
    "Device",
    "Machine",
    "MeasuredEngine",
    "Pass",
    "Prediction",
    "Records",
    "Shape",
    "SideWork",
    "Times",
    "decoder_cost",
    "device",
    "load",
    "predict",
    "read_shape",
    "sides",
    "speedup_of_sums",
    "vision_cost",
]
