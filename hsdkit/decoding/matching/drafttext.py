"""The drafts of one sequence as a single text: its bytes, its tokens, and where tokens and regions begin."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from hsdkit.decoding.protocol import Codec
from hsdkit.protocols import BLANK_LINE


class DraftText:
    """Regions in reading order, joined as the target would write them.

    The tokens are those of the joined text, so that a token may reach over a seam (".\\n\\n"), as it does in the
    target's own output. `text` is what the tokens spell (the tokenizer may normalise); positions are bytes in it.

    tokens: all tokens; starts: the position of each, and the length of the text at the end; region_starts/region_ends:
    positions of each region's first byte and of the byte after its last.
    """

    def __init__(self, drafts: Sequence[str], codec: Codec, separator: str = BLANK_LINE) -> None:
        regions = [region for region in (draft.strip("\n") for draft in drafts) if region.strip()]
        joined = separator.join(regions)
        pieces = [(token, codec.token_bytes(token)) for token in codec.encode(joined)]
        self.tokens = [token for token, data in pieces if data]
        self.text = b"".join(data for _, data in pieces)
        self.starts = [0, *accumulate(len(data) for _, data in pieces if data)]
        #: Mean bytes of a token. Where they are (nearly) single bytes they do not depend on their neighbours.
        self.token_bytes = len(self.text) / max(1, len(self.tokens))
        self.bytewise = self.token_bytes < 1.1
        self.token_at = {start: index for index, start in enumerate(self.starts)}

        plain = self.text == joined.encode()
        lengths = [
            len(r.encode()) if plain else sum(map(len, map(codec.token_bytes, codec.encode(r)))) for r in regions
        ]
        starts = [0, *accumulate(length + len(separator.encode()) for length in lengths)][: len(lengths)]
        ends = (start + length for start, length in zip(starts, lengths, strict=True))
        # A tokenizer that shortens separators makes the text shorter than its regions are.
        self.region_starts, self.region_ends = ([min(at, len(self.text)) for at in part] for part in (starts, ends))

    def region_of(self, position: int) -> int:
        """The region that a position lies in; a separator belongs to the region before it."""
        return max(0, bisect_right(self.region_starts, position) - 1)

    def token_from(self, position: int) -> int:
        """Index of the first token that begins at or after a position."""
        return bisect_right(self.starts, position - 1)

    def next_character(self, position: int) -> int:
        """Where the character after the one at a position begins."""
        position += 1
        while position < len(self.text) and 0x80 <= self.text[position] < 0xC0:
            position += 1
        return min(position, len(self.text))
