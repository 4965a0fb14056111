"""A place in the draft to read on from, as tokens: the seam is tokenised again, the rest is the draft's own tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hsdkit.decoding.matching.drafttext import DraftText
from hsdkit.decoding.protocol import Codec

#: Bytes of draft tokenised again after a seam. By then both tokenisations have met, at the next word mostly; where they
#: have not, the longer piece is tried.
SEAMS = (16, 96)
#: Most tokens of output looked back at for the start of the current word.
WORD_TOKENS = 8

_SPACE = ord(" ")


@dataclass(slots=True)
class Cursor:
    """What the target would write from `position` on if the draft were right: the tokens `seam`, then the draft's
    tokens from index `token`. `agrees` is false when the target, had it this continuation in mind, would have written
    its last tokens otherwise: then the draft is wrong right here, and there is no seam. `begin` is where the reading
    began that led here without a departure. `places` are the draft's positions after each token of a seam that the
    draft does not spell itself; else they follow from the tokens' bytes."""

    position: int
    seam: list[int]
    token: int
    begin: int
    agrees: bool = True
    places: Sequence[int] = ()


def open_cursor(draft: DraftText, position: int, output: list[int], codec: Codec, missing: bytes = b"") -> Cursor:
    """The cursor at a byte position, given the output's tokens so far. `missing` is what the draft lacks there."""
    text = draft.text
    index = draft.token_at.get(position)
    if index is not None and not missing:
        same = index > 0 and bool(output) and draft.tokens[index - 1] == output[-1]
        # After the same token, and before a space, the draft's own tokens are what the target would write. So they are
        # anywhere if tokens are mostly single bytes.
        if same or draft.bytewise or position == len(text) or text[position] == _SPACE:
            return Cursor(position, [], index, position)
    word, count = (b"", 0) if missing else _current_word(output, codec)
    start = position - len(missing)
    cursor = Cursor(start, [], len(draft.tokens), start, agrees=False)
    for length in SEAMS:
        piece = text[position : position + length]
        if position + length < len(text):
            piece = piece[: _whole(piece)]
        try:
            tokens = codec.encode((word + missing + piece).decode())
        except UnicodeDecodeError:  # the output stopped inside a character, and the draft does not go on with it
            index = draft.token_from(position)
            return Cursor(draft.starts[index], [], index, draft.starts[index], agrees=False)
        if tokens[:count] != output[len(output) - count :]:
            return cursor
        seam = tokens[count:]
        at = start
        for number, token in enumerate(seam):
            index = draft.token_at.get(at)
            # The end of the draft has a place, and no token: a seam may be spelled longer than the draft spells it.
            if index is not None and at >= position and draft.tokens[index : index + 1] == [token]:
                return Cursor(start, seam[:number], index, start)
            at += len(codec.token_bytes(token))
        # The piece's last token may be cut short.
        cursor = Cursor(start, seam[:-1] or seam, len(draft.tokens), start)
        if position + length >= len(text):
            break
    return cursor


def _current_word(output: Sequence[int], codec: Codec) -> tuple[bytes, int]:
    """The bytes of the last tokens back to one that begins a word, and their number."""
    word = b""
    count = 0
    for token in reversed(output[-WORD_TOKENS:]):
        data = codec.token_bytes(token)
        if not data:
            break
        word, count = data + word, count + 1
        if data[0] < 0x80 and not chr(data[0]).isalnum():
            break
    while word and 0x80 <= word[0] < 0xC0:  # a whole character cannot begin here
        word, count = b"", 0
    return word, count


def _whole(piece: bytes) -> int:
    """Length of a piece up to its last whole character."""
    cut = len(piece)
    while cut > 0 and cut > len(piece) - 4:
        cut -= 1
        if piece[cut] < 0x80:
            return cut + 1
        if piece[cut] >= 0xC0:
            return cut
    return len(piece)
