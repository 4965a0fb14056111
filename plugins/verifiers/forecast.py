"""Does Stage 1 pay on this page? A forecast of both ways in seconds, corrected by what the pages before have shown.

Reading the crops first costs their prefill and their decoding (all regions in one batch), and makes better drafts for
the page. It pays when drafts are poor and regions many, and never when the drafter already wrote what the model will.

The model of it: a draft token survives verification with probability `a`, so a chain of k draft tokens yields
`1 + a + ... + a**k` tokens in a pass (bonus token included), and passes cost what the engine measured. The number
of draft tokens is chosen as the engine would: for the most tokens per second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hsdkit.protocols import Engine
from hsdkit.regions import Region
from hsdkit.results import StageResult

#: Characters that one wrong character of a draft costs, itself included, before matching has found its way back.
_PER_SLIP = 1.7
#: Share of wrong characters to expect of a drafter that does not score its regions.
_UNSCORED = 0.05
_WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)
#: How much one page moves what is believed.
_RATE = 0.3


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected seconds after the page's own prefill: the page stage `alone`, and both stages (`staged`)."""

    alone: float
    staged: float

    @property
    def pays(self) -> bool:
        return self.staged < self.alone


@dataclass(frozen=True, slots=True)
class ImageCost:
    """What reading an image costs in prompt tokens: `page_tokens` for a page, of which the share `fixed` for any image,
    however small. Models that see every image at one size have 1, those with a token for so many pixels about 0."""

    page_tokens: int
    fixed: float

    @classmethod
    def between(cls, page_tokens: int, crop_tokens: int, crop_share: float) -> ImageCost:
        """From a page and a crop of that share of its area."""
        if crop_share >= 1:
            return cls(page_tokens, 0.0)
        fixed = (crop_tokens / page_tokens - crop_share) / (1 - crop_share)
        return cls(page_tokens, min(max(fixed, 0.0), 1.0))

    def share(self, area: float) -> float:
        """Of a page's cost, for a crop of that share of its area."""
        return self.fixed + (1 - self.fixed) * area


@dataclass(slots=True)
class Expectations:
    """What is believed of this target, drafter and machine; starts with a guess and follows the pages.

    draft_slips: share of characters of a draft that the model writes otherwise, beyond what the drafter's score says.
    crop_slips: the same for drafts that are the model's own reading of the crops.
    prefill: seconds of image encoding and prefill per pixel of page; None before the first page.
    slowness: what decoding took, over what the engine's measurement of its passes says: longer texts, other work on the
        machine and the steps' own book-keeping make passes dearer than they were when they were measured.
    """

    draft_slips: float = 0.01
    crop_slips: float = 0.02
    prefill: float | None = None
    slowness: float = 1.0

    def forecast(
        self,
        engine: Engine,
        regions: Sequence[tuple[Region, int]],
        crop_pixels: float,
        prompt_tokens: float,
        most_tokens: int,
    ) -> Forecast:
        """For regions with the number of tokens of their drafts. `crop_pixels` is the area of page that costs as much
        to read as all crops together, `prompt_tokens` what prefilling them would take where no page has shown its cost
        yet, `most_tokens` the limit for the page and for each region: a page that is cut takes no more, while its
        regions are read to their ends."""
        lengths = [min(n, most_tokens) for _, n in regions]
        per_token = sum(len(r.text) for r, _ in regions) / sum(n for _, n in regions)
        page = min(sum(lengths), most_tokens)
        draft = survival(wrong_characters(r for r, _ in regions) + self.draft_slips, per_token)
        prefill = self.prefill * crop_pixels if self.prefill is not None else prompt_tokens * _prefill_guess(engine)
        read = decode_seconds(engine, sum(lengths), max(lengths), draft)
        after = decode_seconds(engine, page, page, survival(self.crop_slips, per_token))
        return Forecast(
            alone=self.slowness * decode_seconds(engine, page, page, draft),
            staged=prefill + self.slowness * (read + after),
        )

    def learn(self, page: StageResult, pixels: float, wrong: float | None, engine: Engine) -> None:
        """From a finished page stage of a page of so many pixels. `wrong` is the share of wrong characters its drafter
        owned up to, None when the page was drafted from Stage 1."""
        self.prefill = (page.times.encode + page.times.prefill) / pixels
        (sequence,) = page.sequences
        if len(sequence.steps) < 8 or not sequence.text:
            return
        self.slowness = page.times.decode / sum(engine.pass_seconds(s.nodes + 1) for s in sequence.steps)
        a = 1 - len(sequence.steps) / len(sequence.tokens)
        seen = 1 - max(a, 0.01) ** (len(sequence.tokens) / len(sequence.text) / _PER_SLIP)
        if wrong is None:
            self.crop_slips += _RATE * (seen - self.crop_slips)
        else:
            self.draft_slips += _RATE * (max(0.0, seen - wrong) - self.draft_slips)


def wrong_characters(regions: Iterable[Region]) -> float:
    """Share of wrong characters that the drafter's scores own up to."""
    scored = [(len(r.text), _UNSCORED if r.score is None else 1 - r.score) for r in regions]
    characters = sum(n for n, _ in scored)
    return sum(n * wrong for n, wrong in scored) / characters if characters else 0.0


def survival(wrong: float, characters: float) -> float:
    """The probability that a draft token of so many characters is accepted at that share of wrong characters."""
    return float((1 - min(max(wrong, 0.0), 1.0)) ** (_PER_SLIP * characters))


def decode_seconds(engine: Engine, tokens: int, longest: int, a: float) -> float:
    """Seconds to decode sequences of `tokens` tokens in all, the longest of `longest`, in one batch."""
    rows = tokens / longest

    def seconds(width: int) -> float:
        chain = width if a >= 1 else (1 - a**width) / (1 - a)
        return longest / chain * engine.pass_seconds(round(rows * width))

    return min(map(seconds, _WIDTHS))


def _prefill_guess(engine: Engine) -> float:
    """Seconds a prompt token: what a token costs in a wide pass, and half of that again for the vision tower."""
    return 1.5 * engine.pass_seconds(128) / 128
