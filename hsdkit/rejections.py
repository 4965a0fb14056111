"""Why a step ended where it did: what the draft went on with, against what the model wrote there. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum

from rapidfuzz.distance import Levenshtein

from hsdkit.results import SequenceResult, Step


class End(StrEnum):
    """How the draft of a step ended. D is what it went on with behind the accepted tokens (`Step.rejected`), M what the
    model wrote from there on; their *content* is what is left without white space, tags, LaTeX and Markdown marks.

    taken: nothing was rejected: all of the draft that was verified, along the accepted path, was accepted.
    no_match: nothing was proposed: the output was not found in the draft, nor in what was written before.
    not_verified: there was a proposal, and the budget spent no token on it.
    format_seam: D and M have the same content as far as both are known: other spaces, line ends, marks, tags, or the
        same text in other tokens.
    wrong_token: the draft says something else in the same place: contents that resemble each other (a reading error),
        or that differ within a line.
    structure: the draft goes elsewhere: contents that do not resemble each other at the edge of a block (D or M begins
        with a line end, a mark or a tag, or a line or cell begins right there), such as another region, row or cell;
        or the model ended where the draft went on.
    unknown: nobody was asked for a draft (plain decoding), the repetition guard cut off what the step wrote, or the
        record is of an earlier version.

    Only the four of `REASONS` say that a draft failed. Contents shorter than four characters resemble nothing (but for
    one or two more in front, such as a lost full stop), and are the same only if what comes before them differs.
    """

    TAKEN = "taken"
    NO_MATCH = "no_match"
    NOT_VERIFIED = "not_verified"
    FORMAT_SEAM = "format_seam"
    WRONG_TOKEN = "wrong_token"
    STRUCTURE = "structure"
    UNKNOWN = "unknown"


REASONS = (End.NO_MATCH, End.WRONG_TOKEN, End.FORMAT_SEAM, End.STRUCTURE)

#: Fewest characters of content that can be compared, most that are, and how alike they are if one is a misreading.
ENOUGH, COMPARED, ALIKE = 4, 32, 0.6
#: Characters of output looked back at for the tag or line that a step begins in.
BEFORE = 64

_TAG = re.compile(r"<[/!|a-zA-Z][^<>]*(>|$)")
#: White space, marks of Markdown and LaTeX, a list's mark where a text begins, and halves of characters.
_MARKS = re.compile(r"\A\s*(?:[-+•◦▪–—]\s)|[\s#*_$|`~\\{}\ufffd]+")
#: What begins a block, a row or a cell: in Markdown, HTML, DocTags and JSON records.
_EDGE = re.compile(r'[ \t]*(\r?\n|<|\||#{1,6} |\$\$|```|\\\[|"[}\]]|$)')
#: Where the text before ends at such an edge.
_LINE_START = re.compile(r'(\A|\n[ \t]*|[>|][ \t]*|(?:^|\n)#{1,6} |"text": ")\Z')


def ends(sequence: SequenceResult) -> Iterator[tuple[Step, int, End]]:
    """Each step of a sequence with the number of tokens written before it, and how its draft ended."""
    at, before = 1, "".join(sequence.pieces[:1])
    for step in sequence.steps:
        accepted = "".join(sequence.pieces[at : at + step.accepted])
        begun = (before + accepted)[-BEFORE:]
        # As much as can be compared; pieces of marks and halves of characters say nothing, so there are some more.
        written = "".join(sequence.pieces[at + step.accepted : at + step.accepted + 2 * COMPARED])
        # What the repetition guard cut off is not known.
        cut = at + step.emitted > len(sequence.pieces)
        yield step, at, End.UNKNOWN if cut else end_of(step, written, begun)
        before = (begun + "".join(sequence.pieces[at + step.accepted : at + step.emitted]))[-BEFORE:]
        at += step.emitted


def end_of(step: Step, written: str, before: str) -> End:
    """How the draft of a step ended; `written` is what the model wrote behind the accepted tokens ("" where it ended),
    `before` the end of the text up to there."""
    if step.rejected is None:
        return End.UNKNOWN
    if not step.rejected:
        return End.TAKEN if step.nodes else End.NO_MATCH
    if not step.nodes:
        return End.NOT_VERIFIED
    return reason(step.rejected, written, before)


def reason(rejected: str, written: str, before: str = "") -> End:
    """Which of `format_seam`, `wrong_token` and `structure` it is that a draft was not accepted; see `End`."""
    if not written:
        return End.STRUCTURE
    opened = _opened_tag(before)
    drafted, wrote = opened + rejected, opened + written
    (lead, content), (own_lead, own) = _parts(drafted), _parts(wrote)
    if _shifted(content, own):
        return End.WRONG_TOKEN
    known = min(len(content), len(own), COMPARED)
    content, own = content[:known], own[:known]
    if content == own and (known >= ENOUGH or (known and lead != own_lead)):
        return End.FORMAT_SEAM
    if known >= ENOUGH and Levenshtein.normalized_similarity(content, own) >= ALIKE:
        return End.WRONG_TOKEN
    at_edge = _EDGE.match(drafted) or _EDGE.match(wrote) or _LINE_START.search(before)
    return End.STRUCTURE if at_edge else End.WRONG_TOKEN


def _shifted(content: str, own: str) -> bool:
    """Whether one of them only has a character or two in front that the other lacks: a lost or added full stop."""
    return any(len(b) >= 3 and a.find(b[:3], 0, 5) > 0 for a, b in ((content, own), (own, content)))


def _opened_tag(before: str) -> str:
    """The beginning of a tag that the text before ends in, "" where it ends in none."""
    found = re.search(r"<[/!|a-zA-Z]?[^<>\n]{0,40}\Z", before)
    return found[0] if found else ""


def _parts(text: str) -> tuple[str, str]:
    """What comes before the content, and the content."""
    bare = _TAG.sub(lambda tag: "\n" * len(tag[0]), text)
    content = _MARKS.sub("", bare)
    lead = bare.index(content[0]) if content else len(text)
    return text[:lead], content
