"""What plugins implement: Drafter, Target, Engine, Verifier, and the values that pass between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from hsdkit.components import Requirement
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.results import FinishReason, SequenceResult, StageResult, StageTimes

if TYPE_CHECKING:
    from PIL.Image import Image

    from hsdkit.documents import Page

#: What document parsers write between two blocks of Markdown.
BLANK_LINE = "\n\n"

#: What `matching=suffix` is built on.
SUFFIX_TREES = Requirement("arctic_inference", "hsdkit[suffix]")

#: Longest n-gram that is looked up; `aligned` keeps an index for each length.
MAX_N = 64


@dataclass(frozen=True, slots=True)
class DecodeSettings:
    """How to decode; the defaults are exact and adaptive.

    tau: acceptance threshold on probabilities (paper, eq. of the greedy walk); 1 accepts only the argmax.
    matching: `aligned` (ours), `paper` (exact window), or `suffix` (the suffix trees of arctic-inference).
    n: reference window of `paper` matching; in `aligned`, longest n-gram looked up in the text already produced.
    max_packed: most tokens a step may verify, the root included; "auto" spends as many as measured cost justifies.
    max_new_tokens: limit for one sequence.
    self_lookup: also draft from the text already produced (prompt look-up).
    stop_loops: end a sequence that only goes on repeating itself, and cut the repeats.
    deadline: reading of `time.monotonic()` at which a sequence ends with the step that is under way (`finish_reason`
        "time"); None for no limit. It ends the sequences of these settings only, not what is decoded beside them.
    """

    tau: float = 1.0
    matching: str = "aligned"
    n: int = 3
    max_packed: int | str = "auto"
    max_new_tokens: int = 4096
    self_lookup: bool = True
    stop_loops: bool = True
    deadline: float | None = None

    @property
    def problem(self) -> str:
        """What of it cannot work, as one line that names option and value; "" when all can."""
        if not 0 < self.tau <= 1:
            return f"tau={self.tau}: must be above 0 and at most 1 (1 is exact)"
        if self.matching not in ("aligned", "paper", "suffix"):
            return f"matching={self.matching}: must be aligned, paper or suffix"
        if self.matching == "suffix" and not SUFFIX_TREES.installed:
            return f'matching=suffix: needs arctic-inference, not installed: pip install "{SUFFIX_TREES.install}"'
        if not 1 <= self.n <= MAX_N:
            return f"n={self.n}: must be between 1 and {MAX_N}"
        number = isinstance(self.max_packed, int) and not isinstance(self.max_packed, bool)
        if self.max_packed != "auto" and not (number and int(self.max_packed) >= 1):
            return f"max_packed={self.max_packed}: must be auto, or a number of tokens from 1 on"
        if self.max_new_tokens < 1:
            return f"max_new_tokens={self.max_new_tokens}: must be at least 1"
        return ""


@dataclass(frozen=True, slots=True)
class DecodeRequest:
    """One sequence to decode: an image, the prompt text, and drafts already rendered in the target's output syntax,
    in reading order (one string a region), and what the model writes between two of them. No drafts: plain decoding (or
    look-up in its own output)."""

    image: Image
    prompt: str
    drafts: tuple[str, ...] = ()
    separator: str = BLANK_LINE


@dataclass(frozen=True, slots=True)
class Decoded:
    """What an engine returns for a batch of requests: results in request order, the times of the whole batch, and the
    number of forward passes after the prefill that any of them was in (a batched pass counts once)."""

    sequences: tuple[SequenceResult, ...]
    times: StageTimes
    forwards: int


#: Called after each step with (request index, text newly produced).
OnText = Callable[[int, str], None]


#: No region was read.
NOTHING: Mapping[int, str] = MappingProxyType({})


class Drafter(Protocol):
    """Turns a page into a draft. Raises `DrafterError` when it cannot; the page is then decoded without one.

    A drafter may also have `expected_seconds(page) -> float`, what it expects to take for this page, so that the
    pipeline can skip it where drafting would cost more than it saves; `load()`, called once before the first page,
    which raises `PluginError` when it can draft no page at all; and `cache_key`, a text of all that its drafts depend
    on besides the page, which says that they are worth keeping on disk.
    """

    name: str

    def draft(self, page: Page) -> Draft: ...


class Target(Protocol):
    """Adapter around one family of vision-language models: prompts, inputs, draft rendering, output clean-up.

    `model` is the loaded `transformers` model (lazy; the engine moves it to its device and type), `tokenizer` its
    tokenizer. `dpi` is the resolution PDF pages should be rendered at for this model unless the user says otherwise.
    `separator` is what the model writes between two blocks of a page: a blank line, or what stands between two records.
    """

    name: str
    dpi: int

    @property
    def separator(self) -> str: ...

    @property
    def written_tokens(self) -> tuple[str, ...]:
        """Special tokens that are text of this model's output language (tags of tables, boxes, labels)."""
        ...

    @property
    def model(self) -> Any: ...

    @property
    def tokenizer(self) -> Any: ...

    @property
    def eos_ids(self) -> frozenset[int]: ...

    def prompt(self, label: Label | None) -> str:
        """The instruction for a region of that label, or for the page (`None`)."""
        ...

    def view(self, image: Image) -> Image:
        """The whole page image as this model reads it best, as a request's image."""
        ...

    def crop(self, image: Image, box: Box) -> Image:
        """The part of a page image inside `box` (in its pixels, not outside of it), as a request's image."""
        ...

    def notes(self, image: Image) -> tuple[str, ...]:
        """What a user should know about how a page image of this size is read, in plain words."""
        ...

    def inputs(self, requests: Sequence[DecodeRequest]) -> dict[str, Any]:
        """Model inputs as tensors, RIGHT padded: `input_ids` (B, P) int64, `attention_mask` (B, P) int64, and what the
        vision tower takes (`pixel_values`, `image_grid_thw`, `mm_token_type_ids`, ...). On the CPU; any image size."""
        ...

    def logits_processors(self) -> list[Any]:
        """`transformers` logits processors of the model's own generation settings (repetition penalty, ...)."""
        ...

    def render(self, region: Region) -> str:
        """The region's draft as this model itself would write it when it reads the region's crop (headings, list marks,
        table dialect, delimiters)."""
        ...

    def page_drafts(
        self, regions: Sequence[Region], image: Image, read: Mapping[int, str] = NOTHING
    ) -> tuple[str, ...]:
        """The page's draft in this model's own syntax, one string a block that it writes, in reading order; joined by
        `separator` they are the page. `regions` are all of the drafter's, boxes in pixels of the page image `image`;
        `read` holds what the model itself wrote for the crop of a region, by its index: it takes the place of
        `render`."""
        ...

    def regions(self, text: str, image: Image) -> tuple[Region, ...]:
        """The regions that a page output itself names, boxes in pixels of the page image; () where the model writes no
        boxes. Takes any text, cut or broken ones too."""
        ...

    def clean(self, text: str, finish_reason: FinishReason = "eos") -> str:
        """The raw output as plain Markdown; the end of an output that did not finish by itself is mended."""
        ...


class Engine(Protocol):
    """Decodes requests on a model.

    An engine that has a model of its own, and leaves the target's unloaded, has `facts`: what results depend on, by
    name ("model", "dtype", "device", its version), after `load`.

    Where a page has a limited time, its verifier is handed an engine that ends everything in time (`DecodeSettings`);
    `deadline` then says when that is, for verifiers that have to share the time out.

    An engine that may be used from several threads also has `pages_at_once: int`, the number of pages in flight beyond
    which it gains little (valid once it is loaded); without it pages are decoded one after the other.
    """

    def load(self) -> None:
        """Get ready to decode: the model loaded, on its device and in its type. Raises `TargetError`, `ConfigError`."""
        ...

    def decode(
        self, requests: Sequence[DecodeRequest], settings: DecodeSettings, on_text: OnText | None = None
    ) -> Decoded: ...

    def expected_seconds(self, tokens: int) -> float:
        """What plain decoding of that many tokens would take here (measured cost of a width-1 step)."""
        ...

    def pass_seconds(self, tokens: int) -> float:
        """What one verification pass over that many packed tokens, of all rows together, takes here (measured)."""
        ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a verifier decided for one page."""

    text: str
    finish_reason: FinishReason
    stages: tuple[StageResult, ...]
    notes: tuple[str, ...] = ()


class Verifier(Protocol):
    """A decoding strategy; `verify` may be called from several threads at the same time.

    `uses_draft` false: no drafter is run for it. `settings` are its decoding settings.

    A verifier that asks the model something else than plain decoding of the page does (another prompt, crops only) has
    `exact = False`: its output differs from plain decoding even where tau is 1.
    """

    name: str
    uses_draft: bool
    settings: DecodeSettings

    def verify(
        self, page: Page, draft: Draft, target: Target, engine: Engine, on_text: OnText | None = None
    ) -> Verdict: ...


def is_exact(verifier: Verifier) -> bool:
    """Whether the output is token for token that of plain decoding of the page."""
    return verifier.settings.tau == 1 and bool(getattr(verifier, "exact", True))
