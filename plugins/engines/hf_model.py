"""Any `transformers` vision-language or language model as a `TargetModel`, on public interfaces alone.

What differs between architectures is read off the model: how its forward pass takes a cache, how many axes its
positions have, which module is the vision tower.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import torch
from hsdkit_plugins.engines.grouped_attention import use_grouped_attention
from hsdkit_plugins.engines.layer_masks import LayerMasks
from hsdkit_plugins.engines.threads import torch_threads

from hsdkit.decoding.budget import MAX_PACKED
from hsdkit.decoding.cache import RaggedCache
from hsdkit.decoding.protocol import Codec, Prefill, Prompts
from hsdkit.errors import ConfigError
from hsdkit.protocols import DecodeRequest, Target


class HFModel:
    """`target.model` behind the two passes of the decoding loop. B rows, P padded prompt length, K packed tokens."""

    def __init__(self, target: Target, codec: Codec) -> None:
        self.model = target.model
        self.codec = codec
        self.eos_ids = target.eos_ids
        self._inputs = target.inputs
        self.device = self.model.device
        self.dtype = self.model.dtype
        #: CPU threads of `prefill`; None: as many as torch uses anyway.
        self.prompt_threads: int | None = None
        text_config = self.model.config.get_text_config()
        self._masks = LayerMasks(text_config, type(self.model).__name__)

        accepted = inspect.signature(type(self.model).forward).parameters
        # Renamed in transformers 5: models of both spellings exist.
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        self._takes_logits_to_keep = "logits_to_keep" in accepted
        self._rope_index: Callable[..., Any] | None = getattr(
            getattr(self.model, "model", None), "get_rope_index", None
        )
        multi_axis = "mrope_section" in (getattr(text_config, "rope_parameters", None) or {})
        self._axes = self._count_axes() if multi_axis and self._rope_index else 0
        names = ("image_token_id", "image_token_index")
        self._image_token = next((i for n in names if (i := getattr(self.model.config, n, None)) is not None), None)
        self._vision = _VisionClock(self.model)

    def prepare(self, requests: Sequence[DecodeRequest]) -> Prompts:
        begun = perf_counter()
        inputs = self._inputs(requests)
        return Prompts(inputs, inputs["attention_mask"].sum(-1).tolist(), perf_counter() - begun)

    def prefill(self, prompts: Prompts, cache: RaggedCache) -> Prefill:
        """One pass over the prompts and images of all requests, right padded: pads come last, so the plain causal mask
        already hides them from every token."""
        inputs = {k: self._to_device(v) for k, v in prompts.inputs.items()}
        attention_mask = inputs.pop("attention_mask")
        lengths = prompts.lengths
        last = torch.tensor(lengths, device=self.device) - 1
        positions = self._prompt_positions(inputs, attention_mask)
        cache.begin_prompt(lengths, attention_mask.shape[1])
        kept, index = torch.unique(last, return_inverse=True)
        if self._takes_logits_to_keep:
            inputs["logits_to_keep"] = kept
        with self._vision, torch_threads(self.prompt_threads):
            logits = self._forward(cache, position_ids=positions, **inputs)
        rows = torch.arange(len(last), device=self.device)
        highest = positions.amax(0) if positions.ndim == 3 else positions
        return Prefill(
            logits=logits[rows, index if self._takes_logits_to_keep else last],
            lengths=lengths,
            positions=(highest.masked_fill(attention_mask == 0, -1).amax(-1) + 1).tolist(),
            prompts=[ids[:n] for ids, n in zip(inputs["input_ids"].tolist(), lengths, strict=True)],
            encode_seconds=self._vision.seconds,
            image_token=self._image_token,
        )

    def verify(
        self, tokens: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, cache: RaggedCache
    ) -> torch.Tensor:
        """Logits (B, K, V); every axis of the position ids advances together."""
        masks = self._masks.of_pass(mask, positions, cache, self._additive)
        positions = positions.to(self.device)
        if self._axes:
            positions = positions[None].expand(self._axes, -1, -1)
        return self._forward(cache, input_ids=tokens.to(self.device), position_ids=positions, attention_mask=masks)

    def _additive(self, mask: torch.Tensor | None) -> torch.Tensor | None:
        """Once for all layers: sdpa would convert a bool mask in each, eager would add it as 0 and 1."""
        if mask is None:
            return None
        hidden = ~mask.to(self.device)
        return torch.zeros(mask.shape, dtype=self.dtype, device=self.device).masked_fill_(hidden, -torch.inf)

    def _forward(self, cache: RaggedCache, **inputs: Any) -> torch.Tensor:
        inputs[self._cache_name] = cache
        logits: torch.Tensor = self.model(use_cache=True, **inputs).logits
        return logits

    def _count_axes(self) -> int:
        """Asked of the model, on one token of text: a list of sections may go round the axes several times."""
        assert self._rope_index is not None
        token = torch.zeros(1, 1, dtype=torch.long, device=self.device)
        given = {"input_ids": token, "mm_token_type_ids": token, "attention_mask": token + 1}
        known = inspect.signature(self._rope_index).parameters
        return len(self._rope_index(**{k: v for k, v in given.items() if k in known})[0])

    def _prompt_positions(self, inputs: dict[str, Any], attention_mask: torch.Tensor) -> torch.Tensor:
        """(B, P), or (axes, B, P) for multi-axis rotary embeddings."""
        ids = inputs["input_ids"]
        if self._axes and self._rope_index is not None and inputs.get("image_grid_thw") is not None:
            known = inspect.signature(self._rope_index).parameters
            given = {k: v for k, v in inputs.items() if k in known} | {"attention_mask": attention_mask}
            positions: torch.Tensor = self._rope_index(**given)[0]
            return positions
        line = torch.arange(ids.shape[1], device=self.device).expand(len(ids), -1)
        return line[None].expand(self._axes, -1, -1) if self._axes else line

    def _to_device(self, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(self.device, self.dtype if value.is_floating_point() else value.dtype)


class _VisionClock:
    """Adds up the seconds spent in the vision tower between entering and leaving the context."""

    def __init__(self, model: Any) -> None:
        self.seconds = 0.0
        self._tower = _vision_tower(model)
        self._begun = 0.0
        self._hooks: list[Any] = []

    def __enter__(self) -> None:
        self.seconds = 0.0
        if self._tower is not None:
            self._hooks = [
                self._tower.register_forward_pre_hook(self._begin),
                self._tower.register_forward_hook(self._end),
            ]

    def __exit__(self, *exc: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _begin(self, module: torch.nn.Module, args: Any) -> None:
        self._begun = _now(module)

    def _end(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        self.seconds += _now(module) - self._begun


def _now(module: torch.nn.Module) -> float:
    if next(module.parameters()).is_cuda:
        torch.cuda.synchronize()
    return perf_counter()


def _vision_tower(model: Any) -> torch.nn.Module | None:
    """The module built from `config.vision_config` or a copy of it, under whatever name the architecture has it."""
    config = getattr(model.config, "vision_config", None)
    if config is None:
        return None
    return next((m for m in model.modules() if type(getattr(m, "config", None)) is type(config)), None)


_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def place(model: Any, device: str, dtype: str, attention: str) -> None:
    """Move the model to device and type, and choose its attention. Raises `ConfigError` where that cannot be."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    on_cpu = device.startswith("cpu")
    try:
        _cast(model, _DTYPES.get(dtype, torch.float32 if on_cpu else model.dtype))
        model.to(device=device)
    except (RuntimeError, AssertionError) as error:  # torch has no one type for a device that is not there
        raise ConfigError(f"engine.device={device}: {str(error).splitlines()[0]}") from error
    if attention == "auto":
        use_grouped_attention(model)
    else:
        try:
            model.set_attn_implementation(attention)
        except ValueError as error:
            raise ConfigError(f"engine.attention={attention}: {str(error).splitlines()[0]}") from error
        if (used := model.config.get_text_config()._attn_implementation) != attention:  # `transformers` only warns
            raise ConfigError(f"engine.attention={attention}: a {type(model).__name__} has {used} only; leave it auto")
    model.eval()


def _cast(model: Any, dtype: torch.dtype) -> None:
    """The model in that type, as `from_pretrained` would load it: buffers that no checkpoint holds stay as they are.
    Rounded to bf16, the frequencies of rotary positions are off by whole turns after a few hundred tokens."""
    saved = model.state_dict().keys()
    exact = {name: b for name, b in model.named_buffers() if name not in saved}
    model.to(dtype=dtype)
    for name, buffer in exact.items():
        owner, _, attribute = name.rpartition(".")
        setattr(model.get_submodule(owner), attribute, buffer)


#: Tokens in the cache of a row while passes are timed.
MADE_UP = 1024


@torch.inference_mode()
def pass_timer(model: HFModel, rows: int, cached: int = MADE_UP) -> Callable[[int], float]:
    """A function that makes one verification pass of a given width over `rows` rows that each hold `cached` made-up
    tokens, and returns its seconds."""
    cache = RaggedCache()
    cache.begin_prompt([1] * rows, 1, capacity=cached + MAX_PACKED)
    first = torch.zeros((rows, 1), dtype=torch.int64)
    model.verify(first, first, None, cache)
    cache.lengths[:] = cached  # zeros in the cache cost what keys and values cost

    @torch.inference_mode()
    def run(width: int) -> float:
        tokens = torch.zeros((rows, width), dtype=torch.int64)
        mask = torch.ones((rows, 1, width, cached + width), dtype=torch.bool)
        begun = perf_counter()
        cache.begin(width)
        logits = model.verify(tokens, tokens + cached, mask if width > 1 else None, cache)
        logits.argmax(-1).tolist()
        return perf_counter() - begun

    return run
