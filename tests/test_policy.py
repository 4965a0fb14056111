"""What counts as a failure, what can help against it, and which of two results is kept."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hsdkit.policy import (
    BY_DEFAULT,
    DONE,
    HELPS,
    Action,
    Failure,
    agreement,
    can_help,
    cut_line,
    failure_of,
    reason_of,
    saved_line,
    worth,
)
from hsdkit.results import PageResult

ENDINGS = st.sampled_from(["eos", "length", "time", "loop"])
TEXTS = st.text(max_size=60)


@pytest.mark.parametrize(
    ("result", "printed", "failure"),
    [
        (PageResult(1, error="broken"), 900, "error"),
        (PageResult(1, markdown="text", finish_reason="eos"), 60, None),
        (PageResult(1, markdown=" \n", finish_reason="eos"), 900, "empty"),
        (PageResult(1, markdown="<table><tr><td>7</td></tr></table>", finish_reason="eos"), 900, "empty"),
        (PageResult(1, markdown="", finish_reason="eos"), 0, None),  # a blank page
        (PageResult(1, markdown="", finish_reason="eos"), 3, None),  # a page number, left out
        (PageResult(1, markdown="text", finish_reason="loop"), 900, "loop"),
        (PageResult(1, markdown="text", finish_reason="length"), 900, "length"),
        (PageResult(1, markdown="", finish_reason="time"), 0, "time"),
        (PageResult(1, markdown="text", origin="draft"), 900, None),
    ],
)
def test_kinds_of_failure(result: PageResult, printed: float, failure: Failure | None) -> None:
    assert failure_of(result, printed) == failure
    assert bool(reason_of(result, failure)) == (failure is not None)


@pytest.mark.parametrize("action", get_args(Action))
def test_every_action_helps_against_errors_and_can_be_spoken_of(action: Action) -> None:
    assert can_help(action, "error", exact=True, exact_then=True)
    assert DONE[action] in saved_line({action: 1}) or action == "draft"


@pytest.mark.parametrize("failure", ["empty", "loop", "length", "time"])
def test_what_an_exact_run_does_by_itself_is_never_more_than_trying_errors_again(failure: Failure) -> None:
    assert not any(can_help(action, failure, exact=True, exact_then=True) for action in BY_DEFAULT)


def test_plain_decoding_helps_against_loops_where_it_writes_something_else() -> None:
    assert can_help("plain", "loop", exact=False, exact_then=True)
    assert not can_help("plain", "length", exact=False, exact_then=True)
    assert not can_help("retry", "loop", exact=False, exact_then=False)  # deterministic all the same


def test_only_the_drafters_text_is_there_when_time_is_over() -> None:
    assert [action for action, failures in HELPS.items() if "time" in failures] == ["draft"]


@given(TEXTS, TEXTS, ENDINGS)
def test_any_result_is_worth_more_than_an_error_and_more_text_never_less(a: str, b: str, ending: str) -> None:
    one = PageResult(1, markdown=a, finish_reason=ending)  # type: ignore[arg-type]
    more = PageResult(1, markdown=a + b, finish_reason=ending)  # type: ignore[arg-type]
    assert worth(PageResult(1, error="broken", markdown=a + b)) < worth(one) <= worth(more)


@given(TEXTS, ENDINGS)
def test_the_same_text_is_worth_most_from_a_model_that_ended(text: str, ending: str) -> None:
    ended = PageResult(1, markdown=text, finish_reason="eos")
    other = PageResult(1, markdown=text, finish_reason=ending)  # type: ignore[arg-type]
    drafted = PageResult(1, markdown=text, origin="draft")
    assert worth(ended) >= worth(other) >= worth(drafted)


def test_a_draft_takes_the_place_of_a_page_that_broke_off_early_only() -> None:
    label = "<!-- hsdkit: page 1 is the text of drafter toy, not read by the model -->"
    assert worth(PageResult(1, markdown=label, origin="draft")) == 0
    cut, drafted = PageResult(1, markdown="a" * 100, finish_reason="time"), "b" * 150
    assert worth(PageResult(1, markdown=drafted, origin="draft")) < worth(cut)
    assert worth(PageResult(1, markdown=drafted * 2, origin="draft")) > worth(cut)


UPRIGHT = "In the winter of the year the harbour was closed to ships."
UPSIDE_DOWN = "sdiqs oi pasolo sem jnoqjeu aqi jeah aqi jo jaiuim aqi uI uou"


def test_the_drafters_text_tells_which_way_up_a_page_is() -> None:
    upright, upside_down = (PageResult(1, markdown=text, finish_reason="eos") for text in (UPRIGHT, UPSIDE_DOWN))
    assert worth(upside_down) > worth(upright)
    draft = "ln the vvinter of the year tbe harbour was c1osed"
    assert worth(upside_down) * agreement(upside_down, draft) < worth(upright) * agreement(upright, draft)


@given(TEXTS, TEXTS)
def test_agreement_is_a_share_and_takes_no_error_for_a_text(text: str, draft: str) -> None:
    read, failed = PageResult(1, markdown=text), PageResult(1, error="broken")
    assert 0 < agreement(read, draft) <= 1
    assert worth(failed) * agreement(failed, draft) < worth(read) * agreement(read, draft) + 1e-9
    assert agreement(read, "a few") == 1


def test_pages_that_were_cut_are_counted_at_the_end() -> None:
    assert cut_line({"eos": 7, "error": 2}) == ""
    assert cut_line({"eos": 1, "time": 2, "loop": 1}) == (
        "3 pages did not come to an end: 2 cut at page_seconds, 1 stopped as the model repeated itself"
    )


def test_the_line_at_the_end_of_a_run() -> None:
    assert saved_line({}) == saved_line({"plain": 0}) == ""
    assert saved_line({"plain": 1}) == "1 page needed another attempt: 1 read without a draft"
    assert saved_line({"page": 2, "draft": 1}) == (
        "3 pages needed another attempt: 2 read without Stage 1, 1 is the drafter's text"
    )
    assert saved_line({"draft": 2}).endswith("2 are the drafter's text")
