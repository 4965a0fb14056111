"""Results on disk: lossless JSON, whole files or none, finished pages after a kill, names that never collide."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hsdkit.document_result import DocumentResult
from hsdkit.draft_files import load_drafts
from hsdkit.errors import DocumentError, OutputError
from hsdkit.files import write_whole
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.results import PageResult, SequenceResult, StageResult, StageTimes, Step
from hsdkit.results_json import dumps, page_from_json, page_to_json
from hsdkit.totals import Totals
from hsdkit.writing import DocumentHead, result_names, write_document, written_pages

# -- any result at all

texts = st.text(max_size=30)
seconds = st.floats(0, 1e6)
numbers = st.integers(0, 10**6)
reasons = st.sampled_from(["eos", "length", "loop", "error"])
notes = st.lists(texts, max_size=3).map(tuple)
coordinates = st.floats(-1e5, 1e5)
regions = st.builds(
    Region,
    st.builds(Box, coordinates, coordinates, coordinates, coordinates),
    st.sampled_from(Label),
    texts,
    st.sampled_from(["text", "html", "latex"]),
    st.none() | st.integers(1, 6),
    st.none() | st.floats(0, 1),
)
drafts = st.builds(Draft, st.lists(regions, max_size=3).map(tuple), texts, seconds, notes)
steps = st.builds(Step, numbers, numbers, st.booleans(), texts, seconds)
sequences = st.builds(
    SequenceResult,
    st.lists(numbers, max_size=5).map(tuple),
    texts,
    reasons,
    st.lists(steps, max_size=5).map(tuple),
    st.lists(texts, max_size=5).map(tuple),
    numbers,
)
stages = st.builds(
    StageResult,
    st.sampled_from(["regions", "page"]),
    st.lists(sequences, max_size=3).map(tuple),
    st.builds(StageTimes, seconds, seconds, seconds, seconds),
    numbers,
    st.lists(numbers, max_size=3).map(tuple),
)
pages = st.builds(
    PageResult,
    number=numbers,
    markdown=texts,
    text=texts,
    finish_reason=reasons,
    verifier=texts,
    tau=st.floats(0.01, 1),
    width=numbers,
    height=numbers,
    draft=drafts,
    stages=st.lists(stages, max_size=2).map(tuple),
    seconds=seconds,
    notes=notes,
    error=st.none() | texts,
    regions=st.lists(regions, max_size=3).map(tuple),
)
options = st.dictionaries(texts, st.none() | texts | numbers | st.lists(numbers, max_size=2), max_size=3)
documents = st.builds(
    DocumentResult,
    texts,
    st.lists(pages, max_size=3).map(tuple),
    options,
    st.dictionaries(texts, texts, max_size=3),
    st.none() | texts,
)


def a_page(number: int, text: str = "some text", tokens: int = 4) -> PageResult:
    made = tuple(Step(8, 3, True, "draft", 0.5) for _ in range((tokens - 1) // 4))
    sequence = SequenceResult(tuple(range(tokens)), text, "eos", made, ("x",) * tokens)
    stage = StageResult("page", (sequence,), StageTimes(0.1, 0.2, 0.5 * len(made)), len(made))
    draft = Draft((Region(Box(0, 0, 1, 1), Label.TEXT, text),), "toy", 0.25)
    return PageResult(number, text, text, "eos", "hsd", width=10, height=20, draft=draft, stages=(stage,), seconds=9.0)


@settings(max_examples=50)
@given(documents)
def test_a_document_survives_json(document: DocumentResult):
    assert DocumentResult.from_json(document.to_json()) == document


def write(folder: Path, name: str, document: DocumentResult, drafts: bool = False) -> tuple[Path, ...]:
    head = DocumentHead(document.source, document.settings, document.versions, document.error)
    return write_document(folder, name, head, lambda: (dumps(page_to_json(p)) for p in document.pages), drafts=drafts)


@settings(max_examples=25)
@given(documents)
def test_what_is_written_is_what_to_json_says(tmp_path_factory: pytest.TempPathFactory, document: DocumentResult):
    folder = tmp_path_factory.mktemp("out")
    write(folder, "x", document)
    loaded = DocumentResult.load(folder / "x.json")
    assert loaded == document
    assert (folder / "x.json").read_bytes() == document.to_json().encode()
    if document.pages:
        assert (folder / "x.md").read_bytes() == document.markdown.encode()
    pages = list(written_pages(folder / "x.json"))
    assert [number for number, _ in pages] == [p.number for p in document.pages]
    assert tuple(page_from_json(json.loads(page)) for _, page in pages) == document.pages


@pytest.mark.parametrize("cut", [1, 10, 200])
def test_pages_of_a_file_that_was_cut_short_are_refused(tmp_path: Path, cut: int):
    write(tmp_path, "x", DocumentResult("x.pdf", (a_page(1), a_page(2))))
    path = tmp_path / "x.json"
    path.write_bytes(path.read_bytes()[:-cut])
    if cut > 1:  # the last line end is none of a page
        with pytest.raises(ValueError, match=r"."):
            list(written_pages(path))


def test_a_result_of_a_version_without_regions_of_the_model_is_read():
    page = page_to_json(a_page(1))
    del page["regions"]
    assert page_from_json(page) == a_page(1)


def test_text_json_cannot_hold_as_utf8_is_escaped_and_comes_back():
    page = PageResult(1, text="half a pair \ud800", markdown="é \u2028 \x00 漢")
    line = dumps(page_to_json(page))
    assert "\n" not in line
    line.encode("utf-8")
    assert page_from_json(json.loads(line)) == page


def test_non_finite_numbers_become_null_so_that_any_json_reader_reads_them():
    assert dumps({"a": float("nan"), "b": [float("inf")], "c": (1.5,)}) == '{"a":null,"b":[null],"c":[1.5]}'


@pytest.mark.parametrize("text", ["", "{}", "[1]", "3", '{"pages": [{}]}', "\x00"])
def test_what_is_no_result_is_refused_in_one_line(tmp_path: Path, text: str):
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(DocumentError, match=r"x\.json.*not a result of hsdkit"):
        DocumentResult.load(path)
    with pytest.raises(DocumentError, match=r"none\.json"):
        DocumentResult.load(tmp_path / "none.json")


# -- the files


def test_a_document_without_pages_has_its_error_and_no_text_of_an_earlier_run(tmp_path: Path):
    (tmp_path / "a.md").write_text("from an earlier run")
    write(tmp_path, "a", DocumentResult("a.pdf", error="broken"))
    assert DocumentResult.load(tmp_path / "a.json").error == "broken"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_drafts_of_readable_pages_are_saved_for_replay(tmp_path: Path):
    pages = (a_page(3), PageResult(4, error="cannot be rendered"))
    write(tmp_path, "a", DocumentResult("in/a.pdf", pages), drafts=True)
    saved = load_drafts(tmp_path / "a.drafts.json")
    assert list(saved) == [("a.pdf", 3)]
    assert saved["a.pdf", 3].draft == a_page(3).draft


def test_a_folder_that_cannot_be_written_is_one_line_that_names_it(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"output=.*there is a file of that name"):
        write(tmp_path / "file", "a", DocumentResult("a.pdf"))


def test_a_file_that_could_not_be_finished_leaves_nothing_behind(tmp_path: Path):
    def pieces() -> Iterator[str]:
        yield "begun"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.json", pieces())
    assert list(tmp_path.iterdir()) == []


def test_memory_does_not_grow_with_the_number_of_pages(tmp_path: Path):
    def peak(count: int) -> int:
        tracemalloc.start()
        pages = lambda: (dumps(page_to_json(a_page(n, "x" * 5_000, tokens=600))) for n in range(count))  # noqa: E731
        write_document(tmp_path, f"a{count}", DocumentHead("a.pdf", {}, {}), pages)
        _, top = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return top

    assert peak(24) < 1.2 * peak(6)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/x.pdf", "y.png"], ["x", "y"]),
        (["x.pdf", "x.png"], ["x.pdf", "x.png"]),
        (["a/x.pdf", "b/x.pdf"], ["x.pdf", "x.pdf-2"]),
        (["X.pdf", "x.PDF"], ["X.pdf", "x.PDF-2"]),
        (["a/x.pdf", "b/x.pdf", "x.pdf-2.pdf"], ["x.pdf", "x.pdf-3", "x.pdf-2"]),
    ],
)
def test_inputs_with_the_same_stem_get_names_of_their_own(paths: list[str], names: list[str]):
    assert result_names([Path(p) for p in paths]) == names


@given(st.lists(st.sampled_from(["x.pdf", "x.png", "a/x.pdf", "X.pdf", "x.pdf-2.pdf", "x-2.pdf", "y.tif"]), max_size=8))
def test_names_never_collide_even_where_case_does_not_count(paths: list[str]):
    names = [n.casefold() for n in result_names([Path(p) for p in paths])]
    assert len(set(names)) == len(names)


# -- totals


def test_totals_count_what_the_glossary_says():
    total = Totals.over([a_page(1, tokens=9), a_page(2, tokens=5), replace(a_page(3, tokens=5), error="x")])
    assert (total.pages, total.failed, total.page_tokens, total.steps) == (3, 1, 19, 4)
    assert (total.aal, total.tokens_per_step) == (3.0, 4.0)
    assert total.accepted_lengths == {3: 4}
    assert total.seconds["draft"] == 0.75
    assert total.seconds["page_decode"] == 2.0
    assert sum(total.seconds.values()) == pytest.approx(total.wall)


@settings(max_examples=30)
@given(st.lists(pages, max_size=4))
def test_totals_of_parts_add_up(several: list[PageResult]):
    whole = Totals.over(several)
    halves = Totals.over(several[:2]) + Totals.over(several[2:])
    assert (whole.steps, whole.tokens, whole.accepted_lengths) == (halves.steps, halves.tokens, halves.accepted_lengths)
    assert whole.aal == pytest.approx(halves.aal)
