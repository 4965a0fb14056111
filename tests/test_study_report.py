"""Tables, plots and the page of HTML, from records made by hand; folders of sweeps and of evaluations."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hsdkit.cli.app import app
from hsdkit.errors import DocumentError
from hsdkit.study import fates
from hsdkit.study.evaluated import read
from hsdkit.study.figures import figures, prefill_share
from hsdkit.study.folder_report import Content, html, read_folder, sweep_content
from hsdkit.study.groups import by_document, by_group, by_prefill_share
from hsdkit.study.plots import MATPLOTLIB, draw
from hsdkit.study.records import CellRecord, PageRecord, Store, Turn
from hsdkit.study.series import bars, label, lines, numeric_axes, panels
from hsdkit.study.tables import cells_table, to_csv, to_latex, to_markdown

AXES = ["verifier.tau", "drafter"]


def page(seconds: float = 1.0, number: int = 1, document: str = "in/a.pdf", prefill: float = 0.2, **more) -> PageRecord:  # type: ignore[no-untyped-def]
    turns = tuple(Turn(seconds + d, seconds - 0.5 + d, 0.1, 0.05, prefill) for d in (0.0, 0.01))
    base = tuple(Turn(3.0, 2.5, 0.1, 0.0, prefill) for _ in range(2))
    given = {"text": "abc", "baseline": base, "same": True, "edit": 0.0, "draft_edit": 0.25} | more
    return PageRecord(document, number, turns, 100, 20, 60, 80, 25, "eos", **given)


def record(tau: str = "1", drafter: str = "pdftext", *pages: PageRecord, **more) -> CellRecord:  # type: ignore[no-untyped-def]
    at = {"verifier.tau": tau, "drafter": drafter}
    given = {"rounds": 2, "measured": "2026-01-01", "inputs": {"in/a.pdf": "ab" * 32}} | more
    return CellRecord(f"key-{tau}-{drafter}", at, given.pop("status", "ok"), pages=pages or (page(),), **given)


BROKEN = CellRecord("k", {"verifier.tau": "1", "drafter": "x|y"}, "failed", reason="out of\nmemory_at 100%")


def test_figures_of_a_cell_are_those_of_its_pages() -> None:
    f = figures(record("1", "a", page(1.0), page(2.0, 2, same=False, edit=0.5)))
    assert f is not None
    assert f.sr_e2e is not None
    assert f.sr_e2e.value == pytest.approx(6 / 3.01)
    assert (f.pages, f.tokens_per_step, f.aal, f.forwards, f.same, f.edit, f.draft_edit) == (
        2,
        4,
        3,
        25,
        0.5,
        0.25,
        0.25,
    )
    assert f.seconds == pytest.approx(1.505)
    assert figures(BROKEN) is None
    assert prefill_share(page(prefill=0.6)) == pytest.approx(0.2)


def test_a_failed_cell_is_a_row_with_its_reason() -> None:
    table = cells_table(AXES, [record(), BROKEN])
    assert table.header[-1] == "reason"
    assert [row[-1] for row in table.rows] == ["", "failed: out of\nmemory_at 100%"]
    assert "reason" not in cells_table(AXES, [record()]).header


def test_markdown_and_latex_survive_what_is_in_names() -> None:
    table = cells_table(AXES, [record(), BROKEN], "Cells")
    markdown = to_markdown(table)
    assert len({line.replace("\\|", "").count("|") for line in markdown.splitlines() if line.startswith("|")}) == 1
    assert "out of memory_at" in markdown
    latex = to_latex(table)
    assert r"out of memory\_at 100\%" in latex
    assert latex.count(r"\\") == 3
    assert to_latex(cells_table(["a^b"], [])).count(r"a\textasciicircum{}b") == 1


def test_csv_has_figures_in_full_and_the_ends_of_intervals() -> None:
    [good, bad] = csv.DictReader(io.StringIO(to_csv(cells_table(AXES, [record(metrics={"bleu": 0.5}), BROKEN]))))
    assert float(good["SR_e2e low"]) <= float(good["SR_e2e"]) <= float(good["SR_e2e high"])
    assert (good["bleu"], good["status"], bad["status"], bad["SR_e2e"]) == ("0.5", "ok", "failed", "")


def test_pages_are_told_apart_by_document_group_and_prefill() -> None:
    pages = [page(1.0), page(1.0, 1, "b.pdf", prefill=2.8, groups={"language": "english"})]
    cells = [record("1", "a", *pages)]
    documents = by_document(AXES, cells)
    assert documents is not None
    assert [row[2:4] for row in documents.rows] == [("a.pdf", "1"), ("b.pdf", "1")]
    assert by_document(AXES, [record()]) is None
    shares = by_prefill_share(AXES, cells)
    assert shares is not None
    assert [row[2] for row in shares.rows] == ["up to 20%", "above 80%"]
    assert [row[2] for row in by_group(AXES, cells)["language"].rows] == ["english"]


def fate(tokens: int, accepted: int, **ends: int) -> dict[str, object]:
    return {"steps": sum(ends.values()), "tokens": tokens, "accepted": accepted, "ends": ends}


def test_drafts_are_told_apart_by_region_and_by_group() -> None:
    first = page(fates={"text": fate(90, 80, taken=8, wrong_token=2), "table": fate(10, 0, structure=10)})
    second = page(number=2, fates={"text": fate(10, 10, taken=1)}, groups={"type": "book"})
    table = fates.by_label(AXES, [record("1", "a", first, second), record("0.5", "plain")])
    assert table is not None
    at = {name: i for i, name in enumerate(table.header)}
    rows = [
        [row[at[n]] for n in ("region", "tokens", "accepted %", "wrong token %", "structure %")] for row in table.rows
    ]
    assert rows == [
        ["text", "100", "90.0", "18.2", "0.0"],
        ["table", "10", "0.0", "0.0", "100.0"],
        ["all", "110", "81.8", "9.5", "47.6"],
    ]
    assert table.numbers[0]["wrong_token"] == 2
    types = fates.by_part(AXES, [record("1", "a", first, second)], "type", lambda p: p.groups.get("type"))
    assert types is not None
    assert [row[2:4] for row in types.rows] == [("book", "10")]
    plain = record("1", "a", page(fates={"no region": fate(5, 0, unknown=5)}))
    assert fates.by_label(AXES, [plain]) is None
    made = sweep_content("s", AXES, [record("1", "a", first, second)]).tables
    assert {"drafts_by_region", "drafts_by_type"} <= set(made)


def test_time_outside_the_model_and_stage_1_have_columns() -> None:
    turns = (Turn(1.0, 0.5, 0.1, 0.05, 0.2, host=0.05),)
    cell = CellRecord("k", {}, "ok", pages=(PageRecord("a.pdf", 1, turns, 100, 20, 60, 80, 25, "eos", regions_read=4),))
    table = cells_table([], [cell, record()])
    at = {name: i for i, name in enumerate(table.header)}
    assert [table.rows[0][at[n]] for n in ("host µs", "Stage 1")] == ["2000", "100%"]
    assert table.rows[1][at["Stage 1"]] == "0%"


def test_lines_run_along_axes_of_numbers() -> None:
    cells = [record(t, d) for t in ("1", "0.5") for d in ("pdftext", "noise")] + [BROKEN]
    assert numeric_axes(AXES, cells) == ["verifier.tau"]
    found = lines("verifier.tau", AXES, cells)
    assert {s.name: [x for x, _ in s.points] for s in found} == {"pdftext": [0.5, 1], "noise": [0.5, 1]}
    assert label(cells[0], AXES) == "tau 1, pdftext"
    assert [name for name, _ in bars(AXES, cells[:2])] == ["pdftext", "noise"]


def test_the_price_in_text_has_a_panel_where_there_is_one() -> None:
    exact, other = figures(record()), figures(record("0.5", "a", page(edit=0.1), metrics={"bleu": 0.5}))
    assert exact is not None
    assert other is not None
    assert [c.header for c in panels([exact])] == ["speed-up, end to end", "tokens a step"]
    assert [c.header for c in panels([other])][2:] == ["edit distance to plain decoding", "bleu"]


def test_plots_are_drawn_for_axes_of_numbers_and_for_others() -> None:
    cells = [record(t, d) for t in ("1", "0.5") for d in ("pdftext", "noise")]
    [plot] = draw(AXES, cells)
    assert (plot.name, plot.png[:4]) == ("by_verifier.tau", b"\x89PNG")
    assert b"<svg" in plot.svg
    [chart] = draw(["drafter"], [*cells[:2], BROKEN])
    assert chart.name == "cells"
    assert draw(AXES, [BROKEN]) == []


def test_the_page_escapes_everything_and_loads_nothing() -> None:
    cells = [record("1", "<script>alert(1)</script>"), record("0.5", "b", notes=("<b>note</b>",))]
    page_ = html(sweep_content("<i>study</i>", AXES, cells))
    assert "<script>" not in page_
    assert "<b>note" not in page_
    assert "<i>study" not in page_
    assert "default-src 'none'" in page_
    assert "http" not in page_.replace("http-equiv", "")
    assert "abababababab" in page_
    assert "no cell" not in html(Content("empty", {}))


def test_the_command_writes_tables_plots_and_page(tmp_path: Path) -> None:
    store = Store(tmp_path)
    cells = [record(t) for t in ("1", "0.5")]
    store.plan(AXES, [(c.key, c.at) for c in cells] + [("missing", BROKEN.at)], {"study": "fig4"})
    for cell in cells:
        store.save("cells", cell)
    assert CliRunner().invoke(app, ["report", str(tmp_path)]).exit_code == 0
    made = {f.name for f in (tmp_path / "report").iterdir()}
    assert {"index.html", "cells.md", "cells.csv", "cells.tex", "by_verifier.tau.svg", "by_verifier.tau.png"} <= made
    assert "not measured yet" in (tmp_path / "report" / "cells.md").read_text()


def test_folders_of_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="holds no results"):
        read_folder(tmp_path)
    (tmp_path / "sweep.json").write_text("{")
    with pytest.raises(DocumentError, match=r"sweep\.json: cannot be read"):
        read_folder(tmp_path)
    (tmp_path / "summary.json").write_text("[]")
    with pytest.raises(DocumentError, match="no summary"):
        read(tmp_path)


def test_an_evaluation_makes_tables_too(tmp_path: Path) -> None:
    side = {
        "quality": {"overall": 80.5, "cell/x": 1, "cdm": None},
        "cost": {"aal": 3.25, "seconds": {"draft": 0.5, "page_decode": 1.5}},
        "speedup": {"e2e": 2.5, "decode_without_draft": 4.0},
        "drafts": {**fate(10, 5, taken=2), "aal": 2.5, "labels": {"text": {**fate(10, 5, taken=2), "aal": 2.5}}},
    }
    summary = {
        "pages": 2,
        "sides": {"hsd": side},
        "groups": {"language": {"english": {"sides": {"hsd": side}}, "chinese": {"sides": {"hsd": side}}}},
        "settings": {"contents": {"ground truth": "ab"}, "sides": {"hsd": {"verifier": {"name": "hsd", "tau": 1.0}}}},
        "by_prefill_share": {"hsd": [{"from": 0.0, "to": 0.2, "pages": 2, "e2e": 2.5, "decode": 3.0}]},
        "notes": ["edition v1.5"],
        "errors": [],
    }
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    content = read_folder(tmp_path)
    header = ("verifier", "overall", "cdm", "AAL", "SR_e2e", "SR_decode without drafting")
    assert content.tables["overall"].header == header
    assert content.tables["overall"].rows == (("hsd", "80.5", "-", "3.25", "2.50", "4.00"),)
    assert content.tables["times"].rows == (("draft", "0.50"), ("page_decode", "1.50"))
    assert dict(content.about)["contents.ground truth"] == "ab"
    assert dict(content.about)["hsd.verifier.tau"] == "1.0"
    if MATPLOTLIB.installed:
        assert [plot.name for plot in content.plots] == ["by_language"]
        assert b"<svg" in content.plots[0].svg
        assert b"english" in content.plots[0].svg
    assert content.tables["by_language"].rows[0][0] == "english (hsd)"
    assert content.tables["by_prefill_share"].rows == (("hsd", "0% to 20%", "2", "2.50", "3.00"),)
    assert content.tables["drafts_by_region"].rows[0][:4] == ("hsd", "text", "10", "50.0")
    assert content.tables["drafts_by_language"].rows[0][:2] == ("hsd", "english")
    assert content.notes == ("edition v1.5",)
