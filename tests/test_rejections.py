"""Where drafts ended and why, and how they fared by region: a scripted target, whose steps are known."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from PIL import Image
from simulate import characters

from hsdkit.decoding.budget import Budget
from hsdkit.decoding.loop import decode
from hsdkit.decoding.protocol import Candidate, Prefill, Prompts
from hsdkit.decoding.tree import PrefixTree
from hsdkit.drafting_tally import NO_REGION, Fates, by_label, together
from hsdkit.placing import Placing
from hsdkit.protocols import DecodeRequest, DecodeSettings
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.rejections import End, ends, reason
from hsdkit.results import PageResult, SequenceResult, StageResult, Step
from hsdkit.results_json import page_from_json, page_to_json

CODEC = characters()
END = 400
BOX = Box(0, 0, 10, 10)


class Writer:
    """A model that writes a text, whatever it is shown."""

    codec, eos_ids = CODEC, frozenset({END})

    def __init__(self, text: str) -> None:
        self.output = [*CODEC.encode(text), END]

    def prepare(self, requests: Any) -> Prompts:
        return Prompts({}, [1], 0.0)

    def prefill(self, prompts: Prompts, cache: Any) -> Prefill:
        cache.begin_prompt([1], 1)
        return Prefill(self._logits([0]), [1], [1], [[7]], 0.0)

    def verify(self, tokens: torch.Tensor, positions: torch.Tensor, mask: Any, cache: Any) -> torch.Tensor:
        return self._logits(positions[0].tolist())[None]

    def _logits(self, places: Sequence[int]) -> torch.Tensor:
        logits = torch.zeros(len(places), END + 1)
        for row, place in enumerate(places):
            logits[row, self.output[min(place, len(self.output) - 1)]] = 1
        return logits


class Script:
    """A matcher that has a draft for some beginnings of the output: the end of what is written decides."""

    def __init__(self, drafts: Mapping[str, str]) -> None:
        self.drafts, self.written = drafts, ""

    def propose(self, limit: int) -> list[Candidate]:
        found = [draft for before, draft in self.drafts.items() if self.written.endswith(before)]
        return [Candidate(CODEC.encode(draft)[:limit], "script", 0.9, 0.99) for draft in found]

    def update(self, tokens: Sequence[int], accepted: int, source: str) -> None:
        self.written += CODEC.text(tokens)


TEXT = "The quick brown fox\njumps over.\n\nSecond part here.\n\nThird and last."
DRAFTS = {
    "T": "he quick brown fox jumps over.",
    "fox\n": "jvmps over.",
    # "ju" has none
    "jum": "ps over.\n\nThird and last.",
    "\n\nS": "econd part here.",
    "\n\nS" + "econd part here.\n\n": "Third and last.\n\nA fourth.",
}
REGIONS = (
    Region(BOX, Label.TEXT, "The quick brown fox jvmps over."),
    Region(BOX, Label.LIST, "Second part here."),
    Region(BOX, Label.FOOTNOTE, "Third and last."),
)


def decoded(text: str, drafts: Mapping[str, str] | None, max_packed: int = 64, limit: int = 200) -> SequenceResult:
    settings = DecodeSettings(max_new_tokens=limit, stop_loops=False)
    request = DecodeRequest(Image.new("RGB", (8, 8)), "")
    matchers = [None if drafts is None else Script(drafts)]
    return decode(Writer(text), [request], settings, matchers, Budget(max_packed, None)).sequences[0]


def found(sequence: SequenceResult) -> list[End]:
    return [end for _, _, end in ends(sequence)]


def page(sequence: SequenceResult, regions: Sequence[Region] = REGIONS) -> PageResult:
    stage = StageResult("page", (sequence,))
    return PageResult(1, sequence.text, sequence.text, "eos", draft=Draft(tuple(regions)), stages=(stage,))


def test_every_reason_is_found_where_it_was_made() -> None:
    sequence = decoded(TEXT, DRAFTS)
    assert sequence.text == TEXT  # whatever was drafted
    assert found(sequence) == [
        End.FORMAT_SEAM,  # a space for a line end
        End.WRONG_TOKEN,  # v for u
        End.NO_MATCH,
        End.STRUCTURE,  # another region
        End.TAKEN,
        End.STRUCTURE,  # the model ended
    ]
    assert [s.accepted for s in sequence.steps] == [18, 1, 0, 9, 16, 15]
    assert [s.rejected for s in sequence.steps] == [
        " jumps o",
        "vmps ove",
        "",
        "Third an",
        "",
        "\n\nA fourt",
    ]


def test_a_draft_that_the_budget_has_no_node_for_is_not_a_draft_that_was_not_found() -> None:
    sequence = decoded("ab", {"a": "bc"}, max_packed=1)
    assert [(s.nodes, s.rejected) for s in sequence.steps] == [(0, "bc"), (0, "")]
    assert found(sequence) == [End.NOT_VERIFIED, End.NO_MATCH]


def test_plain_decoding_is_not_a_failure_of_drafts() -> None:
    assert set(found(decoded("abc", None))) == {End.UNKNOWN}
    assert found(decoded("abc", {"a": "bc"}, limit=2)) == [End.UNKNOWN]  # one token is left: nobody is asked


def test_what_the_repetition_guard_cut_off_has_no_reason() -> None:
    sequence = decoded(TEXT, DRAFTS)
    cut = replace(sequence, pieces=sequence.pieces[:21], finish_reason="loop")
    assert found(cut) == [End.FORMAT_SEAM, *[End.UNKNOWN] * 5]


@pytest.mark.parametrize(
    ("rejected", "written", "before", "why"),
    [
        (" of the house", "\nof the house", "door", End.FORMAT_SEAM),
        ("**bold** words", "bold words", "the ", End.FORMAT_SEAM),
        ("- first item", "* first item", "\n", End.FORMAT_SEAM),
        (" the", "\nthe", "in", End.FORMAT_SEAM),
        ("<b>12.50</b></td>", "12.50</td>", "<td>", End.FORMAT_SEAM),
        ("d>next</td><td>", "d >next</td>", "<td>one</t", End.FORMAT_SEAM),
        ("same text", "same text", "the ", End.FORMAT_SEAM),  # in other tokens
        ("tne house", "the house", "of ", End.WRONG_TOKEN),
        ("Tne house is", "The house is", "\n", End.WRONG_TOKEN),  # misread where a line begins
        (" the", " there", "in", End.WRONG_TOKEN),  # too little is known: it may be another word
        (", and", ". And so on", "end", End.WRONG_TOKEN),
        ("\n\n## Why", ".\n\n## Why it", "begins", End.WRONG_TOKEN),  # a full stop is lost
        ("elephants fly", "mice run away", "the ", End.WRONG_TOKEN),
        ("Elephants fly", "Mice run away", "\n\n", End.STRUCTURE),
        ("elephants fly", "\n\nMice run away", "the ", End.STRUCTURE),
        ("<td>elephants", "</tr><tr><td>mice run", "</td>", End.STRUCTURE),
        ("## Elephants", "Mice run away", "x\n", End.STRUCTURE),
        ("d><td>elephants", "r></table>", "<td>one</t", End.STRUCTURE),
        (" more", "", "the end.", End.STRUCTURE),
        ('"}, {"bbox": [1', " goes on with this", '"text": "A sentence', End.STRUCTURE),
    ],
)
def test_reasons(rejected: str, written: str, before: str, why: End) -> None:
    assert reason(rejected, written, before) is why


def test_of_a_tree_the_branch_packed_first_is_the_one_rejected() -> None:
    guesses = [[1, 2, 3, 4], [1, 2, 5, 6], [1, 7, 8]]
    tree = PrefixTree([Candidate(g, "x", 0.9 - i / 10, 0.9) for i, g in enumerate(guesses)], 10).pack(0, 10)
    assert tree.behind(0, 10) == [1, 2, 3, 4]
    assert tree.behind(2, 10) == [3, 4]
    assert tree.behind(2, 1) == [3]
    seven = tree.child(1, 7)
    assert seven is not None
    assert tree.behind(seven, 10) == [8]
    assert tree.behind(4, 10) == []


def test_acceptance_by_label_accounts_for_every_step() -> None:
    fates = by_label(page(decoded(TEXT, DRAFTS)))
    assert {label: (f.steps, f.tokens, f.accepted) for label, f in fates.items()} == {
        "text": (4, 32, 28),  # the last of them wrote the first letter of the next region
        "list": (1, 17, 16),
        "footnote": (1, 16, 15),
    }
    assert fates["text"].ends == Counter([End.FORMAT_SEAM, End.WRONG_TOKEN, End.NO_MATCH, End.STRUCTURE])
    everything = together([fates, fates])
    assert list(everything) == ["text", "list", "footnote"]
    assert everything["text"].to_json()["aal"] == 28 / 4
    assert sum(everything.values(), Fates()).steps == 12


def test_output_that_the_drafter_has_no_region_for_and_crops() -> None:
    sequence = decoded(TEXT, DRAFTS)
    assert set(by_label(page(sequence, REGIONS[:1]))) == {"text", NO_REGION}
    assert set(by_label(page(sequence, ()))) == {NO_REGION}
    staged = page(sequence)
    first = StageResult("regions", (sequence, sequence), region_index=(2, 1))
    fates = by_label(replace(staged, stages=(first, *staged.stages)))
    assert {label: f.steps for label, f in fates.items()} == {"footnote": 6 + 1, "list": 6 + 1, "text": 4}


def test_lines_are_placed_by_their_letters_and_rows_between_them_too() -> None:
    table = "<table><tr><td>Revenue 1999</td></tr><tr><td>7</td></tr><tr><td>Expenses 2001</td></tr></table>"
    regions = [
        Region(BOX, Label.TEXT, "What fell out of the tree was a pear, said the gardner."),
        Region(BOX, Label.TABLE, table, "html"),
        Region(BOX, Label.PAGE_NUMBER, "17"),
        Region(BOX, Label.HEADER, "A history of pears"),
        Region(BOX, Label.TITLE, "A History of Pears"),
    ]
    lines = {
        "# A history of pears\n\n": 4,  # not the running head of the same words
        "What fell out of the tree was a **pear**, said the gardener.\n\n": 0,  # in spite of an error
        "| Revenue | 1999 |\n": 1,
        "| 7 | 8 |\n": 1,
        "| Expenses | 2001 |\n": 1,
        "Nobody has drafted this line.\n": None,
        "17": 2,
    }
    placing, at = Placing("".join(lines), regions), 0
    for line, region in lines.items():
        assert placing.region(at) == placing.region(at + len(line) - 1) == region, line
        at += len(line)
    assert Placing("", regions).region(0) is None


def test_records_of_a_page_in_json_are_placed_one_by_one() -> None:
    text = json.dumps([{"category": "Text", "text": r.text} for r in REGIONS])
    placing = Placing(text, REGIONS)
    assert [placing.region(text.index(word)) for word in ("quick", "Second", "last")] == [0, 1, 2]


def test_records_keep_it_and_older_ones_are_read_without() -> None:
    whole = page(decoded(TEXT, DRAFTS))
    data = json.loads(json.dumps(page_to_json(whole)))
    assert page_from_json(data) == whole
    del data["stages"][0]["sequences"][0]["steps"]["rejected"]
    old = page_from_json(data)
    assert {s.rejected for s in old.stages[0].sequences[0].steps} == {None}
    fates = by_label(old)
    assert {label: f.accepted for label, f in fates.items()} == {"text": 28, "list": 16, "footnote": 15}
    assert all(set(f.ends) == {End.UNKNOWN} for f in fates.values())


def test_sequences_without_pieces_or_steps_have_no_fates_to_find() -> None:
    assert by_label(PageResult(1, error="broken")) == {}
    bare = SequenceResult((1, 2), "ab", "eos", (Step(1, 0, True, "", 0.1, "x"),))
    assert {label: set(f.ends) for label, f in by_label(page(bare, ())).items()} == {NO_REGION: {End.UNKNOWN}}
