"""How lines become running text: broken words made whole, no spaces in scripts that have none."""

from __future__ import annotations


def join_texts(*texts: str) -> str:
    """Neighbouring lines as one text. A hyphen at the end of a lower-case word goes when the next line goes on in lower
    case; in words that have a hyphen already ("state-of-the-") and before capitals and digits it stays."""
    pieces: list[str] = []
    for text in filter(None, texts):
        before = pieces[-1] if pieces else ""
        if not before:
            pieces.append(text)
        elif before.endswith("\u00ad"):
            pieces[-1] = before[:-1] + text
        elif before[-1] in "-\u2010" and len(before) > 1 and before[-2].isalnum():
            word = before[:-1].rsplit(None, 1)[-1]
            broken = word.isalpha() and before[-2].islower() and text[0].islower()
            pieces[-1] = (before[:-1] if broken else before) + text
        elif is_cjk(before[-1]) and is_cjk(text[0]):
            pieces.append(text)
        else:
            pieces.append(f" {text}")
    return "".join(pieces)


def is_cjk(char: str) -> bool:
    """Chinese characters, kana, and full-width forms: scripts without spaces."""
    code = ord(char)
    return 0x2E80 <= code <= 0x30FF or 0x3400 <= code <= 0x9FFF or 0xF900 <= code <= 0xFAFF or 0xFF00 <= code <= 0xFFEF
