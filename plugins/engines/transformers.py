"""Engine `transformers`: trees, tau and logits processors on any `transformers` model. The reference engine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.protocols import Decoded, DecodeRequest, DecodeSettings, OnText, Target

if TYPE_CHECKING:
    from hsdkit_plugins.engines.hf_model import HFModel

    from hsdkit.decoding.budget import Budget, CostCurve, MeasuredCosts
    from hsdkit.decoding.protocol import Matcher, Prompts
    from hsdkit.decoding.shared_loop import SharedLoop

#: More than any machine has; asked for very many, OpenMP ends the process.
MAX_THREADS = 1024
#: While others are served, a call's requests join in groups of this share of the rows: places need not wait until all
#: of them fit, and no prefill holds up the others for long.
SHARES = 4


@dataclass(frozen=True, slots=True)
class TransformersConfig:
    """device: "auto" takes CUDA where there is one. dtype: "auto" is fp32 on a CPU, where decoding is then exactly
    greedy, and the checkpoint's own type elsewhere. attention: an attention implementation of `transformers`; "auto" is
    sdpa that leaves grouped heads grouped, with the same numbers and less memory traffic. max_rows: sequences decoded
    together, of all pages in flight; more wait for a place. cache_tokens: tokens whose keys and values may be held
    together (sequences times the longest); "auto" is what fits into half of the memory that is free once the model is
    loaded; one sequence alone may always have more. threads: CPU threads of torch, in the whole process; "auto"
    measures whether one or all of them are faster, for images and for steps."""

    device: str = "auto"
    dtype: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    attention: Literal["auto", "sdpa", "eager"] = "auto"
    max_rows: int = 32
    cache_tokens: int | str = "auto"
    threads: int | str = "auto"

    def __post_init__(self) -> None:
        if self.max_rows < 1:
            raise ValueError(f"max_rows={self.max_rows}: must be at least 1")
        if self.cache_tokens != "auto" and not (_is_number(self.cache_tokens) and int(self.cache_tokens) >= 1):
            raise ValueError(f"cache_tokens={self.cache_tokens}: must be auto, or a number of tokens from 1 on")
        if self.threads != "auto" and not (_is_number(self.threads) and 1 <= int(self.threads) <= MAX_THREADS):
            raise ValueError(f"threads={self.threads}: must be auto, or a number from 1 to {MAX_THREADS}")


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


class TransformersEngine:
    """Decodes requests on `target.model`, which is moved to the device and type at first use.

    May be used from many threads: whatever they ask for is decoded together.
    """

    def __init__(self, config: TransformersConfig, target: Target) -> None:
        self._config = config
        self.target = target
        self._loading = threading.RLock()
        self._model: HFModel | None = None
        self._loop: SharedLoop | None = None
        self._budgets: dict[int | None, Budget] = {}
        self._costs: MeasuredCosts | None = None

    def load(self) -> None:
        _ = self.loop

    def decode(
        self, requests: Sequence[DecodeRequest], settings: DecodeSettings, on_text: OnText | None = None
    ) -> Decoded:
        """Results in request order. Raises `ConfigError` for settings out of range. Times are this call's share of
        steps that others had rows in; `on_text` may be called in another thread, and holds up all rows."""
        from hsdkit.decoding.matching import build

        matchers = [build(settings, r.drafts, self.model.codec, r.separator) for r in requests]
        return self.decode_with(requests, settings, matchers, on_text)

    def decode_with(
        self,
        requests: Sequence[DecodeRequest],
        settings: DecodeSettings,
        matchers: Sequence[Matcher | None],
        on_text: OnText | None = None,
    ) -> Decoded:
        """Decode with the guesses of `matchers[b]` in place of the drafts of request b."""
        from hsdkit.decoding.call import Call, Group

        loop = self.loop
        budget = self._budget(settings, matchers)
        call = Call(len(requests), settings, budget, self.target.logits_processors(), on_text)
        rows = max(1, self._config.max_rows // SHARES) if loop.busy else self._config.max_rows
        groups = []
        for start in range(0, len(requests), rows):
            for first, prompts in fitting(self.model, requests[start : start + rows], start, loop.max_tokens):
                groups.append(Group(call, first, prompts, matchers[first : first + len(prompts)]))
        return loop.decode(call, groups)

    def expected_seconds(self, tokens: int) -> float:
        """Seconds that plain decoding of so many tokens takes for one sequence, prefill not counted."""
        return tokens * self.cost_curve(1).seconds[0]

    def pass_seconds(self, tokens: int) -> float:
        """Seconds of one verification pass over so many packed tokens, of all rows together."""
        import numpy as np

        return float(self.cost_curve(1).at(np.asarray(tokens)))

    def cost_curve(self, rows: int) -> CostCurve:
        """Cost of a verification pass with that many rows, measured at first use, while no rows are decoded."""
        costs = self._measured_costs()
        return costs.known(rows) or self.loop.between_steps(lambda: costs.curve(rows))

    @property
    def pages_at_once(self) -> int:
        """One on a CPU, where a pass costs what it computes. Elsewhere a pass mostly reads the weights, once for all of
        its rows; `max_rows` leaves each page the rows of some regions."""
        return 1 if self.model.device.type == "cpu" else max(1, self._config.max_rows // SHARES)

    @property
    def model(self) -> HFModel:
        with self._loading:
            if self._model is None:
                from hsdkit_plugins.engines.hf_model import HFModel, place

                from hsdkit.decoding.codec import TokenizerCodec

                place(self.target.model, self._config.device, self._config.dtype, self._config.attention)
                self._model = HFModel(self.target, TokenizerCodec(self.target.tokenizer, self.target.written_tokens))
                if self._model.device.type == "cpu":
                    self._set_threads(self._model)
            return self._model

    @property
    def loop(self) -> SharedLoop:
        """Where the rows of all callers meet."""
        with self._loading:
            if self._loop is None:
                from hsdkit_plugins.engines.memory import affordable_tokens

                from hsdkit.decoding.scheduler import Scheduler
                from hsdkit.decoding.shared_loop import SharedLoop

                model = self.model
                given = self._config.cache_tokens
                most = given if isinstance(given, int) else affordable_tokens(model)
                self._loop = SharedLoop(Scheduler(model, self._config.max_rows, most), self._thread_set_up())
            return self._loop

    def _budget(self, settings: DecodeSettings, matchers: Sequence[Matcher | None]) -> Budget:
        """One for all callers with the same `max_packed`: it sees all their rows, and learns from all."""
        from hsdkit.decoding.budget import Budget

        if not any(matchers):
            return Budget(1, None)
        fixed = settings.max_packed if isinstance(settings.max_packed, int) else None
        with self._loading:
            if fixed not in self._budgets:
                self._budgets[fixed] = Budget(fixed, self._measured_costs() if fixed is None else None)
            return self._budgets[fixed]

    def _measured_costs(self) -> MeasuredCosts:
        with self._loading:
            if self._costs is None:
                from hsdkit_plugins.engines.hf_model import MADE_UP, pass_timer

                from hsdkit.decoding.budget import MAX_PACKED, CostCurve, MeasuredCosts

                def measure(rows: int) -> CostCurve:
                    room = self.loop.max_tokens // rows - MAX_PACKED  # others may hold as much beside it
                    return CostCurve.measure(pass_timer(self.model, rows, min(MADE_UP, max(1, room))), rows)

                self._costs = MeasuredCosts(measure, self._config.max_rows)
            return self._costs

    def _thread_set_up(self) -> Callable[[], None]:
        """Torch keeps its number of threads for each thread: those that drive take that of the thread that loaded."""
        import torch

        loader, chosen = threading.get_ident(), torch.get_num_threads()

        def set_up() -> None:
            if threading.get_ident() != loader and torch.get_num_threads() != chosen:
                torch.set_num_threads(chosen)

        return set_up

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


def fitting(model: HFModel, requests: Sequence[DecodeRequest], first: int, most: int) -> Iterator[tuple[int, Prompts]]:
    """The requests prepared, with the number of the first; divided where together they would not fit into `most` slots
    of the cache."""
    from hsdkit.decoding.cache import HEADROOM

    prompts = model.prepare(requests)
    if len(requests) == 1 or len(requests) * (prompts.longest + HEADROOM) <= most:
        yield first, prompts
        return
    half = len(requests) // 2
    yield from fitting(model, requests[:half], first, most)
    yield from fitting(model, requests[half:], first + half, most)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    yield Component(
        kind="engine",
        name="transformers",
        summary="any transformers model: prefix trees, tau, logits processors, batches of ragged rows",
        config=TransformersConfig,
        factory=TransformersEngine,
    )
