"""What to do about a page that failed: what counts as a failure, what can help against it, which result is kept.

Decisions only, as data and pure functions; `hsdkit.attempts` carries them out.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from hsdkit.results import PageResult

#: `error`: something was raised; `empty`: no text from a page with print on it; the others are finish reasons.
Failure = Literal["error", "empty", "loop", "length", "time"]

#: `retry`: the same again. `page`: without Stage 1. `plain`: without a draft, one token a step. `rotate`: the page
#: turned by 90, 270 and 180 degrees, read without a draft. `draft`: the drafter's text instead of the model's.
Action = Literal["retry", "page", "plain", "rotate", "draft"]

#: Both leave an exact run exact: what they yield is what the model writes for this page. Turning the page changes what
#: the model sees, and the drafter's text is not the model's: a run does either only when it is asked to.
BY_DEFAULT: tuple[Action, ...] = ("retry", "plain")

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

_CUT = {
    "length": "cut at max_new_tokens",
    "time": "cut at page_seconds",
    "loop": "stopped as the model repeated itself",
}
_DRAFTS = ("is the drafter's text", "are the drafter's text")

REASONS: Mapping[Failure, str] = MappingProxyType(
    {
        "empty": "the model wrote no text",
        "loop": "the model went on repeating itself",
        "length": "cut at max_new_tokens",
        "time": "cut at page_seconds",
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


def failure_of(result: PageResult, printed: bool) -> Failure | None:
    """How a page failed, None for one that is well; `printed` says whether there is print on the page."""
    if result.error is not None:
        return "error"
    if result.origin == "draft":
        return None
    if result.finish_reason in ("loop", "length", "time"):
        return result.finish_reason
    return "empty" if printed and not result.markdown.strip() else None


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
    letters = sum(map(str.isalnum, result.markdown))
    if result.origin == "draft":
        return letters / 4
    return letters if result.finish_reason == "eos" else letters / 2
