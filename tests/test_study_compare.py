"""Comparisons: what changed, what is more than noise, and the kinds of results that can be compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from test_study_report import page, record
from toys import TOY, blank_pdf, register_toys
from typer.testing import CliRunner

from hsdkit.benchmarks import Item
from hsdkit.cli.app import app
from hsdkit.cli.compare import lines
from hsdkit.errors import DocumentError
from hsdkit.evaluation.record import Record, SideRecord
from hsdkit.results import PageResult
from hsdkit.results_json import dumps
from hsdkit.study.compare import Comparison, compare
from hsdkit.study.records import Store
from hsdkit.study.runs import Run, RunPage, load_runs


def run(seconds: Sequence[float], text: str = "abc", **more) -> Run:  # type: ignore[no-untyped-def]
    pages = {("a.pdf", i): RunPage((s,), (s / 2,), 4.0, text, {"bleu": 0.5}) for i, s in enumerate(seconds)}
    given = {"settings": {"verifier.tau": 1.0}, "versions": {"torch": "2"}, "inputs": {"a.pdf": "x"}} | more
    return Run("run", given["settings"], given["versions"], given["inputs"], pages)


def figure(found: Comparison, name: str):  # type: ignore[no-untyped-def]
    return next(f for f in found.figures if name in f.name)


def test_a_run_and_itself_have_no_difference() -> None:
    found = compare(run([1, 2, 3]), run([1, 2, 3]))
    assert (found.settings, found.versions, found.inputs, found.differing) == ((), (), (), ())
    assert not any(f.differs for f in found.figures)
    assert (found.pages, found.same_text) == (3, 3)


def test_noise_is_told_from_a_change_of_speed() -> None:
    random = Random(1)
    pages = [random.lognormvariate(0, 1) for _ in range(30)]
    noisy = [s * random.gauss(1, 0.05) for s in pages]
    faster = [s * random.gauss(0.9, 0.05) for s in pages]
    assert not figure(compare(run(pages), run(noisy)), "end to end").differs
    found = figure(compare(run(pages), run(faster)), "end to end")
    assert found.differs
    assert found.interval.value == pytest.approx(1 / 0.9, rel=0.05)


def test_what_changed_is_named() -> None:
    found = compare(run([1.0]), run([1.0], settings={"verifier.tau": 0.75, "verifier.n": 3}, versions={"torch": "3"}))
    assert {c.what: (c.before, c.after) for c in found.settings} == {
        "verifier.tau": (1.0, 0.75),
        "verifier.n": (None, 3),
    }
    assert [(c.before, c.after) for c in found.versions] == [("2", "3")]


def test_pages_of_a_changed_document_are_not_compared() -> None:
    found = compare(run([1.0, 2.0]), run([1.0, 2.0], inputs={"a.pdf": "y"}))
    assert (found.pages, found.figures) == (0, ())
    assert [c.what for c in found.inputs] == ["a.pdf"]


def test_documents_without_digests_are_not_called_the_same() -> None:
    assert compare(run([1.0]), run([1.0])).known
    assert not compare(run([1.0]), run([1.0], inputs={"a.pdf": ""})).known
    assert "not on record" in "".join(lines(compare(run([1.0]), run([1.0], inputs={}))))


def test_evaluations_are_compared_page_by_page(tmp_path: Path) -> None:
    for name, bleu, seconds in (("a", 0.5, 2.0), ("b", 0.75, 1.0)):
        (tmp_path / name).mkdir()
        head = {"evaluation": {"benchmark": {"name": "letters"}, "sides": {"hsd": {"verifier": {"name": "hsd"}}}}}
        page = PageResult(1, markdown="abc", text="abc", finish_reason="eos", seconds=seconds)
        items = [Item(f"p{i}", tmp_path / "a.png") for i in (1, 2)]
        records = [Record.of(i, {"hsd": SideRecord(page, {"bleu": bleu, "ok": True, "n": None})}) for i in items]
        text = [json.dumps(head), *(dumps(r.to_json()) for r in records)]
        (tmp_path / name / "results.jsonl").write_text("\n".join(text) + "\n")
    [a], [b] = load_runs(tmp_path / "a").values(), load_runs(tmp_path / "b").values()
    found = compare(a, b)
    assert (found.pages, figure(found, "bleu").interval.value, figure(found, "end to end").interval.value) == (
        2,
        0.25,
        2,
    )
    (tmp_path / "b" / "results.jsonl").write_text("{}")
    with pytest.raises(DocumentError, match="not the results of an evaluation"):
        load_runs(tmp_path / "b")


def test_figures_of_a_page_are_compared_whatever_a_benchmark_measures(tmp_path: Path) -> None:
    """What OmniDocBench and olmOCR-Bench find of a page are lists, from which figures are made."""
    for name, edit in (("a", 0.5), ("b", 0.25)):
        (tmp_path / name).mkdir()
        head = {"evaluation": {"benchmark": {"name": "letters"}, "sides": {"hsd": {"verifier": {"name": "hsd"}}}}}
        page = PageResult(1, markdown="abc", text="abc", finish_reason="eos", seconds=1.0)
        side = SideRecord(page, {"text": [[1, 4]]}, figures={"text_edit": edit})
        record = Record.of(Item("p1", tmp_path / "a.png"), {"hsd": side})
        (tmp_path / name / "results.jsonl").write_text(f"{json.dumps(head)}\n{dumps(record.to_json())}\n")
    [a], [b] = load_runs(tmp_path / "a").values(), load_runs(tmp_path / "b").values()
    assert figure(compare(a, b), "text_edit").interval.value == -0.25


def test_figures_of_two_editions_are_not_compared() -> None:
    old, new = ({"benchmark": "omnidocbench", "benchmark.edition": e} for e in ("v1.5", "v1.6"))
    found = compare(run([1.0], settings=old), run([1.0], settings=new))
    assert not any("bleu" in f.name for f in found.figures)
    assert "not compared, they are of another benchmark or edition" in "\n".join(lines(found))
    assert figure(compare(run([1.0], settings=old), run([1.0], settings=old)), "bleu")


def test_runs_without_a_document_in_common_do_not_have_the_same_documents() -> None:
    other = replace(run([1.0]), inputs={"b.pdf": "y"}, pages={})
    assert "documents: none in common" in lines(compare(run([1.0]), other))


def test_texts_of_an_evaluation_may_hold_other_line_ends(tmp_path: Path) -> None:
    page = PageResult(1, markdown="a\u2028b\x85c", text="abc", finish_reason="eos", seconds=1.0)
    record = Record.of(Item("p1", tmp_path / "a.png"), {"hsd": SideRecord(page, {})})
    head = {"evaluation": {"benchmark": {"name": "letters"}, "sides": {"hsd": {"verifier": {"name": "hsd"}}}}}
    (tmp_path / "results.jsonl").write_text(f"{json.dumps(head)}\n{dumps(record.to_json())}\n", encoding="utf-8")
    [run] = load_runs(tmp_path).values()
    assert [p.text for p in run.pages.values()] == ["a\u2028b\x85c"]


def test_sides_of_two_benches_pair_up_by_name(tmp_path: Path) -> None:
    def bench(name: str, seconds: float, digest: str = "ab") -> Path:
        counts = {"steps": 4, "accepted": 8, "emitted": 12}
        samples = [
            {"document": "in/a.pdf", "page": 1, "round": r, "side": s, "e2e": seconds, "decode": seconds, **counts}
            for s in ("autoregressive", "hsd")
            for r in (0, 1)
        ]
        about = {"settings": {"draft": "always"}, "rounds": 2, "versions": {"torch": "2"}, "machine": {"cpus": 2}}
        (tmp_path / name).mkdir()
        file = tmp_path / name / "bench.json"
        file.write_text(json.dumps(about | {"inputs": {"in/a.pdf": digest}, "samples": samples}))
        return file

    before, after = load_runs(bench("a", 2.0)), load_runs(bench("b", 1.0).parent)
    assert list(before) == list(after) == ["autoregressive", "hsd"]
    found = compare(before["hsd"], after["hsd"])
    assert (found.pages, found.texts, figure(found, "end to end").interval.value) == (1, 0, 2)
    assert before["hsd"].pages["a.pdf", 1].tokens_per_step == 3
    result = CliRunner().invoke(app, ["compare", str(tmp_path / "a"), str(tmp_path / "b" / "bench.json")])
    assert "text: not on record" in result.output
    assert compare(before["hsd"], load_runs(bench("c", 1.0, "cd"))["hsd"]).pages == 0
    (tmp_path / "c" / "bench.json").write_text('{"samples": [{}]}')
    with pytest.raises(DocumentError, match="not a bench"):
        load_runs(tmp_path / "c")


def test_pages_that_one_run_lacks_are_counted() -> None:
    found = compare(run([1.0, 2.0, 3.0]), run([1.0]))
    assert (found.pages, len(found.only_before), len(found.only_after)) == (1, 2, 0)


def test_texts_that_differ_are_listed_with_their_distance() -> None:
    after = run([1, 2, 3])
    pages = dict(after.pages) | {("a.pdf", 1): replace(after.pages["a.pdf", 1], text="abd", metrics={"bleu": 0.25})}
    found = compare(run([1, 2, 3]), replace(after, pages=pages))
    assert found.differing == ((("a.pdf", 1), pytest.approx(1 / 3)),)
    assert found.same_text == 2
    assert figure(found, "bleu").interval.value == pytest.approx(-0.25 / 3)


def test_the_seed_decides_the_intervals() -> None:
    a, b = run([1, 2, 3, 4.5, 7]), run([1.1, 1.9, 3.4, 4, 8])
    assert compare(a, b, seed=1) == compare(a, b, seed=1)
    assert compare(a, b, seed=1) != compare(a, b, seed=2)


# ---- the command


def command(*arguments: object) -> str:
    found = CliRunner().invoke(app, [str(a) for a in arguments])
    assert found.exit_code == 0, found.output
    return found.output


def test_two_folders_of_run_are_compared(tmp_path: Path) -> None:
    register_toys()
    document = blank_pdf(tmp_path / "a.pdf", 2)
    for name, more in (("a", []), ("b", ["verifier.text=RAW other", "verifier.tau=0.5"])):
        command("run", *TOY, *more, document, f"output={tmp_path / name}")
    said = command("compare", tmp_path / "a", tmp_path / "b")
    assert "verifier.tau 1.0 -> 0.5" in said
    assert "documents: the same" in said
    assert "text: the same on 0 of 2 pages" in said
    assert "2 pages compared" in command("compare", tmp_path / "a" / "a.json", tmp_path / "b" / "a.json")


def test_a_changed_document_is_noticed_by_its_content(tmp_path: Path) -> None:
    register_toys()
    for name, pages in (("a", 1), ("b", 2)):
        command("run", *TOY, blank_pdf(tmp_path / "a.pdf", pages), f"output={tmp_path / name}")
    assert "documents: a.pdf" in command("compare", tmp_path / "a", tmp_path / "b")


def test_cells_of_two_sweeps_pair_up_by_their_values(tmp_path: Path) -> None:
    for folder, taus in (("a", ("1", "0.5")), ("b", ("0.5", "0.9"))):
        cells = [record(t) for t in taus]
        store = Store(tmp_path / folder)
        store.plan(["verifier.tau", "drafter"], [(c.key, c.at) for c in cells], {})
        for cell in cells:
            store.save("cells", cell)
    said = command("compare", tmp_path / "a", tmp_path / "b")
    assert said.count("compared") == 1
    assert "verifier.tau=0.5 drafter=pdftext" in said
    cell = next((tmp_path / "a" / "cells").iterdir())
    assert "1 page compared" in command("compare", cell, cell)


def test_sweeps_with_two_editions_share_no_figures_but_their_own(tmp_path: Path) -> None:
    for edition in ("v1.5", "v1.6"):
        about = {"name": "omnidocbench", "edition": edition, "truth": ""}
        store = Store(tmp_path / edition)
        cell = record("1", "pdftext", page(metrics={"bleu": 0.5}), benchmark=about)
        store.plan(["verifier.tau", "drafter"], [(cell.key, cell.at)], {})
        store.save("cells", cell)
    [old], [new] = (load_runs(tmp_path / edition).values() for edition in ("v1.5", "v1.6"))
    names = [f.name for f in compare(old, new).figures]
    assert "bleu, B minus A" not in names
    assert "edit distance to plain decoding, B minus A" in names
    assert figure(compare(old, old), "bleu")


@pytest.mark.parametrize("content", [None, "{", '{"a": 1}', '{"schema": 99}', "[]"])
def test_what_is_no_result_is_refused_by_name(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "x.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(DocumentError, match=r"x\.json"):
        load_runs(file)
    if content is None:
        with pytest.raises(DocumentError, match="holds no results"):
            load_runs(tmp_path)
