"""How texts are written before they are compared, and the tests that look for text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from rapidfuzz import fuzz

_MARKS = (
    (re.compile(r"<br/?>"), " "),
    (re.compile(r"\*\*(.*?)\*\*"), r"\1"),
    (re.compile(r"__(.*?)__"), r"\1"),
    (re.compile(r"</?[bi]>"), ""),
    (re.compile(r"(\*\*|__)(.*?)\1"), r"\2"),
    (re.compile(r"(\*|_)(.*?)\1"), r"\2"),
    (re.compile(r"\s+"), " "),
)
_PLAIN = str.maketrans(
    dict.fromkeys("‘’‚", "'") | dict.fromkeys("“”„", '"') | dict.fromkeys("–—‑‒−", "-") | {"＿": "_", "µ": "μ"}
)
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def plain(text: str) -> str:
    """Without bold, italics and line breaks, in plain quotes and dashes."""
    for mark, instead in _MARKS:
        text = mark.sub(instead, text)
    return unicodedata.normalize("NFC", text).translate(_PLAIN)


def limit(test: Mapping[str, Any], text: str) -> float:
    """The least similarity that counts as found, for a test that allows `max_diffs` wrong characters."""
    return 1.0 - int(test.get("max_diffs") or 0) / (len(text) or 1)


def _part(text: str, wanted: str) -> float:
    return float(fuzz.partial_ratio(wanted, text)) / 100.0


def presence(test: Mapping[str, Any], markdown: str) -> str:
    """Of `present` and `absent`: why it fails, "" when it passes."""
    wanted, text = plain(test["text"]), plain(markdown)
    if test.get("case_sensitive") is False:
        wanted, text = wanted.lower(), text.lower()
    first, last = int(test.get("first_n") or 0), int(test.get("last_n") or 0)
    if first or last:
        text = text[:first] + (text[-last:] if last else "")
    best, least = _part(text, wanted), limit(test, wanted)
    if test["type"] == "present":
        return "" if best >= least else f"best match is {best:.3f}, wanted {least:.3f}"
    return "" if best < least else f"is there: {best:.3f} at {least:.3f}"


def order(test: Mapping[str, Any], markdown: str) -> str:
    from fuzzysearch import find_near_matches

    text, allowed = plain(markdown), int(test.get("max_diffs") or 0)
    starts = {}
    for side in ("before", "after"):
        found = find_near_matches(plain(test[side]), text, max_l_dist=allowed)
        if not found:
            return f"the text that comes {'first' if side == 'before' else 'then'} is not there"
        starts[side] = [match.start for match in found]
    return "" if min(starts["before"]) < max(starts["after"]) else "they stand the other way round"


def formatted(test: Mapping[str, Any], markdown: str) -> str:
    """Of `format`: a text that must be a heading, bold or in italics."""
    patterns = _FORMATS[test["format"]]
    wanted = plain(test["text"])
    texts = [plain(found) for pattern in patterns for found in pattern.findall(markdown)]
    if test.get("case_sensitive") is False:
        wanted, texts = wanted.lower(), [text.lower() for text in texts]
    if any(_part(text, wanted) >= limit(test, wanted) for text in texts):
        return ""
    return f"not among the {len(texts)} texts in {test['format']}"


_TAGS = re.IGNORECASE | re.DOTALL
_FORMATS = {
    "heading": (
        re.compile(r"^#{1,6}\s+(.+?)$", re.MULTILINE),
        re.compile(r"<h[1-6][^>]*>(.*?)</h[1-6]>", _TAGS),
    ),
    "bold": (
        re.compile(r"\*\*(.*?)\*\*", re.DOTALL),
        re.compile(r"__(.*?)__", re.DOTALL),
        re.compile(r"<b[^>]*>(.*?)</b>", _TAGS),
        re.compile(r"<strong[^>]*>(.*?)</strong>", _TAGS),
    ),
    "italic": (
        re.compile(r"(?<!\*)\*(?!\*)(.*?)(?<!\*)\*(?!\*)", re.DOTALL),
        re.compile(r"(?<!_)_(?!_)(.*?)(?<!_)_(?!_)", re.DOTALL),
        re.compile(r"<i[^>]*>(.*?)</i>", _TAGS),
        re.compile(r"<em[^>]*>(.*?)</em>", _TAGS),
    ),
}

#: Characters before and after a mark that are looked at.
_AROUND = 200


def footnote(test: Mapping[str, Any], markdown: str) -> str:
    """A footnote mark written as one, and what stands before and after it."""
    marker = str(test["marker"])
    patterns = [
        re.compile(rf"\[\^{re.escape(marker)}\](?!:)"),
        re.compile(rf"<sup[^>]*>{re.escape(marker)}</sup>", re.IGNORECASE),
    ]
    if all(c in "0123456789" for c in marker):
        patterns.append(re.compile(re.escape(marker.translate(_SUPERSCRIPT))))
    spans = [match.span() for pattern in patterns for match in pattern.finditer(markdown)]
    if not spans:
        return f"no footnote mark {marker}"
    before, after = test.get("appears_before_marker"), test.get("appears_after_marker")
    if before and not any(_ends(test, plain(before), markdown[max(0, s - _AROUND) : s]) for s, _ in spans):
        return "other text stands before the mark"
    if after and not any(_ends(test, plain(after), markdown[e : e + _AROUND], begin=True) for _, e in spans):
        return "other text stands after the mark"
    return ""


def _ends(test: Mapping[str, Any], wanted: str, text: str, begin: bool = False) -> bool:
    letters, near = _letters(wanted), _letters(text)
    size = min(len(near), 2 * len(letters))
    if not near:
        return False
    near = (near[:size] if begin else near[-size:]) if size or begin else near
    return _part(near, letters) >= limit(test, wanted)


def _letters(text: str) -> str:
    return "".join(c for c in plain(text) if c.isalnum()).lower()
