"""One caller's requests while they are decoded, perhaps beside those of others: settings, rows, times, the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hsdkit.decoding.budget import Budget
from hsdkit.decoding.protocol import Matcher, Prefill, Prompts, TargetModel
from hsdkit.decoding.row import Row
from hsdkit.protocols import Decoded, DecodeSettings, OnText
from hsdkit.results import StageTimes


class Call:
    """`requests` sequences with the same settings. `done` when all of them have ended or one of them has failed.

    Of a step that rows of several callers share, each caller is charged the share of its rows; so the seconds of all
    calls add up to those that the machine has spent.
    """

    def __init__(
        self,
        requests: int,
        settings: DecodeSettings,
        budget: Budget,
        processors: Sequence[Any] = (),
        on_text: OnText | None = None,
    ) -> None:
        self.settings = settings
        self.budget = budget
        self.processors = processors
        self.error: BaseException | None = None
        self._on_text = on_text
        self._rows: list[Row | None] = [None] * requests
        self._image_token: int | None = None
        self._encode = self._prefill = self._decode = self._host = 0.0
        self._forwards = 0

    @property
    def done(self) -> bool:
        return self.error is not None or all(row and row.finish_reason for row in self._rows)

    def fail(self, error: BaseException) -> None:
        """The first error is the call's; it is raised where the result is asked for."""
        self.error = self.error or error

    def tell(self, row: int, text: str) -> None:
        """Pass on new text. Whatever that raises ends this call, and no other."""
        if self._on_text is not None and text and self.error is None:
            try:
                self._on_text(row, text)
            except BaseException as error:
                self.fail(error)

    def begin(self, first: int, rows: Sequence[Row], image_token: int | None, encode: float, prefill: float) -> None:
        """Its rows from number `first` on have been prefilled, which took so many seconds."""
        self._rows[first : first + len(rows)] = rows
        self._image_token = image_token
        self._encode += encode
        self._prefill += prefill

    def charge(self, share: float, seconds: float, host: float) -> None:
        """A step in which `share` of the rows were its own."""
        self._decode += share * seconds
        self._host += share * host
        self._forwards += 1

    def decoded(self) -> Decoded:
        """The result of a call that is done. Raises its error."""
        if self.error is not None:
            raise self.error
        sequences = tuple(row.result(self._image_token) for row in self._rows if row)
        return Decoded(sequences, StageTimes(self._encode, self._prefill, self._decode, self._host), self._forwards)


class Group:
    """Requests of a call that are prefilled together, prepared: those from number `first` on, with their matchers."""

    def __init__(self, call: Call, first: int, prompts: Prompts, matchers: Sequence[Matcher | None]) -> None:
        self.call = call
        self.first = first
        self.prompts = prompts
        self.matchers = matchers

    def __len__(self) -> int:
        return len(self.matchers)

    def rows(self, model: TargetModel, prefill: Prefill) -> list[Row]:
        made = zip(self.matchers, prefill.prompts, prefill.positions, strict=True)
        return [Row(model, self.call.settings, matcher, prompt, position) for matcher, prompt, position in made]


class Member:
    """A row in the batch, and whose it is: number `number` of the call."""

    def __init__(self, call: Call, number: int, row: Row) -> None:
        self.call = call
        self.number = number
        self.row = row

    @property
    def going(self) -> bool:
        return self.row.finish_reason is None and self.call.error is None
