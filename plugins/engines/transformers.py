"""Engine `transformers`: trees, tau and logits processors on any `transformers` model. The reference engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.protocols import Decoded, DecodeRequest, DecodeSettings, OnText, Target

if TYPE_CHECKING:
    from hsdkit_plugins.engines.hf_model import HFModel

    from hsdkit.decoding.budget import CostCurve
    from hsdkit.decoding.protocol import Matcher

#: More than any machine has; asked for very many, OpenMP ends the process.
MAX_THREADS = 1024


@dataclass(frozen=True, slots=True)
class TransformersConfig:
    """device: "auto" takes CUDA where there is one. dtype: "auto" is fp32 on a CPU, where decoding is then exactly
    greedy, and the checkpoint's own type elsewhere. attention: an attention implementation of `transformers`; "auto" is
    sdpa that leaves grouped heads grouped, with the same numbers and less memory traffic. max_rows: sequences decoded
    in one batch; more are decoded in turn. threads: CPU threads of torch, in the whole process; "auto" measures whether
    one or all of them are faster, for images and for steps."""

    device: str = "auto"
    dtype: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    attention: Literal["auto", "sdpa", "eager"] = "auto"
    max_rows: int = 32
    threads: int | str = "auto"

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise ValueError(f"max_rows={self.max_rows}: must be at least 1")
        number = isinstance(self.threads, int) and not isinstance(self.threads, bool)
        if self.threads != "auto" and not (number and 1 <= int(self.threads) <= MAX_THREADS):
            raise ValueError(f"threads={self.threads}: must be auto, or a number from 1 to {MAX_THREADS}")


class TransformersEngine:
    """Decodes requests on `target.model`, which is moved to the device and type at first use."""

    def __init__(self, config: TransformersConfig, target: Target) -> None:
        self._config = config
        self.target = target
        self._model: HFModel | None = None
        self._curves: dict[int, CostCurve] = {}

    def load(self) -> None:
        _ = self.model

    def decode(
        self, requests: Sequence[DecodeRequest], settings: DecodeSettings, on_text: OnText | None = None
    ) -> Decoded:
        """Results in request order. Raises `ConfigError` for settings out of range."""
        from hsdkit.decoding.matching import build

        groups = []
        for start in range(0, len(requests), self._config.max_rows):
            group = requests[start : start + self._config.max_rows]
            matchers = [build(settings, r.drafts, self.model.codec, r.separator) for r in group]
            groups.append(self.decode_with(group, settings, matchers, _shifted(on_text, start)))
        return groups[0] if len(groups) == 1 else _joined(groups)

    def decode_with(
        self,
        requests: Sequence[DecodeRequest],
        settings: DecodeSettings,
        matchers: Sequence[Matcher | None],
        on_text: OnText | None = None,
    ) -> Decoded:
        """Decode all requests in one batch, row b with the guesses of `matchers[b]` in place of its drafts."""
        from hsdkit.decoding.budget import Budget
        from hsdkit.decoding.loop import decode

        fixed = settings.max_packed if isinstance(settings.max_packed, int) else None
        measured = fixed is None and any(matchers)
        budget = Budget(fixed, self.cost_curve(len(requests)) if measured else None)
        return decode(self.model, requests, settings, matchers, budget, self.target.logits_processors(), on_text)

    def expected_seconds(self, tokens: int) -> float:
        """Seconds that plain decoding of so many tokens takes for one sequence, prefill not counted."""
        return tokens * self.cost_curve(1).seconds[0]

    def pass_seconds(self, tokens: int) -> float:
        """Seconds of one verification pass over so many packed tokens, of all rows together."""
        import numpy as np

        return float(self.cost_curve(1).at(np.asarray(tokens)))

    @property
    def model(self) -> HFModel:
        if self._model is None:
            from hsdkit_plugins.engines.hf_model import HFModel, place

            from hsdkit.decoding.codec import TokenizerCodec

            place(self.target.model, self._config.device, self._config.dtype, self._config.attention)
            self._model = HFModel(self.target, TokenizerCodec(self.target.tokenizer, self.target.written_tokens))
            if self._model.device.type == "cpu":
                self._set_threads(self._model)
        return self._model

    def _set_threads(self, model: HFModel) -> None:
        import torch
        from hsdkit_plugins.engines.hf_model import pass_timer
        from hsdkit_plugins.engines.threads import (
            ALL_THREADS,
            PAGE_PATCHES,
            SMALL,
            fastest_threads,
            image_work,
            torch_threads,
        )

        threads = self._config.threads
        if isinstance(threads, int):
            torch.set_num_threads(threads)
        elif model.model.num_parameters() <= SMALL:
            with torch_threads(ALL_THREADS):
                # Images are large work, often worth sharing where single steps are not.
                model.prompt_threads = fastest_threads(image_work, (PAGE_PATCHES,))
                steps = fastest_threads(pass_timer(model, 1))
            torch.set_num_threads(steps)

    def cost_curve(self, rows: int) -> CostCurve:
        """Cost of a verification pass with that many rows (rounded up to a power of two), measured at first use."""
        from hsdkit_plugins.engines.hf_model import pass_timer

        from hsdkit.decoding.budget import CostCurve

        rows = 1 << (rows - 1).bit_length()
        if rows not in self._curves:
            self._curves[rows] = CostCurve.measure(pass_timer(self.model, rows), rows)
        return self._curves[rows]


def _shifted(on_text: OnText | None, start: int) -> OnText | None:
    if on_text is None or not start:
        return on_text
    return lambda row, text: on_text(start + row, text)


def _joined(groups: Sequence[Decoded]) -> Decoded:
    from hsdkit.results import StageTimes

    times = [g.times for g in groups]
    return Decoded(
        tuple(s for g in groups for s in g.sequences),
        StageTimes(
            encode=sum(t.encode for t in times),
            prefill=sum(t.prefill for t in times),
            decode=sum(t.decode for t in times),
            host=sum(t.host for t in times),
        ),
        sum(g.forwards for g in groups),
    )


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    yield Component(
        kind="engine",
        name="transformers",
        summary="any transformers model: prefix trees, tau, logits processors, batches of ragged rows",
        config=TransformersConfig,
        factory=TransformersEngine,
    )
