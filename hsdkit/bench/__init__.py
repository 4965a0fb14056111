"""Measures verifiers against each other: same pages, same process, same loaded model, in turn, several rounds."""

from hsdkit.bench.measure import BenchResult, PageFailure, check_measurable, measure
from hsdkit.bench.sample import Difference, Sample
from hsdkit.bench.sides import GENERATE, GenerateSide, Side, VerifierSide
from hsdkit.bench.summary import Spread, Summary, summarise

__all__ = [
    "GENERATE",
    "BenchResult",
    "Difference",
    "GenerateSide",
    "PageFailure",
    "Sample",
    "Side",
    "Spread",
    "Summary",
    "VerifierSide",
    "check_measurable",
    "measure",
    "summarise",
]
