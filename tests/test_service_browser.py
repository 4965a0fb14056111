"""The page in a real browser: a document is dropped, its pages arrive, its text does no harm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from services import pdf, process

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")

CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on PATH, nor named by CHROMIUM")

#: What a page of a document might say to whoever shows it.
HOSTILE = (
    "# Title\n\n<script>document.title='owned'</script><img src=x onerror=document.title='owned'>\n\n"
    "[a](javascript:document.title='owned') **bold** <table onclick=x><tr><td colspan=2 style=color:red>"
    "<iframe srcdoc='<script>parent.document.title=1</script>'></iframe>cell</td></tr></table>"
)


@pytest.fixture
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as p:
        launched = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


def opened(browser: Any, address: str, complaints: list[str]) -> Any:
    """The page; what the browser complains of, and what is asked of other hosts, is collected."""
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(60_000)
    page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.on("request", lambda r: None if r.url.startswith((address, "blob:")) else complaints.append(r.url))
    page.goto(address)
    return page


def test_a_document_is_dropped_watched_and_downloaded(tmp_path: Path, browser: Any):
    complaints: list[str] = []
    slow = (
        "import time\nverify = toys.ToyVerifier.verify\ndef slowly(self, page, draft, target, engine, on_text=None):\n"
    )
    slow += "    on_text(0, 'the first words'); time.sleep(1)\n    return verify(self, page, draft, target, engine)\n"
    slow += "toys.ToyVerifier.verify = slowly"
    with process(tmp_path, before=slow) as (_, address):
        page = opened(browser, address, complaints)
        page.wait_for_selector("#health.ready")
        assert "64 MB" in page.inner_text("#limits")
        page.fill("#pages", "1-2")
        page.set_input_files("#file", pdf(tmp_path, 5, "report.pdf"))
        page.wait_for_selector(".growing .tokens:has-text('the first words')")
        page.wait_for_selector("#state.done")
        assert page.inner_text("#t-pages") == "2 of 2"
        assert [h.inner_text() for h in page.query_selector_all(".sheet-card h2")] == ["Page 1", "Page 2"]
        assert page.inner_text("#page-1 .rendered") == "page 1 of report.pdf"
        assert page.query_selector("#page-1 .tokens span.accepted") is not None
        assert page.query_selector("#page-1 .tokens span.corrected") is not None
        assert page.query_selector("#page-1 svg g.r-text rect").get_attribute("width") == "10"
        playwright.expect(page.locator("#page-1 img")).to_have_js_property("naturalWidth", 200)
        page.hover("#page-1 .tokens span.corrected")
        assert "after 4 accepted of 8 drafted" in page.inner_text("#caption")
        page.uncheck("#page-1 h3 input >> nth=0")
        assert not page.is_visible("#page-1 svg >> nth=0")

        with page.expect_download() as download:
            page.click("#markdown")
        assert download.value.suggested_filename == "report.pdf.md"
        assert Path(download.value.path()).read_text() == "page 1 of report.pdf\n\npage 2 of report.pdf\n"
        with page.expect_download() as download:
            page.click("#report")
        assert "</html>" in Path(download.value.path()).read_text()

        page.reload()  # the address keeps the job
        page.wait_for_selector("#page-2 .rendered")
        page.click("#delete")
        page.wait_for_selector("#job", state="hidden")
        page.set_input_files("#file", __file__)
        page.wait_for_selector("#problem:has-text('test_service_browser.py')")
    assert [c for c in complaints if "status of 422" not in c] == []


def test_what_a_document_says_stays_text(tmp_path: Path, browser: Any):
    complaints: list[str] = []
    with process(tmp_path, f"verifier.text={HOSTILE}") as (_, address):
        page = opened(browser, address, complaints)
        name = "<img src=x onerror=document.title='owned'>.pdf"
        page.set_input_files(
            "#file", [{"name": name, "mimeType": "application/pdf", "buffer": pdf(tmp_path).read_bytes()}]
        )
        page.wait_for_selector("#page-1 .rendered table")
        assert page.inner_text("#source") == name
        assert page.title() == "hsdkit"
        assert "<script>" in page.inner_text("#page-1 .tokens")
        assert "<script>" in page.inner_text("#page-1 .rendered")
        assert page.query_selector_all("#sheets :is(script, iframe, a, [onclick], [onerror], [style*=color])") == []
        assert [i.get_attribute("alt") for i in page.query_selector_all("#sheets img")] == ["Page 1"]
        assert page.query_selector("#page-1 td").get_attribute("colspan") == "2"
        assert page.query_selector("#page-1 .rendered strong") is not None
        playwright.expect(page.locator("#page-1 img")).not_to_have_js_property("naturalWidth", 0)
    assert complaints == []


def test_the_page_asks_for_the_token_and_works_with_it(tmp_path: Path, browser: Any):
    complaints: list[str] = []
    (tmp_path / "token").write_text("s3cret\n")
    with process(tmp_path, "--token-file", "token") as (_, address):
        page = opened(browser, address, complaints)
        page.wait_for_selector("#token")
        page.fill("#token", "wrong")
        page.click("#token-go")
        page.wait_for_selector("#problem:has-text('asks for a token')")
        page.fill("#token", "s3cret")
        page.press("#token", "Enter")
        page.wait_for_selector("#limits:not(:empty)")
        page.set_input_files("#file", pdf(tmp_path))
        page.wait_for_selector("#state.done")
        playwright.expect(page.locator("#page-1 img")).to_have_js_property("naturalWidth", 200)
    assert [c for c in complaints if "status of 401" not in c] == []
