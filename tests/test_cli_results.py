"""`hsdkit run`: the files it writes and what it says."""

from __future__ import annotations

import json
import os
from pathlib import Path

from commands import load, run
from PIL import Image
from toys import blank_pdf

from hsdkit.document_result import DocumentResult
from hsdkit.draft_files import load_drafts


def test_a_document_becomes_markdown_and_json(workplace: Path):
    blank_pdf(workplace / "report.pdf", 2)
    result = run("report.pdf")
    assert result.exit_code == 0
    assert Path("out/report.md").read_text() == "page 1 of report.pdf\n\npage 2 of report.pdf\n"
    document = load("out/report.json")
    assert [p.number for p in document.pages] == [1, 2]
    assert document.versions["model"] == "toy-checkpoint"
    assert sorted(os.listdir("out")) == [".hsdkit-job.sqlite", "report.json", "report.md"]


def test_json_holds_summary_histogram_and_times(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    run("a.pdf")
    data = json.loads(Path("out/a.json").read_text())
    page = data["pages"][0]
    assert page["summary"]["accepted_lengths"] == {"4": page["summary"]["steps"]}
    assert page["summary"]["aal"] == 4
    assert page["summary"]["seconds"]["page_decode"] > 0
    assert data["summary"]["pages"] == 1
    assert data["settings"]["verifier"]["name"] == "toy"
    assert page["tau"] == 1


def test_the_summary_says_what_how_fast_and_where(workplace: Path):
    blank_pdf(workplace / "a.pdf", 2)
    output = run("a.pdf", "verifier.tau=0.5").stderr
    assert "a.pdf, page 1:" in output
    assert "1 document, 2 pages" in output
    assert "AAL 4.00" in output
    assert "tau=0.5" in output
    assert "out/a.md" in output
    assert "exact" not in output
    assert "exact (tau=1)" in run("a.pdf").stderr


def test_quiet_says_nothing_but_errors(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    assert run("a.pdf", "--quiet").output == ""
    assert "page 1" in run("a.pdf", "verifier.fail=[1]", "-q").output


def test_stream_prints_the_text_to_stdout(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    assert run("a.pdf", "--stream").stdout == "RAW page 1 of a.pdf\n\n"


def test_report_writes_one_html_a_document(workplace: Path):
    blank_pdf(workplace / "a.pdf", 2)
    assert run("a.pdf", "--report").exit_code == 0
    html = Path("out/a.html").read_text()
    assert html.count("data:image/jpeg;base64,") == 2


def test_a_report_that_fails_costs_no_page(workplace: Path):
    blank_pdf(workplace / "a.pdf", 2)
    Path("out/a.html").mkdir(parents=True)
    result = run("a.pdf", "--report")
    assert result.exit_code == 1
    assert "a.html: the report could not be written" in result.stderr
    assert len(load("out/a.json").pages) == 2


def test_drafts_are_saved_on_request(workplace: Path):
    blank_pdf(workplace / "a.pdf")
    run("a.pdf", "save_drafts=true")
    saved = load_drafts("out/a.drafts.json")
    assert [r.text for r in saved["a.pdf", 1].draft.regions] == ["drafted"]
    first = Path("out/a.json").read_text()
    assert run("a.pdf", "drafter=replay", "drafter.path=out/a.drafts.json").exit_code == 0
    again = load("out/a.json").pages[0]
    assert again.draft.regions == DocumentResult.from_json(first).pages[0].draft.regions


def test_folders_globs_and_same_stems(workplace: Path):
    (workplace / "in").mkdir()
    blank_pdf(workplace / "in/x.pdf")
    Image.new("RGB", (60, 40), "white").save(workplace / "in/x.png")
    blank_pdf(workplace / "y.pdf")
    assert run("in", "y*.pdf", "output=there").exit_code == 0
    assert sorted(p.name for p in Path("there").glob("*.md")) == ["x.pdf.md", "x.png.md", "y.md"]
