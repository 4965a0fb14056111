"""Measures verifiers against each other: same pages, same process, same loaded model, in turn, several rounds."""

from hsdkit.bench.measure import BenchResult, PageFailure, check_measurable, measure
from hsdkit.bench.sample import Difference, Sample
from hsdkit.bench.saturation import Filled, Saturation, Throughput, saturate, throughputs
from hsdkit.bench.sides import GENERATE, GenerateSide, Side, VerifierSide
from hsdkit.bench.summary import Spread, Summary, summarise

__all__ = [
    "GENERATE",
    "BenchResult",
    "Difference",
    "Filled",
    "GenerateSide",
    "PageFailure",
    "Sample",
    "Saturation",
    "Side",
    "Spread",
    "Summary",
    "Throughput",
    "VerifierSide",
    "check_measurable",
    "measure",
    "saturate",
    "summarise",
    "throughputs",
]
