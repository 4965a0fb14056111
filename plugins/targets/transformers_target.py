"""The common part of targets that `transformers` loads: files, prompts, padded batches, generation settings.

A target of this kind is a config dataclass, prompts and a `Dialect`; nothing here knows an architecture by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt
from typing import TYPE_CHECKING, Any

from hsdkit_plugins.targets.checkpoint import Checkpoint
from hsdkit_plugins.targets.cleanup import clean
from hsdkit_plugins.targets.dialects import Dialect, render
from hsdkit_plugins.targets.formats.blocks import crop_draft, page_drafts, page_regions
from hsdkit_plugins.targets.images import rgb, without_extremes
from hsdkit_plugins.targets.inputs import cells, grid_inputs, processor_inputs

from hsdkit.errors import TargetError
from hsdkit.protocols import NOTHING, DecodeRequest
from hsdkit.regions import Box, Label, Region
from hsdkit.results import FinishReason

if TYPE_CHECKING:
    from PIL.Image import Image

#: Generation settings that change greedy decoding and that are not applied along a tree, with the values at which they
#: do nothing. Anything else is refused: skipping it silently would change what the model says.
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "guidance_scale": (None, 1),
    "sequence_bias": (None,),
    "bad_words_ids": (None,),
    "min_length": (None, 0),
    "min_new_tokens": (None, 0),
    "forced_bos_token_id": (None,),
    "forced_eos_token_id": (None,),
    "exponential_decay_length_penalty": (None,),
    "suppress_tokens": (None, []),
    "begin_suppress_tokens": (None, []),
}


@dataclass(frozen=True)
class CheckpointConfig:
    """Options of every target that loads a checkpoint.

    model: Hugging Face id or local folder.
    revision: branch, tag or commit of the hub; null for the main branch.
    trust_remote_code: run the model code that a checkpoint brings, where `transformers` and hsdkit have none of their
        own; only from a local folder or a pinned revision (40 hex digits).
    dpi: resolution PDF pages are rendered at unless `dpi=` says otherwise.
    min_pixels, max_pixels: bounds of the image the model sees; null for the checkpoint's own.
    repetition_penalty: of tokens in the prompt or written already, 1 for none; null for its generation settings' own.
    """

    model: str = ""
    revision: str | None = None
    trust_remote_code: bool = False
    dpi: int = 144
    min_pixels: int | None = None
    max_pixels: int | None = None
    repetition_penalty: float | None = None

    def __post_init__(self) -> None:
        if not 18 <= self.dpi <= 1200:
            raise ValueError(f"dpi={self.dpi}: must be between 18 and 1200")
        for name in ("min_pixels", "max_pixels"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name}={value}: must be positive, or null for the checkpoint's own bound")
        if self.min_pixels and self.max_pixels and self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels={self.min_pixels}: is more than max_pixels={self.max_pixels}")
        if self.repetition_penalty is not None and self.repetition_penalty <= 0:
            raise ValueError(f"repetition_penalty={self.repetition_penalty}: must be positive (1 does nothing)")


class TransformersTarget:
    """A `Target` around one checkpoint. Everything is loaded on first use; prompts and inputs need no weights.

    Subclasses override `prompt` and may set these (`Profile` explains them).
    """

    name = "transformers"
    model_types: frozenset[str] = frozenset()
    end_tokens: tuple[str, ...] = ()
    written_tokens: tuple[str, ...] = ()
    system: str | None = None
    processor_class: str | None = None
    model_class: str | None = None
    image_tokens: Callable[[int, int], int] = staticmethod(cells)
    register: Callable[[], None] | None = None

    def __init__(self, config: CheckpointConfig, dialect: Dialect) -> None:
        self.config = config
        self.dialect = dialect
        self.dpi = config.dpi
        self.checkpoint = Checkpoint(
            config.model,
            config.revision,
            target=self.name,
            trust_remote_code=config.trust_remote_code,
            model_class=self.model_class,
            processor_class=self.processor_class,
            register=self.register,
        )

    def leave_weights(self) -> None:
        """From here on the weights are neither fetched nor asked for: a server has them. To be called before anything
        is loaded."""
        self.checkpoint = replace(self.checkpoint, weights=False)

    @cached_property
    def model_config(self) -> Any:
        """The checkpoint's config. Raises `TargetError` when it is of an architecture this target does not read."""
        model_type = self.checkpoint.model_type
        if self.model_types and model_type not in self.model_types:
            raise self.checkpoint.error(
                f"holds a {model_type} model",
                f"target {self.name!r} reads {', '.join(sorted(self.model_types))}",
            )
        config = self.checkpoint.config()
        if getattr(config, "image_token_id", None) is None:
            raise self.checkpoint.error(
                f"a {config.model_type} model reads no images", "set target.model to one that does"
            )
        return config

    @cached_property
    def tokenizer(self) -> Any:
        return self.checkpoint.tokenizer()

    @cached_property
    def image_processor(self) -> Any:
        return self.checkpoint.image_processor()

    @cached_property
    def processor(self) -> Any:
        """The checkpoint's own processor."""
        return self.checkpoint.processor()

    @cached_property
    def generation_config(self) -> Any:
        return self.checkpoint.generation_config(self.model_config)

    @cached_property
    def model(self) -> Any:
        """The model in eval mode, on the CPU and in the type it is stored in: the engine decides where it runs."""
        _ = self.model_config  # refuses the wrong architecture before gigabytes are read
        model = self.checkpoint.model()
        # Tokens added to a tokenizer may lie beyond what a model was made for; those of its own vocabulary may not.
        if (tokens := self.tokenizer.vocab_size) > (rows := model.get_input_embeddings().weight.shape[0]):
            raise self.checkpoint.error(
                f"its tokenizer has {tokens} tokens, its model only {rows}",
                "set target.model to one whose files belong together",
            )
        return model

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        """All tokens that end a sequence: those that end it for `generate`, and the `end_tokens` of the tokenizer."""
        listed = self.generation_config.eos_token_id
        if listed is None:
            listed = self.tokenizer.eos_token_id
        ids = set() if listed is None else set(listed) if isinstance(listed, (list, tuple)) else {listed}
        known = self.tokenizer.get_vocab()
        ids |= {known[token] for token in self.end_tokens if token in known}
        if not ids:
            raise self.checkpoint.error("names no end token", "set eos_token_id in its generation_config.json")
        return frozenset(ids)

    @property
    def pad_id(self) -> int:
        pad: int | None = self.tokenizer.pad_token_id
        return min(self.eos_ids) if pad is None else pad

    def logits_processors(self) -> list[Any]:
        """What `generate(do_sample=False)` would apply, in its order. Raises `TargetError` for a setting that cannot be
        applied in verification: skipping it would change what the model says."""
        from transformers import NoRepeatNGramLogitsProcessor, RepetitionPenaltyLogitsProcessor

        settings = self.generation_config
        for name, neutral in _UNSUPPORTED.items():
            if (value := getattr(settings, name, None)) not in neutral:
                raise self.checkpoint.error(
                    f"its generation settings ask for {name}={value}, which hsdkit cannot apply",
                    "remove it from generation_config.json",
                )
        processors: list[Any] = []
        penalty = settings.repetition_penalty
        if self.config.repetition_penalty is not None:
            penalty = self.config.repetition_penalty
        if penalty not in (None, 1, 1.0):
            processors.append(RepetitionPenaltyLogitsProcessor(float(penalty)))
        if settings.no_repeat_ngram_size:
            processors.append(NoRepeatNGramLogitsProcessor(settings.no_repeat_ngram_size))
        return processors

    # -- images

    @property
    def bounds_area(self) -> bool:
        """Whether the image processor's `size` bounds the area (as those that merge patches into cells do), not the
        edges."""
        return hasattr(self.image_processor, "merge_size")

    @property
    def pixel_bounds(self) -> tuple[int, int]:
        """Least and most pixels of an image the model sees."""
        size = self.image_processor.size
        if self.bounds_area:
            least = self.config.min_pixels or size["shortest_edge"]
            most = self.config.max_pixels or size["longest_edge"]
            return min(least, most), most
        if self.config.min_pixels:
            raise TargetError(f"target.min_pixels: images of target {self.name!r} have no least size; leave it null")
        own = int(size["longest_edge"])
        edge = own if self.config.max_pixels is None else min(own, isqrt(self.config.max_pixels))
        return 1, edge**2

    def prepare(self, image: Image) -> Image:
        """The image as it goes to the checkpoint's own image processor; doing it twice changes nothing."""
        return without_extremes(rgb(image))

    def view(self, image: Image) -> Image:
        """The whole page image at the size this model reads best: as it is, here."""
        return image

    def crop(self, image: Image, box: Box) -> Image:
        """The part of a page image inside `box` (page pixels, within the page), at the size this model reads best."""
        return image.crop((int(box.x0), int(box.y0), -int(-box.x1 // 1), -int(-box.y1 // 1)))

    def notes(self, image: Image) -> tuple[str, ...]:
        """What a user should know about how this page image is read."""
        most = self.pixel_bounds[1]
        if self.bounds_area:
            scale, bound = (most / (image.width * image.height)) ** 0.5, f"{most} px"
        else:
            scale, bound = isqrt(most) / max(image.size), f"{isqrt(most)} px a side"
        if scale >= 1:
            return ()
        return (
            f"page image of {image.width} x {image.height} px is read at {100 * scale:.0f}% of its size: "
            f"target {self.name!r} takes at most {bound} (target.max_pixels)",
        )

    # -- prompts and batches

    def prompt(self, label: Label | None) -> str:
        """The instruction for a region of that label, or for the page (`None`)."""
        raise NotImplementedError

    def chat(self, prompt: str) -> str:
        """The text of the chat turn with the prompt, one image token standing for the image."""
        content = [{"type": "image"}] + ([{"type": "text", "text": prompt}] if prompt else [])
        turns: list[dict[str, Any]] = [] if self.system is None else [{"role": "system", "content": self.system}]
        turns.append({"role": "user", "content": content})
        if not self.tokenizer.chat_template:
            raise self.checkpoint.error("has no chat template", "add chat_template.jinja to its folder")
        apply = self.tokenizer.apply_chat_template
        return str(
            self.checkpoint.load("its chat template", lambda: apply(turns, add_generation_prompt=True, tokenize=False))
        )

    def prompt_ids(self, prompt: str) -> list[int]:
        """The ids of the chat turn with the prompt, one image token standing for the image."""
        ids: list[int] = self.tokenizer(self.chat(prompt), add_special_tokens=False)["input_ids"]
        if (found := ids.count(self.model_config.image_token_id)) != 1:
            raise self.checkpoint.error(
                f"its chat template and prompt make {found} image tokens, not one", "fix the prompt"
            )
        return ids

    def inputs(self, requests: Sequence[DecodeRequest]) -> dict[str, Any]:
        """RIGHT-padded model inputs on the CPU for B requests, P the longest prompt: `input_ids` and `attention_mask`
        (B, P) int64, `mm_token_type_ids` (B, P) int64 with 1 on image tokens where the model takes them, and what its
        vision tower takes. Raises `TargetError` for an image that the model cannot take."""
        images = [self.prepare(request.image) for request in requests]
        texts = [self.chat(request.prompt) for request in requests]
        try:
            if self.processor_class is None:
                return grid_inputs(self, texts, images)
            return processor_inputs(self, texts, images)
        except ValueError as e:
            raise TargetError(f"target {self.name!r} cannot take this image or prompt: {e}") from e

    # -- text

    def render(self, region: Region) -> str:
        if self.dialect.layout is None or not self.dialect.layout_in_crops:
            return self._text(region)
        return crop_draft(region, self._text(region), self.dialect.layout)

    def _text(self, region: Region) -> str:
        """The region's text in the dialect, without what the layout puts around it."""
        return render(region, self.dialect)

    @property
    def separator(self) -> str:
        return self.dialect.separator if self.dialect.layout is None else self.dialect.layout.separator

    def page_drafts(
        self, regions: Sequence[Region], image: Image, read: Mapping[int, str] = NOTHING
    ) -> tuple[str, ...]:
        return page_drafts(regions, read, self._text, self.dialect.layout, self.box_scale(image), image.size)

    def regions(self, text: str, image: Image) -> tuple[Region, ...]:
        return page_regions(text, self.dialect.layout, self.box_scale(image))

    def box_scale(self, image: Image) -> tuple[float, float]:
        """Units of the boxes that the model writes a pixel of the page image, across and down. Targets whose boxes are
        in pixels of another image, such as the one they are shown, override this."""
        grid = self.dialect.layout.grid if self.dialect.layout is not None else None
        return (1.0, 1.0) if grid is None else (grid / image.width, grid / image.height)

    def clean(self, text: str, finish_reason: FinishReason = "eos") -> str:
        return clean(text, self.dialect, finish_reason)
