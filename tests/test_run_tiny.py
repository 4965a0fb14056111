"""The embedded model through the whole house: file to Markdown, JSON and report, exact against plain decoding."""

from __future__ import annotations

from pathlib import Path

import pypdfium2 as pdfium
import pytest
from typer.testing import CliRunner

from hsdkit import Pipeline, compose
from hsdkit.cli.app import app
from hsdkit.document_result import DocumentResult

LINES = ["A light tool reads the page", "and the model checks it.", "It is the model that writes."]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small born-digital page of three lines of Helvetica."""
    path = tmp_path_factory.mktemp("in") / "small.pdf"
    operators = " T* ".join(f"({line}) Tj" for line in LINES)
    stream = f"BT /F 10 Tf 14 TL 10 60 Td {operators} ET".encode()
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 160 80]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"".join(b"%d 0 obj%s endobj\n" % (n, o) for n, o in enumerate(objects, 1))
    path.write_bytes(b"%PDF-1.4\n" + body + b"trailer<</Root 1 0 R>>")
    assert len(pdfium.PdfDocument(path)) == 1
    return path


def test_a_run_writes_markdown_json_and_report(printed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["run", str(printed), "drafter=pdftext", "--report"])
    assert result.exit_code == 0, result.output
    document = DocumentResult.load("out/small.json")
    page = document.pages[0]
    assert page.error is None
    assert Path("out/small.md").read_text() == document.markdown
    assert "<title>small.pdf" in Path("out/small.html").read_text()
    assert "light tool" in " ".join(r.text for r in page.draft.regions)
    assert document.versions["dtype"] == "float32"
    assert {"hsdkit", "python", "torch", "transformers", "model", "device"} <= set(document.versions)
    assert page.steps < page.page_tokens  # the draft helped


def test_versions_name_the_type_the_model_runs_in_as_soon_as_it_is_loaded():
    pipeline = Pipeline(compose(["verifier=autoregressive"]))
    pipeline.load()
    assert (pipeline.versions()["dtype"], pipeline.versions()["device"]) == ("float32", "cpu")


def test_speculation_says_what_plain_decoding_says(printed: Path):
    texts = {}
    for verifier in ("autoregressive", "hsd", "page", "prompt_lookup"):
        pipeline = Pipeline(compose(["drafter=pdftext", f"verifier={verifier}", "draft=always"]))
        texts[verifier] = pipeline.parse(printed).pages[0].text
    assert texts["autoregressive"].strip()
    assert len(set(texts.values())) == 1, texts
