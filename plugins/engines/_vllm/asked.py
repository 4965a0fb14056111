"""A decode request as vLLM takes it, and what is refused because vLLM cannot give it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hsdkit_plugins.engines._vllm.message import MATCHINGS, Message
from hsdkit_plugins.targets.inputs import image_options
from hsdkit_plugins.targets.transformers_target import TransformersTarget

from hsdkit.errors import ConfigError
from hsdkit.protocols import DecodeRequest, DecodeSettings, Target

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class Asked:
    """image: prepared for the checkpoint's own processor, which gets `image_options`. prompt: the instruction. ids: the
    chat turn, one token standing for the image. ends: ids that end the output; none for a fixed length. message: the
    drafts; None to ask without a word to our scheduler."""

    image: Image
    image_options: dict[str, Any]
    prompt: str
    ids: list[int]
    max_tokens: int
    ends: tuple[int, ...]
    repetition_penalty: float
    message: Message | None

    @property
    def sampling(self) -> dict[str, Any]:
        """Greedy decoding, all of it said: a server may have defaults of its own. By the names of `SamplingParams`."""
        return {
            "temperature": 0.0,
            "max_tokens": self.max_tokens,
            "stop_token_ids": list(self.ends),
            "ignore_eos": not self.ends,
            "repetition_penalty": self.repetition_penalty,
            "skip_special_tokens": False,
        }


def served(target: Target) -> TransformersTarget:
    """The target as one that vLLM can serve. Raises `ConfigError` for one without a checkpoint."""
    if isinstance(target, TransformersTarget):
        return target
    raise ConfigError(
        f"engine=vllm: target {target.name!r} has no checkpoint in the Hugging Face format; use engine=transformers"
    )


def ask(request: DecodeRequest, target: TransformersTarget, settings: DecodeSettings, max_tokens: int) -> Asked:
    bounded = target.config.min_pixels is not None or target.config.max_pixels is not None
    wide = settings.max_packed
    message = Message(
        drafts=request.drafts,
        separator=request.separator,
        matching=settings.matching,
        n=settings.n,
        self_lookup=settings.self_lookup,
        stop_loops=settings.stop_loops,
        width=wide - 1 if isinstance(wide, int) else None,
        written=target.written_tokens,
    )
    return Asked(
        image=target.prepare(request.image),
        image_options=image_options(target) if bounded else {},
        prompt=request.prompt,
        ids=target.prompt_ids(request.prompt),
        max_tokens=min(settings.max_new_tokens, max_tokens),
        ends=tuple(sorted(target.eos_ids)),
        repetition_penalty=repetition_penalty(target),
        message=message,
    )


def check(settings: DecodeSettings, draft_tokens: int) -> None:
    """Raises `ConfigError` for settings that vLLM cannot decode with; it verifies `draft_tokens` a step at most."""
    if settings.tau != 1:
        raise ConfigError(
            f"verifier.tau={settings.tau}: vLLM accepts a draft token only where it is the model's own choice; use "
            "verifier.tau=1, or engine=transformers for a threshold below it"
        )
    if settings.matching not in MATCHINGS:
        raise ConfigError(
            f"verifier.matching={settings.matching}: vLLM verifies one chain of tokens a step and no trees; use "
            f"verifier.matching={' or '.join(MATCHINGS)}, or engine=transformers"
        )
    if isinstance(settings.max_packed, int) and settings.max_packed > draft_tokens + 1:
        raise ConfigError(
            f"verifier.max_packed={settings.max_packed}: this vLLM engine verifies at most {draft_tokens} draft tokens "
            f"a step; use verifier.max_packed={draft_tokens + 1} or auto, or start it with more (engine.draft_tokens)"
        )
    if settings.problem:
        raise ConfigError(settings.problem)


def repetition_penalty(target: TransformersTarget) -> float:
    """Of the target's generation settings. Raises `ConfigError` where they ask for more than vLLM can apply while it
    speculates, which is nothing else."""
    from transformers import RepetitionPenaltyLogitsProcessor

    penalty = 1.0
    for processor in target.logits_processors():
        if not isinstance(processor, RepetitionPenaltyLogitsProcessor):
            option = " (target.ngram_size=0 leaves it out)" if hasattr(target.config, "ngram_size") else ""
            raise ConfigError(
                f"target {target.name!r} decodes with {type(processor).__name__}, and vLLM refuses logits processors "
                f"together with speculation: use engine=transformers{option}"
            )
        penalty *= float(processor.penalty)
    return penalty
