"""Engine `vllm`: vLLM in this process, or a vLLM server. Exact, one chain of draft tokens a step, many pages at once.

Stage 1's crops and the pages of all callers are requests to one vLLM engine, which batches them as it goes. Our own
scheduler in it drafts for each request from the text the request brings (`vllm_server`).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

from hsdkit import hookimpl
from hsdkit.components import Component, Requirement
from hsdkit.errors import ConfigError, TargetError
from hsdkit.protocols import Decoded, DecodeRequest, DecodeSettings, OnText, Target

if TYPE_CHECKING:
    from hsdkit_plugins.engines._vllm.message import Record
    from hsdkit_plugins.engines._vllm.offline import OfflineVllm
    from hsdkit_plugins.engines._vllm.reading import Read
    from hsdkit_plugins.engines._vllm.remote import RemoteVllm

log = logging.getLogger(__name__)

#: Requests of one call that wait for vLLM at once, a thread each; further ones are asked as these come back.
MOST_ASKED = 64
#: Tokens that are decoded once at the start to see that all is well and what a step takes.
TRIAL = 24
#: Of the trial's image.
SIDE = 64
#: Most that vLLM verifies for a request in a step.
MOST_DRAFT_TOKENS = 128

_DTYPES = {"auto": "auto", "fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


@dataclass(frozen=True, slots=True)
class VllmConfig:
    """Where vLLM runs. The last three are for a vLLM in this process, and for the command that starts a server.

    url: root of a vLLM server that was started as `hsdkit serve-command` says, such as http://host:8000; empty to run
        vLLM in this process.
    model: the name the server serves it by; empty for its only one.
    api_key_env: environment variable that holds the server's key, if it wants one.
    timeout: seconds that a server may say nothing.
    dtype: weights and arithmetic; `auto` is the checkpoint's own type, fp32 the one in which results never depend on
        what is batched.
    draft_tokens: most draft tokens verified for a request in a step, at most 128.
    arguments: further arguments of `vllm.EngineArgs` by name, such as engine.arguments.max_model_len=16384.
    """

    url: str = ""
    model: str = ""
    api_key_env: str = "VLLM_API_KEY"
    timeout: float = 600.0
    dtype: Literal["auto", "fp32", "bf16", "fp16"] = "auto"
    draft_tokens: int = 64
    arguments: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url={self.url}: must begin with http:// or https://")
        if self.timeout <= 0:
            raise ValueError(f"timeout={self.timeout}: must be positive")
        if not 1 <= self.draft_tokens <= MOST_DRAFT_TOKENS:
            raise ValueError(f"draft_tokens={self.draft_tokens}: must be between 1 and {MOST_DRAFT_TOKENS}")
        if self.url and (self.arguments or self.dtype != "auto" or self.draft_tokens != 64):
            raise ValueError(f"url={self.url}: dtype, draft_tokens and arguments are decided where the server starts")
        if not self.url and self.model:
            raise ValueError(f"model={self.model}: is the name on a server (engine.url); set target.model")


class VllmEngine:
    """Decodes requests in vLLM; the target's own weights are never loaded. Any number of threads may call it."""

    #: Pages decoded at once that it profits from.
    pages_at_once = 32

    def __init__(self, config: VllmConfig, target: Target) -> None:
        self._config = config
        self.target = target
        self._vllm: OfflineVllm | RemoteVllm | None = None
        self._loading = Lock()
        self._codec: Any = None
        self._draft_tokens = config.draft_tokens
        self._cost = (0.0, 0.0)

    # -- getting ready

    def load(self) -> None:
        _ = self._ready

    @property
    def _ready(self) -> OfflineVllm | RemoteVllm:
        with self._loading:
            if self._vllm is None:
                self._vllm = self._opened()
                try:
                    self._try_out(self._vllm)
                except BaseException:
                    self._vllm.close()
                    self._vllm = None
                    raise
            return self._vllm

    def _opened(self) -> OfflineVllm | RemoteVllm:
        from hsdkit_plugins.engines._vllm.asked import repetition_penalty, served
        from hsdkit_plugins.engines._vllm.support import check_model_types

        from hsdkit.decoding.codec import TokenizerCodec

        target, config = served(self.target), self._config
        if config.url:
            target.leave_weights()
        check_model_types(target.name, target.model_types | {target.checkpoint.model_type})
        repetition_penalty(target)  # refuses what would change the output, before anything is started
        self._codec = TokenizerCodec(target.tokenizer, target.written_tokens)
        if not config.url:
            from hsdkit_plugins.engines._vllm.offline import OfflineVllm

            return OfflineVllm(self._arguments(str(target.checkpoint.folder)))
        from hsdkit_plugins.engines._vllm.remote import RemoteVllm

        key, name = os.environ.get(config.api_key_env), target.config.model
        return RemoteVllm(config.url, key, config.timeout, config.model, name, target.system, self.serve_command())

    def _try_out(self, vllm: OfflineVllm | RemoteVllm) -> None:
        """A few tokens of a blank image: is our scheduler there, does it read prompts as we do, what does a step take?
        Raises `ConfigError` if not."""
        from hsdkit_plugins.engines._vllm.asked import ask, served
        from hsdkit_plugins.engines._vllm.reading import read
        from PIL import Image

        settings = DecodeSettings(max_new_tokens=TRIAL, stop_loops=False)
        request = DecodeRequest(Image.new("RGB", (SIDE, SIDE), "white"), self.target.prompt(None))
        # Without ends, so that it goes on whatever the model makes of nothing.
        asked = replace(ask(request, served(self.target), settings, TRIAL), ends=())
        try:
            found = read(vllm.ask, asked, settings, self._codec, self._image_token, lambda _: None)
        except TargetError as e:
            raise ConfigError(str(e)) from e
        if found.record is None:
            raise ConfigError(
                f"engine.url={self._config.url}: this server verifies no drafts: it was started without hsdkit's "
                f"scheduler, or with that of another version; start it with: {self.serve_command()}"
            )
        self._draft_tokens = found.record.limit
        self._learn(found.record)

    def _arguments(self, model: str) -> dict[str, Any]:
        """Of `vllm.EngineArgs`, those of the user last."""
        from hsdkit_plugins.engines._vllm.asked import served
        from hsdkit_plugins.engines._vllm.support import config_overrides, engine_arguments

        target = served(self.target)
        # One on the hub need not be here to name its server's command, and has the config vLLM knows.
        overrides = config_overrides(target.checkpoint.description, target.name) if Path(model).is_dir() else {}
        return {
            "model": model,
            "dtype": _DTYPES[self._config.dtype],
            **engine_arguments(self._config.draft_tokens),
            **({"hf_overrides": overrides} if overrides else {}),
            **self._config.arguments,
        }

    def serve_command(self) -> str:
        """The command that starts a server for this target. Raises `ConfigError` for a target vLLM has not."""
        from hsdkit_plugins.engines._vllm.asked import served
        from hsdkit_plugins.engines._vllm.support import check_model_types, server_command

        target = served(self.target)
        # What the target is made for; a checkpoint need not be here to name its server's command.
        check_model_types(target.name, target.model_types or {target.checkpoint.model_type})
        arguments = self._arguments(target.config.model)
        revision = {} if target.config.revision is None else {"revision": target.config.revision}
        trust = {"trust_remote_code": True} if target.config.trust_remote_code else {}
        return server_command(arguments | revision | trust)

    @property
    def facts(self) -> dict[str, str]:
        """What makes the results, beside the target's settings."""
        from hsdkit_plugins.engines._vllm.asked import served

        vllm = self._ready
        return {"vllm": vllm.version, "model": served(self.target).config.model, **vllm.facts}

    # -- decoding

    def decode(
        self, requests: Sequence[DecodeRequest], settings: DecodeSettings, on_text: OnText | None = None
    ) -> Decoded:
        """Results in request order. Raises `ConfigError` for settings that vLLM cannot decode with, `TargetError` when
        a sequence fails."""
        from hsdkit_plugins.engines._vllm.asked import check

        ready = self._ready
        check(settings, self._draft_tokens)
        start = perf_counter()
        teller = _Teller(on_text)
        one = partial(self._one, ready, requests, settings, teller)
        if len(requests) == 1:
            found = [one(0)]
        else:
            try:
                with ThreadPoolExecutor(min(len(requests), MOST_ASKED), "vllm") as threads:
                    found = list(threads.map(one, range(len(requests))))
            except Exception as e:  # of one sequence, perhaps only because another one failed first
                raise teller.failure or e from None
        return _decoded(found, start)

    def _one(
        self,
        vllm: OfflineVllm | RemoteVllm,
        requests: Sequence[DecodeRequest],
        settings: DecodeSettings,
        teller: _Teller,
        index: int,
    ) -> Read:
        from hsdkit_plugins.engines._vllm.asked import ask, served
        from hsdkit_plugins.engines._vllm.reading import read

        try:
            teller.tell(index, "")
            asked = ask(requests[index], served(self.target), settings, vllm.max_model_len or settings.max_new_tokens)
            found = read(vllm.ask, asked, settings, self._codec, self._image_token, partial(teller.tell, index))
        except BaseException as e:
            teller.failure = teller.failure or e
            raise
        if found.record is not None:
            self._learn(found.record)
        return found

    @property
    def _image_token(self) -> int:
        from hsdkit_plugins.engines._vllm.asked import served

        return int(served(self.target).model_config.image_token_id)

    # -- what steps take

    def _learn(self, record: Record) -> None:
        if any(record.cost):
            self._cost = record.cost
        if record.note:
            log.warning("engine=vllm: %s", record.note)

    def expected_seconds(self, tokens: int) -> float:
        """Seconds that plain decoding of so many tokens takes for one sequence, as the engine's steps of late say."""
        self.load()
        step, token = self._cost
        return tokens * (step + token)

    def pass_seconds(self, tokens: int) -> float:
        """Seconds of one pass over so many tokens, of all rows together, as the engine's steps of late say."""
        self.load()
        step, token = self._cost
        return step + tokens * token

    def close(self) -> None:
        """End vLLM, if it runs in this process."""
        with self._loading:
            if self._vllm is not None:
                self._vllm.close()
                self._vllm = None


class _Teller:
    """Hands text on, one piece at a time. Once there is a `failure`, because a sequence of the call failed or its
    caller wants no more, all others of the call end with their next piece."""

    def __init__(self, on_text: OnText | None) -> None:
        self.failure: BaseException | None = None
        self._on_text = on_text
        self._lock = Lock()

    def tell(self, index: int, text: str) -> None:
        if self.failure is not None:
            raise TargetError("engine=vllm: not finished, as another sequence of the same call failed")
        if self._on_text is not None and text:
            with self._lock:
                self._on_text(index, text)


def _decoded(found: Sequence[Read], start: float) -> Decoded:
    """Requests come and go in vLLM: the prefill of a call ends with the first token of its last request, its passes are
    those of its longest sequence."""
    from hsdkit.results import StageTimes

    prefill = max(read.first for read in found) - start
    times = StageTimes(
        prefill=prefill,
        decode=perf_counter() - start - prefill,
        host=sum(read.record.host for read in found if read.record is not None),
    )
    return Decoded(tuple(r.sequence for r in found), times, max(len(r.sequence.steps) for r in found))


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    yield Component(
        kind="engine",
        name="vllm",
        summary="vLLM, exact: in this process or a server (engine.url=...)",
        config=VllmConfig,
        factory=VllmEngine,
        requires=(Requirement("vllm", "hsdkit[vllm]", without="with engine.url="),),
    )
