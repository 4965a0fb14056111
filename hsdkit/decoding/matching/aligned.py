"""`aligned` matching, the default: a byte pointer into the draft being read, re-aligned after every step.

Where exact windows wait for n clean tokens after each mistake of the draft, this goes on at once: the output is aligned
with the draft byte by byte, and the draft is tokenised again from the start of the current word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hsdkit.decoding.matching import belief as alignment
from hsdkit.decoding.matching.boxes import Boxes
from hsdkit.decoding.matching.cursor import Cursor, open_cursor
from hsdkit.decoding.matching.drafttext import DraftText
from hsdkit.decoding.matching.ngrams import OwnText
from hsdkit.decoding.matching.rates import Rate, Rates
from hsdkit.decoding.matching.reading import Reading
from hsdkit.decoding.protocol import Candidate, Codec
from hsdkit.protocols import BLANK_LINE

#: Share of a draft's bytes expected to be right, before anything is known of it.
ACCURACY = 0.985
#: Most places of the draft proposed at once, and the least probability of one worth tokenising.
PLACES, UNLIKELY = 4, 0.03
#: The own text is looked up unless the draft's guesses have this probability together.
SURE = 0.8
#: Tokens of an alternative; further ones would not survive.
ALTERNATIVE = 16
#: Region heads offered at a line's start, and their tokens.
HEADS, HEAD = 8, 8


@dataclass(slots=True)
class _Guess:
    """A candidate on offer, the kind of guess it is, the probability stated for it before calibration, and the cursor
    if it is read from the draft. A guess that forks off another is scored with that one."""

    candidate: Candidate
    kind: str
    stated: float
    cursor: Cursor | None
    fork: bool = False


class AlignedMatcher:
    """`Matcher` over the drafts of one sequence; `n` is the longest n-gram looked up in the text already produced.

    After a step that followed a candidate, the tokens behind it go on without any work; after a departure the draft is
    read on wherever `Reading` believes the output to be.
    """

    def __init__(
        self,
        drafts: Sequence[str],
        codec: Codec,
        n: int = 3,
        self_lookup: bool = True,
        separator: str = BLANK_LINE,
    ) -> None:
        self._codec = codec
        self._draft = DraftText(drafts, codec, separator)
        self._boxes = Boxes(self._draft, codec)
        self._reading = Reading(self._draft, self._boxes, separator)
        self._own = OwnText(n) if self_lookup else None
        self._tokens: list[int] = []
        self._following: Cursor | None = None
        self._guesses: list[_Guess] = []
        self._rates = Rates(Rate(ACCURACY**self._draft.token_bytes, 12.0, memory=300.0))

    # -- learning -----------------------------------------------------------------------------------------------------

    def update(self, tokens: Sequence[int], accepted: int, source: str) -> None:
        """Takes in what was emitted. It compares that with all it had proposed, so it learns from candidates that were
        not verified as well, and needs neither `accepted` nor `source`."""
        if not tokens:
            return
        data = [self._codec.token_bytes(token) for token in tokens]
        self._tokens.extend(tokens)
        self._reading.write(b"".join(data))
        if self._own is not None:
            self._own.extend([token for token, piece in zip(tokens, data, strict=True) if piece])
        followed, matched = self._score(tokens)
        self._guesses = []
        if not self._draft.tokens:
            return
        if followed is not None and matched:
            cursor = self._moved(followed, matched)
            self._reading.is_at(cursor.position)
            if matched == len(tokens):
                self._following = cursor
                return
            if (behind := self._boxes.behind(cursor.position, b"".join(data[matched:]))) is not None:
                # Only a number of a box is another: nothing is lost.
                begin = self._reading.mark_read(cursor.begin, behind)
                self._following = Cursor(behind, [], self._draft.token_at[behind], begin)
                self._reading.is_at(behind)
                return
        self._following = None
        self._reading.realign(b"".join(data[matched:]))

    def _score(self, tokens: Sequence[int]) -> tuple[Cursor | None, int]:
        """Learns from all candidates on offer what the target made of them, walked or not. Returns the cursor that led
        furthest along the tokens, and how far."""
        best: _Guess | None = None
        most = 0
        rates = self._rates
        for guess in self._guesses:
            cursor = guess.cursor
            # Read on beyond what was offered: the bonus token may well be the draft's next.
            read = guess.candidate.tokens if cursor is None else self._stream(cursor, len(tokens))
            matched = _common(read, tokens)
            if guess.kind != "draft" and not guess.fork:
                rates.first_of(guess.kind).observe(guess.stated, matched > 0)
            if cursor is None or guess.kind == "head":
                later = min(len(read), len(tokens)) - 1
                if matched and later:
                    rates.rest_of(guess.kind).observe(matched - 1, min(matched, later))
            elif matched > most:
                best, most = guess, matched
        if best is None:
            return None, 0
        # The first token of a place just guessed tells of the guess, all others of the draft.
        guessed = int(best.kind != "draft")
        trials = min(most + 1, len(tokens)) - guessed
        if most < len(tokens) and self._in_box(best.cursor, most):
            trials = most - guessed
        rates.draft.observe(most - guessed, trials)
        return best.cursor, most

    def _in_box(self, cursor: Cursor | None, count: int) -> bool:
        """Whether what follows `count` tokens of a cursor is a number of a box, which says nothing of the text."""
        return cursor is not None and self._boxes.holds(self._position(cursor, count))

    def _moved(self, cursor: Cursor, count: int) -> Cursor:
        """The cursor after `count` of its tokens."""
        seam, position = cursor.seam, self._position(cursor, count)
        begin = self._reading.mark_read(cursor.begin, position)
        if count > len(seam):
            return Cursor(position, [], cursor.token + count - len(seam), begin)
        if cursor.places and (token := self._draft.token_at.get(position)) is not None:
            return Cursor(position, [], token, begin)
        return Cursor(position, seam[count:], cursor.token, begin, places=cursor.places[count:])

    def _position(self, cursor: Cursor, count: int) -> int:
        """The draft's position after `count` tokens of a cursor."""
        seam = cursor.seam
        if count > len(seam):
            return self._draft.starts[cursor.token + count - len(seam)]
        if cursor.places and count:
            return cursor.places[count - 1]
        read = sum(len(self._codec.token_bytes(token)) for token in seam[:count])
        # A tokenizer that normalises may spell a piece of the draft longer than the whole of it does.
        return min(cursor.position + read, len(self._draft.text))

    # -- proposing ----------------------------------------------------------------------------------------------------

    def propose(self, limit: int) -> list[Candidate]:
        self._guesses = []
        if limit > 0:
            if self._following is not None and self._stream(self._following, 1):
                self._follow(limit)
            else:
                self._search(limit)
            if sum(guess.candidate.first for guess in self._guesses if not guess.candidate.fork) < SURE:
                self._offer_own_text(limit)
            self._guesses.sort(key=lambda guess: (guess.candidate.fork > 0, -guess.candidate.first))
        return [guess.candidate for guess in self._guesses]

    def _follow(self, limit: int) -> None:
        assert self._following is not None
        rate = self._rates.draft.value
        if not self._offer_boxes(self._following, limit, "draft", "draft", rate, rate):
            tokens = self._stream(self._following, limit)
            self._guesses.append(_Guess(Candidate(tokens, "draft", rate, rate), "draft", rate, self._following))

    def _offer_boxes(self, cursor: Cursor, limit: int, source: str, kind: str, stated: float, first: float) -> bool:
        """Offers the ways from a cursor through the numbers of the boxes ahead; whether there are any."""
        rest = self._rates.draft.value
        paths = self._boxes.paths(cursor, limit, first, rest)
        for number, path in enumerate(paths):
            candidate = Candidate(list(path.cursor.seam[:limit]), source, path.first, rest, path.fork)
            self._guesses.append(_Guess(candidate, kind, stated, path.cursor, fork=number > 0))
        return bool(paths)

    def _search(self, limit: int) -> None:
        if self._draft.tokens:
            self._offer_places(limit)
            if self._reading.at_line_start:
                self._offer_heads(limit)

    def _offer(
        self, tokens: list[int], source: str, kind: str, stated: float, rest: float, cursor: Cursor | None = None
    ) -> None:
        """Adds a guess. Those that begin with the same token share the higher probability of it: each is calibrated
        by how often its own first token held."""
        if not tokens:
            return
        first = self._rates.first_of(kind).apply(stated)
        for other in self._guesses:
            if other.candidate.tokens[0] == tokens[0]:
                other.candidate.first = max(other.candidate.first, first)
                if other.candidate.tokens[: len(tokens)] == tokens:
                    return
        self._guesses.append(_Guess(Candidate(tokens, source, first, rest), kind, stated, cursor))

    def _offer_places(self, limit: int) -> None:
        rest = self._rates.draft.value
        for rank, (position, weight) in enumerate(alignment.ranked(self._reading.belief)[:PLACES]):
            if rank and weight < UNLIKELY:
                break
            length = limit if rank == 0 else min(limit, ALTERNATIVE)
            cursor = open_cursor(self._draft, position, self._tokens, self._codec)
            if cursor.agrees:
                kind = "realigned" if rank == 0 else "nearby"
                if rank == 0:
                    first = self._rates.first_of(kind).apply(weight)
                    if self._offer_boxes(cursor, length, "aligned", kind, weight, first):
                        continue
                self._offer(self._stream(cursor, length), "aligned", kind, weight, rest, cursor)
                continue
            for kind, beyond, missing, share in self._beyond(position):
                cursor = open_cursor(self._draft, beyond, self._tokens, self._codec, missing)
                self._offer(self._stream(cursor, length), "aligned", kind, weight * share, rest, cursor)

    def _beyond(self, position: int) -> list[tuple[str, int, bytes, float]]:
        """Where to read on if the draft is wrong right at a position, and what it lacks there: it has a character too
        many, something else in the place of a space, or lost a space."""
        after = self._draft.next_character(position)
        return [("character", after, b"", 0.3), ("space", after, b" ", 0.3), ("lost space", position, b" ", 0.1)]

    def _offer_heads(self, limit: int) -> None:
        draft = self._draft
        rest = self._rates.rest_of("head").value
        for number, region in enumerate(self._reading.unread(self._reading.best, HEADS)):
            index = draft.token_from(draft.region_starts[region])
            cursor = Cursor(draft.starts[index], [], index, draft.starts[index])
            self._offer(self._stream(cursor, min(limit, HEAD)), "head", "head", 0.5 / (number + 1), rest, cursor)

    def _offer_own_text(self, limit: int) -> None:
        if self._own is None:
            return
        for rank, (place, common) in enumerate(self._own.lookup()):
            kind = f"own{common}" if rank == 0 else "own-other"
            tokens = self._own.tokens[place : place + limit]
            self._offer(tokens, "self", kind, 0.12 + 0.09 * common, self._rates.rest_of(kind).value)

    def _stream(self, cursor: Cursor, limit: int) -> list[int]:
        """The next tokens read from a cursor, at most `limit`."""
        seam = cursor.seam
        if len(seam) >= limit:
            return seam[:limit]
        return seam + self._draft.tokens[cursor.token : cursor.token + limit - len(seam)]


def _common(a: Sequence[int], b: Sequence[int]) -> int:
    length = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        length += 1
    return length
