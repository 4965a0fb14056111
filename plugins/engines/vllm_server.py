"""What a vLLM server is started with to verify the drafts that requests bring; `hsdkit serve-command` prints it all:

    --scheduler-cls hsdkit_plugins.engines.vllm_server.Scheduler
    --speculative-config '{"method": "custom_class", "model": "hsdkit_plugins.engines.vllm_server.NoProposer", ...}'

It is imported by vLLM alone: it does not load without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import vllm
from hsdkit_plugins.engines._vllm.scheduling import DraftingScheduler
from hsdkit_plugins.engines._vllm.support import version_problem
from vllm.v1.core.sched.scheduler import Scheduler as Stock
from vllm.v1.request import RequestStatus

if problem := version_problem(vllm.__version__):
    raise ImportError(problem)


class Scheduler(DraftingScheduler, Stock):
    """vLLM's scheduler; requests with an `hsdkit` message get draft tokens, all others are left as they are."""

    hsdkit_loop_status = RequestStatus.FINISHED_STOPPED

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        speculative = self.vllm_config.speculative_config
        if speculative is None or speculative.method != "custom_class":
            raise ValueError("hsdkit's scheduler needs the --speculative-config that `hsdkit serve-command` prints")
        if self.scheduler_config.async_scheduling:
            raise ValueError("hsdkit's scheduler drafts between steps: leave out --async-scheduling")
        self.hsdkit_vocabulary = self.vllm_config.model_config.get_vocab_size()

    def hsdkit_tokenizer(self) -> Any:
        from vllm.tokenizers import get_tokenizer

        model = self.vllm_config.model_config
        return get_tokenizer(
            model.tokenizer,
            tokenizer_mode=model.tokenizer_mode,
            revision=model.tokenizer_revision,
            trust_remote_code=model.trust_remote_code,
        )


class NoProposer:
    """vLLM asks for a drafter beside the model. It sees tokens but not the requests they belong to, so it proposes
    nothing, and the scheduler does."""

    def __init__(self, vllm_config: Any) -> None:
        pass

    def load_model(self, model: Any) -> None:
        """There is none."""

    def propose(self, sampled_token_ids: Sequence[Any], *args: Any, **kwargs: Any) -> list[list[int]]:
        return [[] for _ in sampled_token_ids]
