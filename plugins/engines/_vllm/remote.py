"""A vLLM server: its OpenAI-compatible interface, with the drafts in `vllm_xargs`."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping
from typing import Any

from hsdkit_plugins.engines._vllm.asked import Asked
from hsdkit_plugins.engines._vllm.http import Http, Refused, Unreachable
from hsdkit_plugins.engines._vllm.reading import Chunk
from hsdkit_plugins.engines._vllm.support import version_problem

from hsdkit.errors import ConfigError, PluginError, TargetError
from hsdkit.hub import is_hub_id

_CHAT = "/v1/chat/completions"


class RemoteVllm:
    """`model` is the name it is served by, "" for the only one, or the one called `checkpoint`; `system` the system
    message of the target's chat, None for none; `start` the command that starts such a server.

    Raises `PluginError` where no usable server answers, `ConfigError` where it serves something else.
    """

    def __init__(
        self, url: str, api_key: str | None, seconds: float, model: str, checkpoint: str, system: str | None, start: str
    ) -> None:
        self._http = Http(url, api_key, seconds)
        self._system = system
        self._start = start
        try:
            self.version = str(self._http.get("/version").get("version"))
            models = [card for card in self._http.get("/v1/models")["data"] if card.get("object") == "model"]
        except Refused as e:
            if e.status in (401, 403):
                raise ConfigError(f"engine.url: {e}; set the key in the variable that engine.api_key_env names") from e
            raise PluginError(f"engine.url={url}: not a vLLM server: {e}") from e
        except Unreachable as e:
            raise PluginError(f"engine.url={url}: {e}; start one with: {start}") from e
        except (TargetError, AttributeError, KeyError, TypeError) as e:
            raise PluginError(f"engine.url={url}: not a vLLM server: {e}") from e
        if problem := version_problem(self.version):
            raise PluginError(f"engine.url={url}: {problem}")
        card = _chosen(models, model, checkpoint, url)
        self.model = str(card["id"])
        self.max_model_len = int(card.get("max_model_len") or 0)
        self.facts = {"device": f"vLLM server {self._http.url}", "served_model": str(card.get("root") or self.model)}

    def ask(self, asked: Asked) -> Iterator[Chunk]:
        content: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": _data_url(asked.image)}}]
        if asked.prompt:
            content.append({"type": "text", "text": asked.prompt})
        messages: list[dict[str, Any]] = [{"role": "user", "content": content}]
        if self._system is not None:
            messages.insert(0, {"role": "system", "content": self._system})
        body = {
            "model": self.model,
            "messages": messages,
            "stream": True,
            "return_token_ids": True,
            **asked.sampling,
            **({"mm_processor_kwargs": asked.image_options} if asked.image_options else {}),
            **({"vllm_xargs": asked.message.pack()} if asked.message is not None else {}),
        }
        for event in self._http.events(_CHAT, body):
            for choice in event.get("choices") or ():
                yield Chunk(
                    choice.get("token_ids") or (),
                    event.get("prompt_token_ids") or (),
                    choice.get("finish_reason"),
                    choice.get("stop_reason"),
                )

    def close(self) -> None:
        """Every request has a connection of its own."""


def _chosen(models: list[Mapping[str, Any]], wanted: str, checkpoint: str, url: str) -> Mapping[str, Any]:
    """The model to ask. Raises `ConfigError` when it is not clear which, or certainly another one."""
    names = ", ".join(str(card["id"]) for card in models) or "none"
    if wanted:
        if found := [card for card in models if card["id"] == wanted]:
            return found[0]
        raise ConfigError(f"engine.model={wanted}: the server {url} serves {names}")
    same = [card for card in models if checkpoint in (card.get("root"), card["id"])]
    if len(same) == 1:
        return same[0]
    if len(models) != 1:
        raise ConfigError(f"engine.url={url}: it serves {names}; name one with engine.model")
    root = str(models[0].get("root") or "")
    if is_hub_id(root) and is_hub_id(checkpoint):  # a folder may hold any model
        raise ConfigError(
            f"engine.url={url}: it serves {root}, and the target is {checkpoint}: set target.model={root}, or "
            f"engine.model={models[0]['id']} if they are the same"
        )
    return models[0]


def _data_url(image: Any) -> str:
    """Without loss; compressed a little, as it goes once over a network."""
    held = io.BytesIO()
    image.save(held, "PNG", compress_level=1)
    return "data:image/png;base64," + base64.b64encode(held.getvalue()).decode()
