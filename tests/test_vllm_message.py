"""What travels to a vLLM engine and back: as it was sent, and never more than is believed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hsdkit_plugins.engines._vllm.message import (
    FORMAT,
    KEY,
    MOST_CHARACTERS,
    MOST_DRAFTS,
    Message,
    Record,
    read_message,
    read_record,
)
from hypothesis import given
from hypothesis import strategies as st

from hsdkit.results import Step


@given(st.lists(st.text(max_size=20), max_size=4), st.none() | st.integers(0, 127), st.booleans())
def test_a_message_arrives_as_it_was_sent(drafts: list[str], width: int | None, flag: bool) -> None:
    message = Message(tuple(drafts), "\n", "paper", 4, flag, not flag, width, ("<fcel>",))
    assert read_message(message.pack()) == message


def test_a_message_is_one_string_as_vllm_xargs_takes_it() -> None:
    assert [type(value) for value in Message(("a",)).pack().values()] == [str]


def test_requests_of_others_have_no_message() -> None:
    assert read_message(None) is None
    assert read_message({"kv_transfer_params": {}}) is None


def changed(**parts: Any) -> dict[str, str]:
    return {KEY: json.dumps(json.loads(Message(("a",)).pack()[KEY]) | parts)}


@pytest.mark.parametrize(
    "hostile",
    [
        {KEY: 7},
        {KEY: ["a"]},
        {KEY: "{"},
        {KEY: "[" * 100_000},
        {KEY: "null"},
        {KEY: "x" * (9 * MOST_CHARACTERS)},
        changed(format=FORMAT + 1),
        changed(drafts="abc"),
        changed(drafts=[1]),
        changed(drafts=["x"] * (MOST_DRAFTS + 1)),
        changed(drafts=["x" * (MOST_CHARACTERS + 1)]),
        changed(written=["x" * 1000]),
        changed(separator=None),
        changed(separator="x" * 1000),
        changed(matching="suffix"),
        changed(matching=["aligned"]),
        changed(n=0),
        changed(n=10**9),
        changed(n=True),
        changed(self_lookup=1),
        changed(width=-1),
        changed(width=1.5),
        changed(surprise=1),
    ],
)
def test_what_is_no_message_is_refused_with_a_short_reason(hostile: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w") as refusal:
        read_message(hostile)
    assert len(str(refusal.value)) < 200


def test_a_record_arrives_as_it_was_made() -> None:
    steps = (Step(5, 3, True, "draft", 0.25, 'für "x"\n'), Step(0, 0, True, "", 0.125, None))
    record = Record(steps, 0.5, 0.01, 64, (0.02, 0.001), "none")
    assert read_record(record.to_text()) == record


@pytest.mark.parametrize("other", [None, 7, "stop", "{}", '{"hsdkit": 1', '{"hsdkit":9}', '{"hsdkit":1,"steps":[[1]]}'])
def test_what_is_no_record_is_none(other: Any) -> None:
    assert read_record(other) is None
