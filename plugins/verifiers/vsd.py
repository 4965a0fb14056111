"""`vsd`: vanilla speculative decoding, a smaller model of the target's family drafts: the paper's first baseline.

It runs on our own engine. Assisted generation of `transformers` (5.24) takes images and is exact with them, but next to
no draft is accepted: 33 to 39 passes for 40 tokens on three vision-language architectures, with the target itself as
its draft model. Heads trained on the target (EAGLE, Medusa) are for a plugin that brings their checkpoints.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hsdkit_plugins.verifiers.common import PlainConfig, page_verdict

from hsdkit import hookimpl
from hsdkit.component_options import typed_options
from hsdkit.components import Component
from hsdkit.documents import Page
from hsdkit.errors import ConfigError, PluginError, TargetError
from hsdkit.plugins import plugins
from hsdkit.protocols import DecodeRequest, DecodeSettings, Engine, OnText, Target, Verdict
from hsdkit.regions import Draft
from hsdkit.results import StageResult


@dataclass(frozen=True)
class VsdConfig(PlainConfig):
    """assistant: hub id or local folder of the smaller model; it must have the target's vocabulary.
    assistant_target: the target component that reads it; by default the run's own (target=NAME).
    assistant_options: further options of that component, such as verifier.assistant_options.revision=main.
    tokens: guessed in a step, one pass of the smaller model each.
    tau: accept a guess whose probability is at least `tau` times that of the model's own choice; 1 is exact.
    """

    assistant: str = ""
    assistant_target: str = ""
    assistant_options: dict[str, Any] = field(default_factory=dict)
    tokens: int = 5
    tau: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.tokens <= 127:
            raise ValueError(f"tokens={self.tokens}: must be between 1 and 127")
        super().__post_init__()

    @property
    def settings(self) -> DecodeSettings:
        return DecodeSettings(
            tau=self.tau,
            max_packed=self.tokens + 1,
            self_lookup=False,
            max_new_tokens=self.max_new_tokens,
            stop_loops=self.stop_loops,
        )


class Vsd:
    """One page at a time; the smaller model's reading of the page counts as decoding."""

    name = "vsd"
    uses_draft = False

    def __init__(self, config: VsdConfig) -> None:
        if not config.assistant:
            raise ConfigError("verifier=vsd needs a smaller model of the target's family: verifier.assistant=FOLDER|ID")
        self.config = config
        self.settings = config.settings
        self._assistant: tuple[Target, Any] | None = None
        self._loading = threading.Lock()

    def verify(
        self, page: Page, draft: Draft, target: Target, engine: Engine, on_text: OnText | None = None
    ) -> Verdict:
        from hsdkit.decoding.draft_model import ModelMatcher

        decode = getattr(engine, "decode_with", None)
        if decode is None:
            raise ConfigError("verifier=vsd: this engine takes no draft model; choose engine=transformers")
        engine.load()  # the smaller model goes where the target is
        with self._loading:
            if self._assistant is None:
                self._assistant = assistant_for(target, self.config)
            smaller, model = self._assistant
        guesses = ModelMatcher(model, DecodeRequest(smaller.view(page.image), smaller.prompt(None)), self.config.tokens)
        request = DecodeRequest(target.view(page.image), target.prompt(None))
        decoded = decode([request], self.settings, [guesses], on_text)
        stage = StageResult("page", decoded.sequences, decoded.times, decoded.forwards)
        return page_verdict(stage, page, target)


def assistant_for(target: Target, config: VsdConfig) -> tuple[Target, Any]:
    """The smaller model's target, and the model where the target's is and in its type. Raises `ConfigError` when it
    cannot be had, or has other tokens."""
    from hsdkit_plugins.engines.hf_model import HFModel, place

    from hsdkit.decoding.codec import TokenizerCodec

    name = config.assistant_target or target.name
    try:
        component = plugins().component("target", name)
        options = typed_options(
            component, {"model": config.assistant} | config.assistant_options, "verifier.assistant_options"
        )
        smaller: Target = plugins().build("target", name, options)
        same = smaller.tokenizer.get_vocab() == target.tokenizer.get_vocab()
        if not same:
            raise ConfigError(
                f"verifier.assistant={config.assistant}: has other tokens than target {target.name!r}; a draft model "
                "must share the target's vocabulary: choose a smaller one of its family"
            )
        types = {"torch.float32": "fp32", "torch.bfloat16": "bf16", "torch.float16": "fp16"}
        place(smaller.model, str(target.model.device), types.get(str(target.model.dtype), "auto"), "auto")
    except (TargetError, PluginError) as e:
        raise ConfigError(f"verifier.assistant={config.assistant}: {e}") from e
    return smaller, HFModel(smaller, TokenizerCodec(smaller.tokenizer, smaller.written_tokens))


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [
        Component(
            kind="verifier",
            name="vsd",
            summary="a smaller model of the target's family drafts token by token: a baseline",
            config=VsdConfig,
            factory=Vsd,
        )
    ]
