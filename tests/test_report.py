"""The report: who wrote each token, the drawings' numbers, one safe self-contained file, flat memory."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.report import ReportWriter
from hsdkit.report.figures import histogram, strip, ticks, timeline
from hsdkit.report.safe_html import render
from hsdkit.report.tokens import Origin, Run, runs, shares
from hsdkit.report.writer import duration
from hsdkit.results import Attempt, PageResult, SequenceResult, StageResult, StageTimes, Step

HOSTILE = (
    "</title></pre><script>alert(1)</script><img src=x onerror=alert(1)>\" onmouseover='alert(1)' {{ 7*7 }} &amp; \x00"
)
VOID = {"meta", "img", "br", "input", "rect", "path", "hr", "link"}


def sequence(steps: list[Step], pieces: str | None = None) -> SequenceResult:
    count = 1 + sum(s.emitted for s in steps)
    letters = tuple(pieces) if pieces else tuple("abcdefghijklmnopqrstuvwxyz"[i % 26] for i in range(count))
    return SequenceResult(tuple(range(count)), "".join(letters), "eos", tuple(steps), letters)


def a_page(number: int = 1, text: str = "x", **more: object) -> PageResult:
    steps = [Step(8, 5, True, "pointer", 0.01), Step(8, 0, True, "", 0.01), Step(0, 0, True, "", 0.01)]
    region = Region(Box(10, 10, 90, 40), Label.TEXT, text, score=0.9)
    first = StageResult("regions", (sequence(steps),) * 2, StageTimes(0.01, 0.02, 0.03, 0.01), 3, (0, 1))
    last = StageResult("page", (sequence(steps),), StageTimes(0.02, 0.02, 0.03, 0.005), 3)
    page = PageResult(
        number, text, text, "eos", "hsd", 1.0, 100, 140, Draft((region, region), "pdftext", 0.05, (text,)),
        (first, last), 0.2, (text,),
    )  # fmt: skip
    return replace(page, **more)  # type: ignore[arg-type]


def write(path: Path, *pages: PageResult, source: str = "a.pdf", error: str | None = None) -> str:
    with ReportWriter(
        path, source, {"target": {"name": "tiny"}, "verifier": {"name": "hsd"}}, {"torch": "2"}
    ) as report:
        for page in pages:
            report.add(page, Image.new("RGB", (100, 140), "white"))
        report.close(error)
    return path.read_text(encoding="utf-8")


class Structure(HTMLParser):
    """Collects tags, attributes and text, and checks that tags nest."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


# ---- who wrote each token


def test_each_step_gives_its_accepted_tokens_then_the_models_own() -> None:
    steps = [Step(8, 3, True, "pointer", 0.01), Step(4, 0, True, "", 0.01), Step(0, 0, True, "", 0.01)]
    found = [(r.origin, "".join(r.pieces), r.first) for r in runs(sequence(steps))]
    assert found == [
        (Origin.MODEL, "a", 0),
        (Origin.ACCEPTED, "bcd", 1),
        (Origin.CORRECTED, "e", 1),
        (Origin.CORRECTED, "f", 2),
        (Origin.MODEL, "g", 3),
    ]


def test_a_draft_accepted_to_its_end_is_not_called_corrected() -> None:
    found = runs(sequence([Step(3, 3, True, "pointer", 0.01)]))
    assert [r.origin for r in found] == [Origin.MODEL, Origin.ACCEPTED, Origin.MODEL]
    assert "all 3 drafted were accepted" in found[-1].caption


def test_a_sequence_that_ends_inside_the_draft_has_no_token_of_the_models_own() -> None:
    found = runs(sequence([Step(9, 4, False, "pointer", 0.01)]))
    assert [r.origin for r in found] == [Origin.MODEL, Origin.ACCEPTED]


def test_undrafted_steps_join_into_one_run() -> None:
    found = runs(sequence([Step(0, 0, True, "", 0.001)] * 50))
    assert [(r.first, r.last, len(r.pieces)) for r in found] == [(0, 0, 1), (1, 50, 50)]
    assert found[1].caption == "steps 1 to 50 · written by the model, nothing drafted · 50.0 ms"


STEPS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans()).map(
        lambda t: Step(max(t[:2]), min(t[:2]), t[2], "pointer", 0.001)
    ),
    max_size=30,
)


@given(STEPS)
def test_runs_hold_every_token_once_and_agree_with_the_shares(steps: list[Step]) -> None:
    decoded = sequence(steps)
    found = runs(decoded)
    assert "".join(p for r in found for p in r.pieces) == decoded.text
    count = dict.fromkeys(Origin, 0)
    for run in found:
        assert isinstance(run, Run)
        assert run.pieces
        count[run.origin] += len(run.pieces)
    assert count == shares([decoded])


def test_what_the_repetition_guard_cut_off_counts_for_nobody() -> None:
    whole = sequence([Step(6, 6, True, "self", 0.001)] * 20)
    cut = replace(whole, tokens=whole.tokens[:9], pieces=whole.pieces[:9], finish_reason="loop")
    assert shares([cut]) == {Origin.ACCEPTED: 7, Origin.CORRECTED: 0, Origin.MODEL: 2}


# ---- drawings


def test_the_timeline_puts_the_phases_end_to_end() -> None:
    line = timeline(a_page())
    assert [lane.name for lane in line.lanes] == ["Draft", "Stage 1 · regions", "Stage 2 · page"]
    assert [b.start for lane in line.lanes for b in lane.bars] == pytest.approx([0, 0.05, 0.06, 0.08, 0.11, 0.13, 0.15])
    assert (line.end, line.rest, line.overlapped) == (0.2, pytest.approx(0.02), False)


def test_the_timeline_says_when_phases_overlapped() -> None:
    line = timeline(a_page(seconds=0.1))
    assert line.overlapped
    assert line.end == pytest.approx(0.18)


@given(st.floats(1e-4, 1e4))
def test_axis_marks_are_few_and_inside(end: float) -> None:
    marks = ticks(end)
    assert 1 <= len(marks) <= 9
    assert all(0 < m < end for m in marks)


@given(STEPS)
def test_the_histogram_counts_every_step(steps: list[Step]) -> None:
    columns = histogram([StageResult("page", (sequence(steps),))])
    assert sum(c.page for c in columns) == len(steps)
    assert sum(c.page for c in columns if c.label == "0") == sum(s.accepted == 0 for s in steps)


def test_a_page_of_many_steps_draws_few_bars() -> None:
    drawn = strip([Step(4, 2, True, "", 0.001)] * 10_000)
    assert len(re.findall("M", drawn.hit)) <= 600
    assert drawn.most == 2


# ---- safe HTML


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<table><tr><td><script>alert(1)</script><img src=x onerror=alert(1)></td></tr></table>",
        '<table onclick="x"><tr><td style="a" colspan="2" rowspan="js:1"><a href="javascript:x">t</a></td></tr>',
        "[x](javascript:alert(1)) ![y](http://example.com/a.png) <http://example.com>",
        "[a]: javascript:alert(1)\n\n[a]",
        "```html\n<script>\n```\n`<b onclick=x>`",
        "<TABLE><tr><td>a<table><tr><td>b</table>",
        "<table><!-- --><svg/onload=x><td>a</td><tr><th>b",
        "<table></td></tr></table></div></article>",
    ],
)
def test_untrusted_markdown_becomes_harmless(text: str) -> None:
    allowed = {"p", "table", "thead", "tbody", "tr", "td", "th", "br", "pre", "code", "em", "strong"}
    found = Structure(f"<div>{render(text)}</div>")
    assert {tag for tag, _ in found.tags} <= allowed | {"div"}
    assert all(set(attrs) <= {"colspan", "rowspan", "class"} for _, attrs in found.tags)


@given(st.text(st.sampled_from("<>/table trd=\"'&\n|-*#`[]()!1h"), max_size=120))
def test_any_markdown_gives_well_nested_html(text: str) -> None:
    found = Structure(f"<div>{render(text)}</div>")
    assert not {"script", "a", "img", "style", "iframe"} & {tag for tag, _ in found.tags}


def test_markdown_of_document_parsers_is_rendered() -> None:
    html = render('# T\n\n- a\n- b\n\n<table><tr><td colspan="2">x &amp; y</td></tr></table>\n\nend *now*')
    assert "<h1>T</h1>" in html
    assert "<li>a</li>" in html
    assert '<table><tr><td colspan="2">x &amp; y</td></tr></table>' in html
    assert "<em>now</em>" in html


# ---- the file


def test_the_report_is_well_formed_and_loads_nothing(tmp_path: Path) -> None:
    html = write(tmp_path / "r.html", a_page(1), a_page(2))
    found = Structure(html)
    assert "script" not in {tag for tag, _ in found.tags}
    policy = next(a["content"] for t, a in found.tags if t == "meta" and "http-equiv" in a)
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    addresses = [a[k] or "" for _, a in found.tags for k in ("src", "href") if k in a]
    assert addresses
    assert all(a.startswith(("data:image/jpeg;base64,", "#page-")) for a in addresses)
    assert "url(" not in html
    assert "@import" not in html


def test_hostile_text_stays_text_wherever_it_comes_from(tmp_path: Path) -> None:
    decoded = replace(sequence([Step(9, 3, True, HOSTILE, 0.01)]), pieces=(HOSTILE,) * 5, text=HOSTILE * 5)
    page = a_page(
        1, HOSTILE, error=HOSTILE, verifier=HOSTILE, stages=(StageResult("page", (decoded,)),),
        draft=Draft((Region(Box(0, 0, 9, 9), Label.TEXT, HOSTILE),), HOSTILE, 0.1, (HOSTILE,)),
    )  # fmt: skip
    path = tmp_path / "r.html"
    with ReportWriter(path, HOSTILE, {"target": {"name": HOSTILE}, HOSTILE: HOSTILE}, {HOSTILE: HOSTILE}) as report:
        report.add(page, None)
        report.close(HOSTILE)
    found = Structure(path.read_text(encoding="utf-8"))
    assert not {"script", "iframe"} & {tag for tag, _ in found.tags}
    assert not [a for _, attrs in found.tags for a in attrs if a.startswith("on")]
    assert [t for t, _ in found.tags].count("img") == 0
    assert "49" not in "".join(found.text).split("alert(1)")[1]  # a template in the text is not run


def test_the_tokens_of_the_report_are_the_text_of_the_page(tmp_path: Path) -> None:
    text = "# A\n\n<b>1 < 2 & 3</b>\n  two"
    decoded = sequence([Step(len(text), len(text) - 2, True, "pointer", 0.01)], text)
    html = write(tmp_path / "r.html", a_page(stages=(StageResult("page", (decoded,)),)))
    lxml_html = pytest.importorskip("lxml.html")
    block = lxml_html.fromstring(html).xpath('//div[@class="tokens"]')[0]
    assert "".join(block.xpath("./span//text()")) == text


def test_regions_the_model_names_are_drawn_beside_those_of_the_draft(tmp_path: Path) -> None:
    named = (Region(Box(11, 12, 88, 39), Label.TABLE, "<td>what it says</td>"),)
    html = write(tmp_path / "r.html", a_page(regions=named))
    drawn = [attrs for tag, attrs in Structure(html).tags if tag == "rect"]
    assert [r["x"] for r in drawn] == ["10.0", "10.0", "11.0"]
    assert "table, as the model names it: &lt;td&gt;what it says" in html
    assert "show the 1 the model names" in html
    assert "the model names<" not in write(tmp_path / "s.html", a_page())


def test_a_failed_page_and_an_empty_document_are_told(tmp_path: Path) -> None:
    failed = PageResult(3, error="a.pdf: page 3: cannot be rendered")
    html = write(tmp_path / "r.html", failed)
    assert "a.pdf: page 3: cannot be rendered" in html
    assert "1 failed" in "".join(Structure(html).text)
    Structure(write(tmp_path / "e.html", error="a.pdf: the file is empty"))
    Structure(write(tmp_path / "n.html", a_page(stages=(), draft=Draft())))


def test_a_page_that_no_model_read_says_so(tmp_path: Path) -> None:
    attempts = (Attempt("read", "error", "MemoryError", 0.2), Attempt("draft", kept=True))
    drafted = a_page(stages=(), attempts=attempts, origin="draft")
    said = "".join(Structure(write(tmp_path / "r.html", drafted, a_page(2, finish_reason="time"))).text)
    assert "The model did not read this page" in said
    assert "Attempts: read (error, 200 ms), draft (well, kept, 0.0 ms)" in said
    assert "its time (page_seconds) was over" in said


def test_pages_are_on_disk_before_the_report_ends(tmp_path: Path) -> None:
    report = ReportWriter(tmp_path / "r.html", "a.pdf")
    report.add(a_page(), None)
    assert 'id="page-1"' in (tmp_path / "r.html").read_text(encoding="utf-8")
    report.close()
    report.close()
    assert (tmp_path / "r.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


def test_an_exception_closes_the_report_with_its_reason(tmp_path: Path) -> None:
    def interrupted() -> None:
        with ReportWriter(tmp_path / "r.html", "a.pdf") as report:
            report.add(a_page(), None)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert "KeyboardInterrupt" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_page_of_the_report_is_bounded_whatever_the_image(tmp_path: Path) -> None:
    noise = Image.effect_noise((4000, 3000), 100).convert("RGB")
    with ReportWriter(tmp_path / "r.html", "a.pdf") as report:
        report.add(a_page(width=4000, height=3000), noise)
    assert (tmp_path / "r.html").stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.0042, "4.2 ms"), (0.0862, "86 ms"), (1.236, "1.24 s"), (200, "3 min 20 s")]
)
def test_durations_are_short(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_the_report_says_where_drafts_ended_and_what_they_had_instead(tmp_path: Path) -> None:
    steps = [
        Step(8, 2, True, "pointer", 0.01, "<q>z"),
        Step(8, 0, True, "", 0.01, "zz"),
        Step(0, 0, True, "", 0.01, ""),
    ]
    whole = a_page(stages=(StageResult("page", (sequence(steps),)),))
    html = write(tmp_path / "a.html", whole)
    assert "the draft has: &#39;&lt;q&gt;z&#39;" in html
    cells = re.findall(r"<td>(.*?)</td>", html.split('class="fates"')[1].split("</table>")[0])
    assert cells == ["no region", "3", "5", "40%", "33%", "33%", "", "33%"]
    assert 'class="fates"' not in write(tmp_path / "b.html", a_page())  # of an earlier version
