"""Which characters are taken for which: what looks alike in print and is mixed up by OCR."""

from __future__ import annotations

import unicodedata
from functools import cache

from hsdkit.spelling import is_cjk

#: Groups with blanks between; each character of a group is taken for the others.
_LOOK_ALIKES = """
    0OoQD 1lIi! 5Ss 8B3 6Gb 9gq 2Zz 4A 7T? ceo aeo es uvy nhru mn tfr lt kx ij pq bh dcl EF PRF CGO UVY MN WV wv XKx
    HN JI Cc Oo Pp Ss Uu Vv Ww Xx Zz Kk ., :; .: '`’‘ "“” -–— ([{ )]} +t *× =- /l %8 #H $S €C §S
    己已巳 未末 土士 日曰目 大太犬 人入八 千干于 天夫 木本术 王玉主 田由甲申 午牛 刀力 几九 贝见 问间 侯候 晴睛 拔拨
    辨辩 、，, 。. ；; ：: （( ）) 口ロ 工エ 二ニ 一ー ソンツシ はほ るろ めぬ わねれ ハバパ ヘへ クワ ウワ スヌ コユ
"""
_GROUPS = _LOOK_ALIKES.split()

#: One character for two, and two for one.
_PAIRS = {"rn": "m", "cl": "d", "vv": "w", "li": "h", "ri": "n", "nn": "m"}
_PAIRS |= {one: two for two, one in _PAIRS.items() if two not in ("ri", "nn")}


def pair(two: str) -> str:
    """The one character that two in a row are taken for; "" when there is none."""
    return _PAIRS.get(two, "") if len(two) == 2 else ""


@cache
def confusable(character: str) -> tuple[str, ...]:
    """What the character may be taken for, one character or two; never itself. Empty for what looks like nothing
    else."""
    found = dict.fromkeys(other for group in _GROUPS if character in group for other in group)
    if character in _PAIRS:
        found[_PAIRS[character]] = None
    if not found or set(found) == {character}:
        found = dict.fromkeys(_relatives(character))
    return tuple(other for other in found if other != character)


def _relatives(character: str) -> list[str]:
    """A letter without its accent or in the other case; of scripts with thousands of characters the neighbours, which
    share a radical (Chinese) or differ in the last part of the syllable (Korean)."""
    bare = unicodedata.normalize("NFD", character)[0]
    if bare != character and bare.isalpha() and not "가" <= character <= "힣":
        return [bare]
    if is_cjk(character) or "가" <= character <= "힣":
        near = [chr(ord(character) + step) for step in (-2, -1, 1, 2)]
        return [c for c in near if unicodedata.category(c) == unicodedata.category(character)]
    other = character.swapcase()
    return [other] if len(other) == 1 else []
