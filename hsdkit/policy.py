"""What to do about a page that failed: what counts as a failure, what can help against it, which result is kept.

Decisions only, as data and pure functions; `hsdkit.attempts` carries them out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from hsdkit.results import PageResult

#: `error`: something was raised; `empty`: no text, or next to none, of a page with print on it; the others are finish
#: reasons.
Failure = Literal["error", "empty", "loop", "length", "time"]

#: `retry`: the same again. `page`: without Stage 1. `plain`: without a draft, one token a step. `rotate`: the page
#: turned by 90, 270 and 180 degrees, read without a draft. `draft`: the drafter's text instead of the model's.
Action = Literal["retry", "page", "plain", "rotate", "draft"]

#: Both leave an exact run exact: what they yield is what the model writes for this page. Turning the page changes what
#: the model sees, and the drafter's text is not the model's: a run does either only when it is asked to.
BY_DEFAULT: tuple[Action, ...] = ("retry", "plain")

#: A page is as good as empty with less than this share of its characters read, unless it has so few that they may be
#: specks or a page number. Characters are counted by their ink, so pictures may have many: well below what text needs.
LEAST, FEW = 0.05, 20

#: Which failures an action can do something about.
HELPS: Mapping[Action, frozenset[Failure]] = MappingProxyType(
    {
        # Decoding is deterministic: a page that looped loops again. Memory, a server or a file may be back.
        "retry": frozenset({"error"}),
        # Needs less memory (no crops; no trees), and nothing of a draft can break it.
        "page": frozenset({"error", "empty", "loop"}),
        "plain": frozenset({"error", "empty", "loop"}),
        # A page on its side is read as nothing, or as one word over and over. One that was cut is merely long.
        "rotate": frozenset({"error", "empty", "loop"}),
        "draft": frozenset({"error", "empty", "loop", "length", "time"}),
    }
)

#: The verifier that an action reads the page with, where it is another one.
VERIFIERS: Mapping[Action, str] = MappingProxyType({"page": "page", "plain": "autoregressive"})

#: In the order in which pages are found to lie: scans of landscape pages, then those fed upside down.
TURNS = (90, 270, 180)

#: How an action is spoken of where it saved a page.
DONE: Mapping[str, str] = MappingProxyType(
    {
        "retry": "read at another try",
        "page": "read without Stage 1",
        "plain": "read without a draft",
        "rotate": "read with the page turned",
        "draft": "the drafter's text",
    }
)

#: Letters in a row that tell one text from another.
GRAM = 3

_TAG = re.compile(r"<[!/a-zA-Z][^<>]*>")

_CUT = {
    "length": "cut at max_new_tokens",
    "time": "cut at page_seconds",
    "loop": "stopped as the model repeated itself",
}
_DRAFTS = ("is the drafter's text", "are the drafter's text")

REASONS: Mapping[Failure, str] = MappingProxyType(
    {
        "empty": "next to nothing was read of what is printed there",
        "loop": "the model went on repeating itself",
        "length": _CUT["length"],
        "time": _CUT["time"],
    }
)


def saved_line(saved: Mapping[str, int]) -> str:
    """`3 pages needed another attempt: 2 read without Stage 1, 1 is the drafter's text`; "" where none did."""
    count = sum(saved.values())
    if not count:
        return ""
    parts = [f"{n} {DONE[action] if action != 'draft' else _DRAFTS[n > 1]}" for action, n in saved.items() if n]
    return f"{count} {'page' if count == 1 else 'pages'} needed another attempt: {', '.join(parts)}"


def cut_line(finish_reasons: Mapping[str, int]) -> str:
    """`2 pages did not come to an end: 1 cut at page_seconds, 1 stopped as the model repeated itself`; "" for none."""
    found = {reason: n for reason, n in finish_reasons.items() if reason in _CUT and n}
    if not found:
        return ""
    count = sum(found.values())
    parts = [f"{n} {_CUT[reason]}" for reason, n in found.items()]
    return f"{count} {'page' if count == 1 else 'pages'} did not come to an end: {', '.join(parts)}"


def letters(result: PageResult) -> int:
    """How many letters and digits its text has; tags and comments are none."""
    return sum(map(str.isalnum, _TAG.sub("", result.markdown)))


def failure_of(result: PageResult, printed: float) -> Failure | None:
    """How a page failed, None for one that is well; `printed` is roughly how many characters are on it."""
    if result.error is not None:
        return "error"
    if result.origin == "draft":
        return None
    if result.finish_reason in ("loop", "length", "time"):
        return result.finish_reason
    return "empty" if printed >= FEW and letters(result) < LEAST * printed else None


def reason_of(result: PageResult, failure: Failure | None) -> str:
    """The failure in words; "" for None."""
    return "" if failure is None else result.error or REASONS[failure]


def can_help(action: Action, failure: Failure, exact: bool, exact_then: bool) -> bool:
    """Whether an action is worth its time. All exact verifiers write the same text of a page, so going from one to
    another (`exact`, `exact_then`) helps against errors only."""
    if action in VERIFIERS and failure != "error" and exact and exact_then:
        return False
    return failure in HELPS[action]


def worth(result: PageResult) -> float:
    """How good a result is: its letters and digits, of which those of a page that was cut count half, and those of a
    drafter a quarter; -1 for a page that failed. So more text wins, a cut page loses against one that came to its end
    with half as much, and the drafter's text takes the place of the model's only where that broke off early."""
    if result.error is not None:
        return -1.0
    if result.origin == "draft":
        return letters(result) / 4
    return letters(result) if result.finish_reason == "eos" else letters(result) / 2


def agreement(result: PageResult, draft: str) -> float:
    """How far a text that the model read of a turned page is that of the drafter, who needs no upright page: the share
    of its sequences of `GRAM` letters that the draft has, no less than `LEAST`; 1 where there is no draft to speak of.
    A page read upside down has as many letters as one read upright, but not these."""
    known, said = _grams(draft), _grams(result.markdown)
    return max(LEAST, len(known & said) / (len(said) or 1)) if len(known) >= FEW else 1.0


def _grams(text: str) -> set[str]:
    content = "".join(filter(str.isalnum, _TAG.sub("", text).casefold()))
    return {content[i : i + GRAM] for i in range(len(content) - GRAM + 1)}
