"""What our scheduler adds to vLLM's, without importing vLLM: drafts for the requests that bring some, and a record of
what became of them.

Nothing here may fail inside vLLM, where one exception ends the engine and with it every request: a request whose drafts
make trouble goes on without them.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from hsdkit_plugins.engines._vllm.cost import StepCost
from hsdkit_plugins.engines._vllm.drafting import Drafting
from hsdkit_plugins.engines._vllm.message import read_message

from hsdkit.decoding.codec import TokenizerCodec
from hsdkit.errors import described

log = logging.getLogger("vllm.hsdkit")

#: The attribute of a vLLM request that holds its drafting, and so ends with it.
ATTRIBUTE = "hsdkit_drafting"
#: Output languages (sets of written tokens) whose codecs are kept; every target has one.
CODECS = 8

if TYPE_CHECKING:
    Stock: Any
else:
    Stock = object


class DraftingScheduler(Stock):
    """Mixed in before `vllm.v1.core.sched.scheduler.Scheduler`.

    `hsdkit_tokenizer()` gives the served tokenizer, one that nobody else uses; `hsdkit_vocabulary` is the number of
    tokens that the model knows, `hsdkit_loop_status` the status of a request that is ended because it loops.
    """

    hsdkit_vocabulary: int
    hsdkit_loop_status: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hsdkit_cost = StepCost()
        self._hsdkit_scheduled = perf_counter()
        self._hsdkit_drafting = 0.0
        self._hsdkit_said: set[str] = set()
        self._hsdkit_codec = lru_cache(CODECS)(lambda written: TokenizerCodec(self.hsdkit_tokenizer(), written))

    def hsdkit_tokenizer(self) -> Any:
        raise NotImplementedError

    # -- vLLM's own methods

    def add_request(self, request: Any) -> None:
        super().add_request(request)
        try:
            self._begin(request)
        except Exception as e:  # would end vLLM
            self._say(request, f"drafts ignored: {described(e)}")

    def schedule(self, *args: Any, **kwargs: Any) -> Any:
        self._hsdkit_scheduled = perf_counter()
        return super().schedule(*args, **kwargs)

    def _update_request_with_output(self, request: Any, new_token_ids: list[int], *args: Any, **kwargs: Any) -> Any:
        new_token_ids, stopped = super()._update_request_with_output(request, new_token_ids, *args, **kwargs)
        drafting = getattr(request, ATTRIBUTE, None)
        if drafting is not None and not stopped:
            try:
                if drafting.loops(request.output_token_ids):
                    request.status = self.hsdkit_loop_status
                    stopped = True
            except Exception as e:  # would end vLLM
                self._say(request, f"loops not looked for: {described(e)}")
        return new_token_ids, stopped

    def update_from_output(self, scheduler_output: Any, model_runner_output: Any) -> Any:
        # Before vLLM's own method, which forgets the requests that end with this step.
        scheduled = scheduler_output.num_scheduled_tokens
        live = {name: self.requests.get(name) for name in scheduled}
        outputs = super().update_from_output(scheduler_output, model_runner_output)
        seconds = perf_counter() - self._hsdkit_scheduled
        drafts = scheduler_output.scheduled_spec_decode_tokens
        if scheduled and all(number == 1 + len(drafts.get(name, ())) for name, number in scheduled.items()):
            self._hsdkit_cost.observe(sum(scheduled.values()), seconds)
        seconds += self._hsdkit_drafting
        self._hsdkit_drafting = 0.0
        for group in outputs.values():
            for output in group.outputs:
                if (request := live.get(output.request_id)) is not None:
                    self._tell(request, output, drafts.get(output.request_id, ()), seconds)
        return outputs

    def update_draft_token_ids(self, draft_token_ids: Any) -> None:
        start = perf_counter()
        try:
            self._draft(draft_token_ids)
        except Exception as e:  # would end vLLM
            self._say(None, f"no drafts in a step: {described(e)}")
        self._hsdkit_drafting += perf_counter() - start
        super().update_draft_token_ids(draft_token_ids)

    # -- one step

    def _draft(self, draft_token_ids: Any) -> None:
        """Fill in the draft tokens of all requests of a step."""
        proposals: list[tuple[int, Any, list[int], np.ndarray]] = []
        for index, name in enumerate(draft_token_ids.req_ids):
            request = self.requests.get(name)
            if request is None or request.is_finished() or request.is_prefill_chunk:
                continue
            tokens, survival = self._propose(request)
            if tokens:
                proposals.append((index, request, tokens, survival))
        free = [p for p in proposals if getattr(p[1], ATTRIBUTE).message.width is None]
        widths = self._hsdkit_cost.worthwhile([p[3] for p in free], len(draft_token_ids.req_ids))
        kept = {p[0]: width for p, width in zip(free, widths, strict=True)}
        for index, _, tokens, _ in proposals:
            draft_token_ids.draft_token_ids[index] = tokens[: kept.get(index, len(tokens))]

    # -- one request

    def _begin(self, request: Any) -> None:
        sampling = request.sampling_params
        extra = getattr(sampling, "extra_args", None)
        if hasattr(request, ATTRIBUTE):  # another chunk of a request that streams its prompt
            return
        try:
            message = read_message(extra)
        except ValueError as e:
            setattr(request, ATTRIBUTE, Drafting())
            self._say(request, f"drafts ignored: the request's {e}")
            return
        if message is None:
            return
        setattr(request, ATTRIBUTE, Drafting())  # what follows may fail: then it goes on with this one
        codec = self._hsdkit_codec(tuple(sorted(message.written)))
        setattr(request, ATTRIBUTE, Drafting(message, codec, self.hsdkit_vocabulary))

    def _propose(self, request: Any) -> tuple[list[int], np.ndarray]:
        drafting = getattr(request, ATTRIBUTE, None)
        if drafting is None:
            return [], np.zeros(0)
        limits = [self.num_spec_tokens, self.max_model_len - request.num_tokens - 1]
        if request.max_tokens is not None:  # of a step's tokens the last is the model's own
            limits.append(request.max_tokens - request.num_output_tokens - 1)
        if drafting.message.width is not None:
            limits.append(drafting.message.width)
        try:
            proposed: tuple[list[int], np.ndarray] = drafting.propose(min(limits))
            return proposed
        except Exception as e:  # this request's trouble, not that of all in the step
            self._say(request, f"drafting failed: {described(e)}")
            return [], np.zeros(0)

    def _tell(self, request: Any, output: Any, verified: Any, seconds: float) -> None:
        """A request's output of this step, to its drafting; its last one carries the record."""
        drafting = getattr(request, ATTRIBUTE, None)
        if drafting is None:
            return
        ended = output.finish_reason is not None
        try:
            if output.new_token_ids:
                drafting.emitted(list(output.new_token_ids), list(verified), ended, seconds)
        except Exception as e:  # would end vLLM
            self._say(request, f"drafting failed: {described(e)}")
        if ended:
            output.stop_reason = drafting.record(self.num_spec_tokens, self._hsdkit_cost.line).to_text()

    def _say(self, request: Any, note: str) -> None:
        """The request goes on without drafts, and says so in its record; the log says each kind of trouble once. None
        for trouble with all of them, which then have no drafts in this step."""
        drafting = getattr(request, ATTRIBUTE, None)
        if drafting is not None:
            drafting.give_up(note)
        kind = note[:60]
        if kind not in self._hsdkit_said and len(self._hsdkit_said) < 100:
            self._hsdkit_said.add(kind)
            log.warning("request %s: %s (said once)", getattr(request, "request_id", "?"), note)
