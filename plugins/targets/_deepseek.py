"""What DeepSeek-OCR 1 and 2 and Unlimited-OCR share: resolution modes, plain prompts without a chat template, the
n-gram ban of their published clients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.formats.grounding import Grounding
from hsdkit_plugins.targets.images import rgb
from hsdkit_plugins.targets.no_repeat import NoRepeatNgrams
from hsdkit_plugins.targets.profile import Profile, ProfileConfig, ProfileTarget
from hsdkit_plugins.targets.views import Mode, Views, views

from hsdkit.protocols import DecodeRequest
from hsdkit.regions import Label

if TYPE_CHECKING:
    from PIL.Image import Image

#: The page with and without boxes; crops of regions without.
GROUNDED = "<|grounding|>Convert the document to markdown."
FREE = "Free OCR."

IMAGE = "<image>"
#: Tags of tables, labels and boxes; special tokens in DeepSeek's vocabulary.
TAGS = ("<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>", "<td>", "</td>", "<tr>", "</tr>", "<table>", "</table>")
#: Empty cells in a row are no loop: the official clients let these repeat.
CELLS = ("<td>", "</td>")

#: DeepSeek's words for labels; where several labels share one, the first is what reading gives. It leaves page headers,
#: footers and numbers out.
LABELS = {
    Label.TITLE: "title",
    Label.HEADING: "sub_title",
    Label.TEXT: "text",
    Label.LIST: "text",
    Label.CODE: "text",
    Label.FOOTNOTE: "text",
    Label.REFERENCE: "text",
    Label.OTHER: "text",
    Label.TABLE: "table",
    Label.FORMULA: "equation",
    Label.FIGURE: "image",
    Label.CAPTION: "image_caption",
}

#: Formulas between \[ and \]; pages with boxes, crops (which are read with `FREE`) without.
DIALECT = Dialect(formula=("\\[", "\\]"), inline=("\\(", "\\)"), layout=Grounding(LABELS))


@dataclass(frozen=True)
class DeepseekConfig(ProfileConfig):
    """Options of every target of this family.

    mode: resolution of a page, by the names of the model's authors.
    min_pixels, max_pixels: not for this model, whose resolution is its mode's.
    max_tiles: tiles of a page in mode gundam, at most.
    ngram_size: no run of so many tokens is written twice within ngram_window tokens; 0 allows repetition.
    ngram_window: how far back runs are looked for.
    """

    mode: str = "gundam"
    max_tiles: int = 9
    ngram_size: int = 30
    ngram_window: int = 90

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("min_pixels", "max_pixels"):
            if (value := getattr(self, name)) is not None:
                raise ValueError(f"{name}={value}: this model's resolution is chosen by target.mode")
        if self.max_tiles < 2:
            raise ValueError(f"max_tiles={self.max_tiles}: must be at least 2; mode=base has no tiles")
        if self.ngram_size < 0 or self.ngram_size == 1:
            raise ValueError(f"ngram_size={self.ngram_size}: must be at least 2, or 0 for none")
        if self.ngram_size and self.ngram_window < self.ngram_size:
            raise ValueError(f"ngram_window={self.ngram_window}: must be at least ngram_size={self.ngram_size}")


@dataclass(frozen=True)
class GroundedConfig(DeepseekConfig):
    """Options of `GroundedTarget`.

    grounding: whether a page is asked for with a label and a box for each block.
    """

    grounding: bool = True


class DeepseekTarget(ProfileTarget):
    """`modes`: what `target.mode` may name. `after_image`: what stands between image and prompt. `repeatable`: tokens
    that the n-gram ban lets repeat."""

    config: DeepseekConfig
    modes: ClassVar[Mapping[str, Mode]]
    after_image = "\n"
    repeatable: tuple[str, ...] = CELLS

    def __init__(self, profile: Profile, config: DeepseekConfig) -> None:
        super().__init__(profile, config)
        self.mode = self.modes[config.mode]

    def chat(self, prompt: str) -> str:
        return IMAGE + self.after_image + prompt

    def views(self, image: Image) -> Views:
        return views(rgb(image), self.mode, self.config.max_tiles)

    def image_token_count(self, seen: Views) -> int:
        """Each row of the whole and of the tiles together ends in a newline token, all in a separator."""
        whole, tile = seen.cells
        return whole * (whole + 1) + 1 + seen.rows * tile * (seen.columns * tile + 1) * bool(tile)

    def inputs(self, requests: Sequence[DecodeRequest]) -> dict[str, Any]:
        """RIGHT-padded model inputs on the CPU for B requests: `input_ids` and `attention_mask` (B, P) int64,
        `pixel_values` (B, 3, S, S) float32, `pixel_values_local` (all tiles, 3, T, T) where any has tiles,
        `num_local_patches` and `patches_grid` (columns and rows) of each."""
        import torch

        seen = [self.views(request.image) for request in requests]
        rows = [self._prompt_ids(r.prompt, self.image_token_count(v)) for r, v in zip(requests, seen, strict=True)]
        longest = max(map(len, rows))
        lengths = torch.tensor([[len(row)] for row in rows])
        tiles = [v.tiles for v in seen if v.tiles is not None]
        return {
            "input_ids": torch.tensor([row + [self.pad_id] * (longest - len(row)) for row in rows]),
            "attention_mask": (torch.arange(longest) < lengths).long(),
            "pixel_values": torch.stack([v.whole for v in seen]),
            **({"pixel_values_local": torch.cat(tiles)} if tiles else {}),
            **self.layout_inputs(seen),
        }

    def layout_inputs(self, seen: Sequence[Views]) -> dict[str, Any]:
        return {
            "num_local_patches": [v.rows * v.columns for v in seen],
            "patches_grid": [[max(v.columns, 1), max(v.rows, 1)] for v in seen],
        }

    def prompt_ids(self, prompt: str) -> list[int]:
        return self._prompt_ids(prompt, 1)

    def _prompt_ids(self, prompt: str, image_tokens: int) -> list[int]:
        """The published clients tokenise what stands before and after the image each by itself."""
        before, *after = self.chat(prompt).split(IMAGE)
        if len(after) != 1:
            raise self.checkpoint.error(f"its prompt holds {len(after)} times {IMAGE}, not once", "fix the prompt")
        first, rest = (self.tokenizer(part, add_special_tokens=False)["input_ids"] for part in (before, after[0]))
        return [self.bos_id, *first, *[self.model_config.image_token_id] * image_tokens, *rest]

    @property
    def bos_id(self) -> int:
        bos: int | None = self.tokenizer.bos_token_id
        if bos is None:
            raise self.checkpoint.error("names no begin token", "set bos_token in its tokenizer_config.json")
        return bos

    def logits_processors(self) -> list[Any]:
        processors = super().logits_processors()
        if self.config.ngram_size:
            known = self.tokenizer.get_vocab()
            allowed = frozenset(known[token] for token in self.repeatable if token in known)
            processors.append(NoRepeatNgrams(self.config.ngram_size, self.config.ngram_window, allowed))
        return processors

    def notes(self, image: Image) -> tuple[str, ...]:
        scale = self.mode.scale(image.size, self.config.max_tiles)
        if scale >= 1:
            return ()
        return (
            f"page image of {image.width} x {image.height} px is read at {100 * scale:.0f}% of its size "
            f"(target.mode={self.config.mode})",
        )


class GroundedTarget(DeepseekTarget):
    """A page with labels and boxes, or without."""

    config: GroundedConfig

    def __init__(self, profile: Profile, config: GroundedConfig) -> None:
        super().__init__(profile, config)
        if not config.grounding:
            self.dialect = replace(self.dialect, layout=None)

    def prompt(self, label: Label | None) -> str:
        asked = super().prompt(label)
        return FREE if label is None and not self.config.grounding and asked == GROUNDED else asked
