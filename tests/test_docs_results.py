"""docs/results.md is its own plan: its commands can be meant, its tables have the columns it asks for."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from hsdkit.cli.sweep import OWN, planned
from hsdkit.study.tables import COLUMNS

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def results() -> ModuleType:
    spec = importlib.util.spec_from_file_location("results", ROOT / "docs" / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


def sweeps(results: ModuleType, page: str) -> dict[str, list[str]]:
    found = {name: shlex.split(lines[0])[1:] for name, lines in results.commands(page).items()}
    return {name: words[1:] for name, words in found.items() if words[0] == "sweep"}


def test_every_sweep_of_the_page_can_be_meant_and_is_reported(
    results: ModuleType, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    made = sweeps(results, page)
    assert {"table4", "table7", "table8", "fig3", "fig4", "matching", "stage1"} <= set(made)
    for name, words in made.items():
        own = [w for w in words if w.partition("=")[0] in OWN]
        files = [w for w in words if "=" not in w]
        assert files
        assert all(Path(file).is_file() for file in files)
        plan, _ = planned([w for w in words if w not in own and w not in files], files)
        assert {c.reason for c in plan.cells if "hsdkit[suffix]" not in c.reason} == {""}, name
        assert results.commands(page)[name][1] == f"hsdkit report out/results/{name}"


def test_tables_ask_for_columns_that_reports_have(results: ModuleType, page: str) -> None:
    headers = {c.header for c in COLUMNS}
    made = sweeps(results, page)
    checked = 0
    for kind, what in re.findall(r"<!-- (table|pivot): ([^>]*?) -->", page):
        table, *rest = (part.strip() for part in what.split("|"))
        name, _, file = table.partition("/")
        assert name in results.commands(page)
        if file == "cells":
            words = [w for w in made[name] if "=" in w and w.partition("=")[0] not in OWN]
            plan, _ = planned(words, ["a.pdf"])
            asked = rest[-1].split(",") + (rest[0].split(" x ") if kind == "pivot" else [])
            assert {c.strip() for c in asked} <= headers | set(plan.keys), what
            checked += 1
    assert checked >= 8


PAGE = """
    hsdkit sweep experiment=a output=out/results/a
    hsdkit report out/results/a

<!-- table: a/cells | n, SR -->
old
<!-- end -->

<!-- pivot: a/cells | tau x n | SR, x|y -->
old
<!-- end -->

    hsdkit bench CORPUS/b output=out/results/b_2

<!-- file: b_2/out.md -->
old
<!-- end -->
"""


def test_tables_are_filled_in_from_reports(
    results: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert {name: len(lines) for name, lines in results.commands(PAGE).items()} == {"a": 2, "b_2": 1}
    report = tmp_path / "out" / "results" / "a" / "report"
    report.mkdir(parents=True)
    (report / "cells.md").write_text(
        "## All\n\n| tau | n | SR |\n| --- | --- | --- |\n| 1 | 2 | 3.5 |\n| 1 | 3 | 4 |\n\nword\n"
    )
    page = results.filled(PAGE.replace(", x|y", ""), {"a", "b_2"})
    assert "| n | SR |\n| --- | --- |\n| 2 | 3.5 |\n| 3 | 4 |\n<!-- end -->" in page
    assert "| tau | 2 | 3 |\n| --- | --- | --- |\n| 1 | 3.5 | 4 |" in page
    assert page.count("old") == 1  # what was not measured stays as it is
    assert results.filled(page, {"b_2"}) == page
    (tmp_path / "out" / "results" / "b_2").mkdir()
    (tmp_path / "out" / "results" / "b_2" / "out.md").write_text("- new\n")
    assert "old" not in results.filled(page, {"b_2"})
