"""Evaluations apart from models: which pages, what is kept, what comes of it in figures."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hsdkit.benchmarks import Figures, Item, Measured
from hsdkit.errors import ConfigError, OutputError
from hsdkit.evaluation import tables
from hsdkit.evaluation.efficiency import by_prefill_share, cost, decode_seconds, prefill_share, speedup
from hsdkit.evaluation.options import split_options
from hsdkit.evaluation.record import Record, SideRecord
from hsdkit.evaluation.run import _measured
from hsdkit.evaluation.selection import select
from hsdkit.evaluation.store import Store
from hsdkit.evaluation.summary import summarise
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.results import PageResult, SequenceResult, StageResult, StageTimes, Step

ITEMS = [
    Item(f"{kind}{i}", Path(f"{kind}{i}.png"), groups={"document": (kind,), "language": (("en", "zh")[i % 2],)})
    for kind in ("book", "news")
    for i in range(4)
]


def keys(items: Iterable[Item]) -> list[str]:
    return [item.key for item in items]


def test_a_subset_is_of_groups_by_value_or_by_name() -> None:
    assert keys(select(ITEMS, "news")) == ["news0", "news1", "news2", "news3"]
    assert keys(select(ITEMS, "document=news,zh")) == ["news1", "news3"]
    assert keys(select(ITEMS, "book,news,language=en")) == ["book0", "book2", "news0", "news2"]


def test_a_limit_is_spread_evenly_and_the_same_every_time() -> None:
    assert keys(select(ITEMS, None, 4)) == ["book0", "book2", "news0", "news2"]
    assert keys(select(ITEMS, None, 3)) == ["book0", "book2", "news1"]
    assert keys(select(ITEMS, "news", 99)) == ["news0", "news1", "news2", "news3"]


@pytest.mark.parametrize("subset", ["newz", "document=newz", "kind=news"])
def test_a_group_that_no_page_is_in_is_refused_with_those_there_are(subset: str) -> None:
    with pytest.raises(ConfigError, match=r"no page is in such a group.*known: document: book, news; language: en, zh"):
        select(ITEMS, subset)


def test_groups_that_never_meet_are_refused() -> None:
    items = [*ITEMS, Item("x", Path("x.png"), groups={"document": ("slides",)})]
    with pytest.raises(ConfigError, match="no page is in all of these groups"):
        select(items, "slides,zh")


def test_the_options_of_an_evaluation_are_told_from_those_of_the_run() -> None:
    options, rest = split_options(
        [
            "benchmark=b",
            "path=p",
            "benchmark.version=1.6",
            "limit=3",
            "subset=x",
            "baseline=autoregressive",
            "verifier.n=2",
        ]
    )
    assert options.given == {"path": "p", "version": "1.6"}
    assert (options.benchmark, options.limit, options.subset, options.baseline) == ("b", 3, "x", "autoregressive")
    assert rest == ["verifier.n=2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["path=x"], "no benchmark chosen"),
        (["benchmark=b", "limit=0"], "limit=0"),
        (["benchmark=b", "limit=many"], "limit=many"),
        (["benchmark=b", "path=x", "benchmark.path=y"], "give one of them"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        split_options(arguments)


def page(
    seconds: float,
    decode: float,
    draft: float = 0.0,
    crops: float = 0.0,
    accepted: tuple[int, ...] = (0, 3),
    text: str = "x",
) -> PageResult:
    """A page with 1 s of encoding and 1 s of prefill; with `crops` a region stage that took as long in all."""
    steps = tuple(Step(4, a, True, "", 0.1) for a in accepted)
    sequence = SequenceResult(tuple(range(1 + sum(s.emitted for s in steps))), text, "eos", steps)
    stages = [StageResult("page", (sequence,), StageTimes(1, 1, decode), len(steps))]
    if crops:
        stages.insert(0, StageResult("regions", (sequence,), StageTimes(crops / 2, 0, crops / 2), len(steps), (0,)))
    return PageResult(1, text, text, "eos", stages=tuple(stages), seconds=seconds, draft=Draft(seconds=draft))


def test_decoding_counts_drafts_and_crops_but_not_the_prefill_of_the_page() -> None:
    assert decode_seconds(page(9, decode=3, draft=2, crops=1)) == 3 + 2 + 1
    assert decode_seconds(page(9, decode=3, draft=2, crops=1), drafting=False) == 3 + 1
    assert prefill_share(page(8, decode=3)) == 2 / 8


def test_speedups_are_of_all_seconds_and_of_the_median_page() -> None:
    pairs = [(page(10, 8), page(5, 2, draft=1)), (page(30, 28, text="y"), page(10, 6, draft=2))]
    pairs.append((page(7, 5), PageResult(1, error="broken")))  # counts for neither
    assert speedup(pairs) == {
        "pages": 2,
        "e2e": 40 / 15,
        "e2e_median": 2.5,
        "decode": 36 / 11,
        "decode_median": pytest.approx((8 / 3 + 28 / 8) / 2),
        "decode_without_draft": 36 / 8,
        "same_text": 1,
    }
    assert speedup([]) is None


def test_pages_are_told_apart_by_the_share_of_the_prefill_of_the_baseline() -> None:
    pairs = [(page(10, 8), page(5, 2)), (page(20, 18), page(4, 2)), (page(2, 0), page(2, 0))]
    rows = by_prefill_share(pairs)
    assert [(row["from"], row["to"], row["pages"]) for row in rows] == [(0.0, 0.2, 1), (0.2, 0.4, 1), (0.8, 1.0, 1)]
    assert [row["e2e"] for row in rows] == [5, 2, 1]


def test_costs_are_of_the_pages_that_were_decoded() -> None:
    found = cost([page(4, 2, accepted=(0, 3)), page(6, 2, accepted=(2,)), PageResult(1, error="broken")])
    assert (found["pages"], found["steps"], found["forwards"]) == (2, 3, 3)
    assert found["aal"] == 5 / 3
    assert found["tokens_per_step"] == 8 / 3
    assert found["seconds_per_page"] == 5
    assert found["accepted_lengths"] == {"0": 1, "2": 1, "3": 1}


class Counting:
    """A benchmark whose only figure is the mean length of what was written."""

    name, edition, notes = "counting", "v1", ("it only counts",)

    def items(self) -> Sequence[Item]:
        return ITEMS

    def measure(self, item: Item, markdown: str) -> Measured:
        return {"length": len(markdown)}

    def summarise(self, pages: Sequence[Measured], group: bool = False) -> Figures:
        return {"length": sum(p["length"] for p in pages) / len(pages) if pages else None, "nothing": None}

    def predictions(self, pages: Iterable[tuple[Item, str]]) -> Iterator[tuple[str, str]]:
        return ((f"{item.key}.md", markdown) for item, markdown in pages)


def record(item: Item, **sides: PageResult) -> Record:
    return Record.of(item, {n: SideRecord(p, None if p.error else {"length": len(p.text)}) for n, p in sides.items()})


RECORDS = [
    record(ITEMS[0], hsd=page(5, 2, text="abcd"), plain=page(10, 8, text="abcd")),
    record(ITEMS[4], hsd=page(5, 3, text="ab"), plain=page(10, 8, text="abx")),
    record(ITEMS[5], hsd=PageResult(1, error="news1: broken"), plain=page(10, 8, text="q")),
]


def test_a_summary_has_quality_cost_and_speedup_in_all_and_by_group() -> None:
    summary = summarise(Counting(), RECORDS, "plain")
    assert (summary["pages"], summary["failed"]) == (3, 1)
    assert summary["errors"] == [{"key": "news1", "error": "news1: broken"}]
    assert summary["sides"]["hsd"]["quality"]["length"] == 3
    assert summary["sides"]["hsd"]["speedup"]["e2e"] == 2
    assert summary["sides"]["hsd"]["speedup"]["same_text"] == 1
    assert summary["sides"]["plain"]["speedup"] is None
    news = summary["groups"]["document"]["news"]
    assert (news["pages"], news["sides"]["hsd"]["quality"]["length"], news["sides"]["hsd"]["cost"]["pages"]) == (
        2,
        2,
        1,
    )
    assert [row["pages"] for row in summary["by_prefill_share"]["hsd"]] == [2]
    json.dumps(summary)


def test_pages_that_went_without_a_draft_are_told() -> None:
    """Else the figures of a study would be those of plain decoding under another name."""
    alone = replace(page(5, 2), notes=("no draft: making it would take longer",))
    records = [record(ITEMS[0], hsd=alone), record(ITEMS[4], hsd=page(5, 3))]
    assert (
        "hsd: 1 of 2 pages were read without a draft; the first: no draft" in summarise(Counting(), records)["notes"][1]
    )


def drafted(ends: str, label: Label, rejected: str | None = "") -> PageResult:
    """A page of one region, each of whose steps accepts one of two tokens that were drafted."""
    steps = tuple(Step(2, 1, True, "", 0.1, rejected) for _ in ends)
    pieces = tuple("a" + "".join(f"b{end}" for end in ends))
    sequence = SequenceResult(tuple(range(len(pieces))), "".join(pieces), "eos", steps, pieces)
    region = Region(Box(0, 0, 1, 1), label, sequence.text)
    return PageResult(1, draft=Draft((region,)), stages=(StageResult("page", (sequence,)),))


def test_a_summary_tells_how_drafts_fared_by_region_and_by_group(tmp_path: Path) -> None:
    plain = drafted("xyz", Label.TABLE, None)
    records = [
        record(ITEMS[0], hsd=drafted("xyzw", Label.TABLE), plain=plain),
        record(ITEMS[4], hsd=drafted("xy", Label.TEXT, "qqqq"), plain=plain),
        record(ITEMS[5], hsd=PageResult(1, error="news1: broken"), plain=plain),
    ]
    with Store(tmp_path, HEAD) as store:
        for one in records:
            store.add(one)
        held = list(store.records.values())
    summary = summarise(Counting(), records, "plain")
    assert summary == summarise(Counting(), held, "plain")
    drafts = summary["sides"]["hsd"]["drafts"]
    assert drafts["ends"] == {"taken": 4, "wrong_token": 2}
    assert drafts["labels"]["table"] == {
        "steps": 4,
        "tokens": 8,
        "accepted": 4,
        "aal": 1,
        "accepted_share": 0.5,
        "ends": {"taken": 4},
    }
    news = summary["groups"]["document"]["news"]["sides"]["hsd"]["drafts"]
    assert (news["steps"], news["ends"]) == (2, {"wrong_token": 2})
    head, _, *rows = tables.drafts_by_label(summary).splitlines()
    assert [c.strip() for c in head.split("|")[5:-1]] == [
        "AAL",
        "no match %",
        "wrong token %",
        "format seam %",
        "structure %",
        "taken %",
    ]
    cells = [[c.strip() for c in row.split("|")[1:-1]] for row in rows]
    assert [row[0] for row in cells] == ["table", "text", "all"]  # plain decoding drafts nothing
    assert cells[2] == ["all", "12", "50.0", "6", "1.00", "0.0", "33.3", "0.0", "0.0", "66.7"]
    assert "| news" in tables.drafts_by_group(summary, "document")
    assert tables.drafts_by_label(summarise(Counting(), [record(ITEMS[0], plain=plain)])) == ""


def test_tables_are_markdown_without_empty_columns() -> None:
    summary = summarise(Counting(), RECORDS, "plain")
    head, rule, hsd, plain = tables.overall(summary).splitlines()
    assert [c.strip() for c in head.split("|")[1:4]] == ["verifier", "length", "AAL"]
    assert "nothing" not in head
    assert set(rule) <= set("|-: ")
    assert hsd.split("|")[1].strip() == "hsd"
    assert plain.split("|")[-2].strip() == "-"  # the baseline has no speedup
    assert len({len(line) for line in (head, rule, hsd, plain)}) == 1
    assert "plain" not in tables.by_group(summary, "document")
    assert "| book" in tables.by_group(summary, "document")


HEAD: dict[str, Any] = {"evaluation": {"benchmark": {"name": "counting"}, "sides": {"hsd": {"verifier": {"tau": 1.0}}}}}


def test_a_store_opened_again_has_all_but_the_pages_that_failed(tmp_path: Path) -> None:
    with Store(tmp_path, HEAD) as store:
        for one in RECORDS:
            store.add(one)
    with Store(tmp_path, HEAD) as store:
        assert list(store.records) == ["book0", "news0"]
        assert store.records["book0"] == RECORDS[0]


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    with Store(tmp_path, HEAD) as store:
        store.add(RECORDS[0])
    with store.path.open("a") as file:
        file.write('{"key": "news0", "docu')
    with Store(tmp_path, HEAD) as store:
        assert list(store.records) == ["book0"]
        store.add(RECORDS[1])
    with Store(tmp_path, HEAD) as store:
        assert list(store.records) == ["book0", "news0"]


def test_texts_may_hold_other_line_ends(tmp_path: Path) -> None:
    odd = record(ITEMS[0], hsd=page(5, 2, text="a\u2028b\x85c\rd"))
    for _ in range(2):
        with Store(tmp_path, HEAD) as store:
            if not store.records:
                store.add(odd)
            assert store.records["book0"].sides["hsd"].page.text == "a\u2028b\x85c\rd"


def test_what_is_held_is_light_and_what_is_written_is_whole(tmp_path: Path) -> None:
    full = page(5, 2)
    sequence = replace(full.stages[0].sequences[0], pieces=("x",))
    full = replace(full, stages=(replace(full.stages[0], sequences=(sequence,)),))
    for _ in range(2):
        with Store(tmp_path, HEAD) as store:
            if not store.records:
                store.add(record(ITEMS[0], hsd=full))
            held = store.records["book0"].sides["hsd"].page
            assert held.stages[0].sequences[0].pieces == ()
            assert cost([held]) == cost([full])
    written = json.loads(store.path.read_text().split("\n")[1])
    assert Record.from_json(written).sides["hsd"].page == full


def test_results_of_other_settings_are_not_mixed(tmp_path: Path) -> None:
    with Store(tmp_path, HEAD) as store:
        store.add(RECORDS[0])
    sides = {"hsd": {"verifier": {"tau": 0.75}}}
    before = store.path.read_bytes()
    with pytest.raises(OutputError, match=r"verifier\.tau 1\.0, now 0\.75"):
        Store(tmp_path, {"evaluation": HEAD["evaluation"] | {"sides": sides}})
    assert store.path.read_bytes() == before


def test_another_file_of_that_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("something else\n")
    with pytest.raises(OutputError, match="not the results of an evaluation"):
        Store(tmp_path, HEAD)
    assert (tmp_path / "results.jsonl").read_text() == "something else\n"


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    with Store(tmp_path, HEAD) as store:
        store.add(RECORDS[0])
    text = store.path.read_text().splitlines()
    store.path.write_text("\n".join([text[0], "{}", text[1]]) + "\n")
    with pytest.raises(OutputError, match="line 2: not a page"):
        Store(tmp_path, HEAD)


def test_a_page_that_could_not_be_measured_counts_nowhere_but_among_the_failed() -> None:
    odd = replace(RECORDS[0].sides["hsd"], measured=None, problem="book0: cannot be measured")
    summary = summarise(Counting(), [Record.of(ITEMS[0], {"hsd": odd})])
    assert (summary["failed"], summary["sides"]["hsd"]["quality"]["length"]) == (1, None)


def test_what_no_model_has_read_is_measured_as_an_empty_page() -> None:
    class Looking(Counting):
        def measure(self, item: Item, markdown: str) -> Measured:
            seen.append(markdown)
            return super().measure(item, markdown)

    seen: list[str] = []
    read = PageResult(1, "text", "text", "eos")
    results = (read, replace(read, error="broken"), replace(read, origin="draft"))
    errors = [_measured(Looking(), ITEMS[0], result).error for result in results]
    assert seen == ["text", "", ""]
    assert errors == [None, "broken", "book0: not read: on_failure put the drafter's text there"]
