"""CDM: formulas rendered by LaTeX and matched character by character. The official evaluator's own code does it, in a
process of its own; hsdkit only hands the formulas over."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hsdkit.errors import BenchmarkError

#: What its renderer calls.
TOOLS = ("xelatex", "magick", "node")

#: Runs in the evaluator's folder; reads pairs of formulas from stdin, writes their F1 scores as the last line. The
#: package `metrics` is not run: it would import what its other metrics need.
_SCRIPT = """
import json, sys, types
sys.modules["metrics"] = package = types.ModuleType("metrics")
package.__path__ = ["metrics"]
from metrics.cdm_metric import CDM
cdm = CDM(output_root=sys.argv[1])
pairs = json.load(sys.stdin)
print(json.dumps([float(cdm.evaluate(gt, pred, str(i))["F1_score"]) for i, (gt, pred) in enumerate(pairs)]))
"""


#: A formula that must match itself: the evaluator gives 0 without a word for what it cannot render or match.
_CERTAIN = r"x^2 + \frac{a}{b} = \alpha"


class CDM:
    """Raises `BenchmarkError` when `folder` holds no evaluator, its renderer lacks a tool, or it does not even match a
    formula with itself."""

    def __init__(self, folder: Path, python: str) -> None:
        self._folder, self._python = folder, python
        if not (folder / "metrics" / "cdm_metric.py").is_file():
            raise BenchmarkError(
                f"benchmark.cdm={folder}: no metrics/cdm_metric.py there; wanted is a clone of opendatalab/OmniDocBench"
            )
        missing = [tool for tool in TOOLS if not shutil.which(tool)]
        if missing:
            raise BenchmarkError(f"benchmark.cdm={folder}: its renderer needs {', '.join(missing)}, not on the PATH")
        if self.scores([(_CERTAIN, _CERTAIN)]) != [1.0]:
            raise BenchmarkError(
                f"benchmark.cdm={folder}: a formula does not match itself, so every score would be 0. It needs "
                "LaTeX with xeCJK, mathtools and upgreek, ImageMagick 7 that may read PDF (policy.xml), node, and in "
                f"benchmark.cdm_python={python} numpy below 2 and scikit-image 0.20"
            )

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """F1 of each (expected, predicted) formula; 0 where a side cannot be rendered."""
        if not pairs:
            return []
        given = json.dumps([(_bare(expected), _bare(_fenced(predicted))) for expected, predicted in pairs])
        with tempfile.TemporaryDirectory() as folder:
            command = [self._python, "-c", _SCRIPT, folder]
            try:
                done = subprocess.run(
                    command, cwd=self._folder, input=given, capture_output=True, text=True, check=False
                )
            except OSError as e:
                raise BenchmarkError(f"benchmark.cdm_python={self._python}: cannot be run: {e.strerror}") from e
        try:
            return [float(score) for score in json.loads(done.stdout.strip().splitlines()[-1])]
        except (IndexError, ValueError, TypeError) as e:
            said = done.stderr.strip().splitlines()[-1:] or ["no output"]
            raise BenchmarkError(f"benchmark.cdm={self._folder}: CDM failed: {said[0]}") from e


def _bare(latex: str) -> str:
    return latex.strip("$").strip().strip("$").strip()


def _fenced(latex: str) -> str:
    return latex.split("```latex")[-1].split("```")[0]
