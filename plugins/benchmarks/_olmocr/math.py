"""The test of a formula: rendered by KaTeX as the benchmark does where its renderer is installed, else as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

from rapidfuzz import fuzz

_DELIMITED = (re.compile(r"\\\((.+?)\\\)", re.DOTALL), re.compile(r"\\\[(.+?)\\\]", re.DOTALL))
_DOLLARS = (re.compile(r"\$\$(.+?)\$\$", re.DOTALL), re.compile(r"\$(.+?)\$", re.DOTALL))
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|\S", re.DOTALL)

#: Whether two formulas look the same: (expected, found).
SameLook = Callable[[str, str], bool]


def math(test: Mapping[str, Any], markdown: str) -> str:
    """Why it fails, "" when one of the page's formulas is the one that is asked for."""
    wanted, found = test["math"], list(_formulas(markdown, dollars=not test.get("ignore_dollar_delimited")))
    if wanted in found:
        return ""
    same = _rendered() or _same_latex
    found.sort(key=lambda formula: -fuzz.ratio(formula, wanted))
    if any(same(wanted, formula) for formula in found):
        return ""
    return f"none of the {len(found)} formulas of the page"


def renders() -> bool:
    """Whether formulas are compared as they look."""
    return _rendered() is not None


def _formulas(markdown: str, dollars: bool) -> Iterator[str]:
    for pattern in (*_DELIMITED, *(_DOLLARS if dollars else ())):
        yield from (formula.strip() for formula in pattern.findall(markdown))
        markdown = pattern.sub("", markdown)


def _same_latex(wanted: str, found: str) -> bool:
    """The same commands and characters, spaces apart, which hold no meaning in formulas."""
    return _TOKEN.findall(wanted) == _TOKEN.findall(found)


@cache
def _rendered() -> SameLook | None:
    """The benchmark's own renderer (`pip install "olmocr[bench]"`, a Chromium of playwright); None where it is not
    there or cannot render."""
    if find_spec("olmocr") is None or find_spec("playwright") is None:
        return None
    try:
        from olmocr.bench.katex.render import compare_rendered_equations, render_equation

        if render_equation("x") is None:
            return None
    except Exception:  # no browser, no display: whatever keeps it from rendering
        return None

    def same(wanted: str, found: str) -> bool:
        expected, rendered = render_equation(wanted), render_equation(found)
        return bool(expected and rendered and compare_rendered_equations(expected, rendered))

    return same
