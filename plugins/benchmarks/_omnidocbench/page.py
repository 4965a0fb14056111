"""The scores of one page: edits of texts and formulas, tables, reading order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hsdkit_plugins.benchmarks._omnidocbench.ground_truth import FORMULA, IGNORED, Element, Truth
from hsdkit_plugins.benchmarks._omnidocbench.lines import expected_lines, predicted_lines
from hsdkit_plugins.benchmarks._omnidocbench.matching import Pair, match
from hsdkit_plugins.benchmarks._omnidocbench.prediction import Block, blocks
from hsdkit_plugins.benchmarks._omnidocbench.tables import cell_texts, table_norm
from hsdkit_plugins.benchmarks._omnidocbench.text import latex_as_unicode, words_only

from hsdkit.metrics.edit import edit_share, edits
from hsdkit.metrics.teds import teds


@dataclass(frozen=True, slots=True)
class Edits:
    """Edits that make one text of another, and the length of the longer one (never 0)."""

    edits: int
    length: int

    @property
    def share(self) -> float:
        return self.edits / self.length


@dataclass(frozen=True, slots=True)
class Formula:
    """A displayed formula: its edits, and both sides as LaTeX for renderers."""

    edits: Edits
    expected: str
    predicted: str


@dataclass(frozen=True, slots=True)
class Table:
    teds: float
    structure: float


@dataclass(frozen=True, slots=True)
class PageScores:
    """`order` is None where the ground truth has no text in any order."""

    texts: tuple[Edits, ...]
    formulas: tuple[Formula, ...]
    tables: tuple[Table, ...]
    order: Edits | None


def score_page(truth: Truth, markdown: str) -> PageScores:
    """What the evaluator finds for one page."""
    predicted = blocks(markdown)
    kinds = dict.fromkeys(block.kind for block in predicted if block.kind in ("text", "formula"))
    # Of blocks at the same place, those of the kind that comes first on the page are first.
    mixed = [block for kind in kinds for block in predicted if block.kind == kind]
    tables: list[Table] = []
    if truth.tables:
        pairs, unused = _tables(truth.tables, predicted)
        tables = [_table(*pair) for pair in pairs]
        mixed += unused
    pairs_of_text: list[Pair] = []
    texts: list[tuple[str, str]] = []
    formulas: list[Formula] = []
    as_text: list[tuple[str, str]] = []
    for pair in match(expected_lines(truth.elements), predicted_lines(mixed)):
        if pair.category == FORMULA:
            if pair.predicted and pair.predicted[0].origin not in ("formula", "inline"):
                as_text.append(_formula_as_text(pair))
            else:
                formulas.append(_formula(pair))
        elif pair.category not in IGNORED:
            pairs_of_text.append(pair)
            texts.append(_compared(*zip(pair.norms, pair.texts, strict=True)))
    found = tuple(_edits(*sides) for sides in texts + as_text if any(sides))
    return PageScores(found, tuple(formulas), tuple(tables), _order(pairs_of_text))


def _edits(expected: Sequence[object], predicted: Sequence[object]) -> Edits:
    return Edits(edits(predicted, expected), max(len(predicted), len(expected)))


def _compared(expected: tuple[str, str], predicted: tuple[str, str]) -> tuple[str, str]:
    """Of (as compared, as written) the first, or where nothing is left of it the second."""
    return expected[0] or expected[1], predicted[0] or predicted[1]


def _formula(pair: Pair) -> Formula:
    expected, predicted = _compared(*zip(pair.norms, pair.texts, strict=True))
    return Formula(
        _edits(expected, predicted), _one_formula(pair.texts_of_expected), _one_formula(pair.texts_of_predicted)
    )


def _one_formula(lines: Sequence[str]) -> str:
    if len(lines) <= 1:
        return "".join(lines)
    rows = " \\\\ ".join("{" + line.strip("$").strip("\n") + "}" for line in lines)
    return "\\begin{array}{l} " + rows + " \\end{array}"


def _formula_as_text(pair: Pair) -> tuple[str, str]:
    """A formula that the prediction writes as text is compared as text."""
    latex = _one_formula(pair.texts_of_expected)
    try:
        expected = latex_as_unicode(latex)
    except Exception:  # of a formula that cannot be parsed the parser raises what it likes
        expected = latex
    return _compared((words_only(expected), expected), (pair.norms[1], pair.texts[1]))


def _order(pairs: Iterable[Pair]) -> Edits | None:
    """Edits between the order of the ground truth and the order in which its texts come in the prediction."""
    placed = [p for p in pairs if [e.position for e in p.expected] != [""]]
    expected = sorted(at for p in placed for at in _positions(p))
    read = sorted((p for p in placed if p.predicted), key=lambda p: p.predicted[0].position)
    predicted = [at for p in read for at in _positions(p)]
    return _edits(expected, predicted) if expected or predicted else None


def _positions(pair: Pair) -> Iterator[float]:
    return (float(e.position) for e in pair.expected if e.position)


def _tables(expected: Sequence[Element], predicted: Sequence[Block]) -> tuple[list[tuple[str, str]], list[Block]]:
    """(expected, predicted) HTML of each table, "" where none was read; and the texts of the tables that are left.

    Where the prediction has more tables in LaTeX than in HTML, none of its tables counts.
    """
    wanted = [table.html for table in expected if table.html]
    found = [block for block in predicted if block.kind == "html_table"]
    latex = sum(block.kind == "latex_table" for block in predicted)
    if not wanted or not found or latex > len(found):
        return [(html, "") for html in wanted], []
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment([[edit_share(html, block.text) for block in found] for html in wanted])
    read = dict(zip(map(int, rows), map(int, columns), strict=True))
    pairs = [(html, found[read[i]].text if i in read else "") for i, html in enumerate(wanted)]
    left = [block for j, block in enumerate(found) if j not in read.values()]
    return pairs, [replace(block, kind="text", text=cell) for block in left for cell in cell_texts(block.text)]


def _table(expected: str, predicted: str) -> Table:
    sides = table_norm(predicted) or predicted, table_norm(expected) or expected
    return Table(_teds(*sides), _teds(*sides, structure_only=True))


def _teds(predicted: str, expected: str, structure_only: bool = False) -> float:
    try:
        return teds(predicted, expected, structure_only)
    except (ValueError, RecursionError):  # spans that are no numbers, tables inside tables without end
        return 0.0
