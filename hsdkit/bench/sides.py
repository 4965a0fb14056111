"""What is measured: a verifier of hsdkit, or `transformers.generate` on the same loaded model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

from hsdkit.bench.sample import Output, page_tokens
from hsdkit.documents import Page
from hsdkit.protocols import DecodeRequest, DecodeSettings, Engine, Target, Verifier
from hsdkit.regions import Draft
from hsdkit.results import SequenceResult, StageResult, StageTimes, Step

#: The name under which plain `transformers.generate` is a side.
GENERATE = "generate"


class Side(Protocol):
    """One contestant. `run` decodes a page from its image and draft."""

    @property
    def name(self) -> str: ...

    @property
    def uses_draft(self) -> bool: ...

    def run(self, page: Page, draft: Draft) -> Output: ...


@dataclass(frozen=True, slots=True)
class VerifierSide:
    """A verifier on the shared target and engine."""

    name: str
    verifier: Verifier
    target: Target
    engine: Engine

    @property
    def uses_draft(self) -> bool:
        return self.verifier.uses_draft

    def run(self, page: Page, draft: Draft) -> Output:
        start = time.perf_counter()
        verdict = self.verifier.verify(page, draft, self.target, self.engine)
        seconds = time.perf_counter() - start
        return Output(page_tokens(verdict.stages), verdict.finish_reason, verdict.stages, seconds, verdict.text)


@dataclass(frozen=True, slots=True)
class GenerateSide:
    """`model.generate(do_sample=False)` with its KV cache, on the inputs the target makes for the whole page.

    The time to the first token is given as prefill: `generate` does not tell image encoding apart.
    """

    target: Target
    settings: DecodeSettings
    name: str = GENERATE
    uses_draft: bool = False

    def run(self, page: Page, draft: Draft) -> Output:
        import torch

        model = self.target.model
        clock = _FirstToken()
        start = time.perf_counter()
        made = self.target.inputs([DecodeRequest(self.target.view(page.image), self.target.prompt(None))])
        inputs = {k: _placed(v, model) for k, v in made.items()}
        with torch.inference_mode():
            found = model.generate(
                **inputs,
                do_sample=False,
                num_beams=1,
                max_new_tokens=self.settings.max_new_tokens,
                eos_token_id=sorted(self.target.eos_ids),
                pad_token_id=min(self.target.eos_ids),
                streamer=clock,
            )
        tokens = tuple(found[0, inputs["input_ids"].shape[1] :].tolist())
        seconds = time.perf_counter() - start
        ended = bool(tokens) and tokens[-1] in self.target.eos_ids
        first = clock.at - start
        passes = max(0, len(tokens) - 1)
        steps = tuple(Step(0, 0, True, "", (seconds - first) / passes) for _ in range(passes))
        sequence = SequenceResult(tokens, "", "eos" if ended else "length", steps)
        stage = StageResult("page", (sequence,), StageTimes(prefill=first, decode=seconds - first), passes)
        return Output(tokens, sequence.finish_reason, (stage,), seconds)


class _FirstToken:
    """A streamer that notes when the first token came: `generate` first puts the prompt, then each token."""

    def __init__(self) -> None:
        self.at = 0.0
        self._puts = 0

    def put(self, value: Any) -> None:
        self._puts += 1
        if self._puts == 2:
            self.at = time.perf_counter()

    def end(self) -> None:
        """Nothing is held back."""


def _placed(value: Any, model: Any) -> Any:
    if not hasattr(value, "to"):
        return value
    return value.to(model.device, model.dtype) if value.is_floating_point() else value.to(model.device)
