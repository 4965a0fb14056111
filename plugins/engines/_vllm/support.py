"""Which vLLM this works with, which models vLLM has, and how it is started for one of them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Set
from typing import Any

from hsdkit.errors import ConfigError

#: Versions of vLLM: from the first on, below the second. What is used of it (a scheduler of one's own, draft tokens
#: from a class of one's own) is no stable interface, so the range holds what was tried.
OLDEST, BELOW = (0, 32), (0, 33)
SUPPORTED = f">={OLDEST[0]}.{OLDEST[1]},<{BELOW[0]}.{BELOW[1]}"

SCHEDULER = "hsdkit_plugins.engines.vllm_server.Scheduler"
PROPOSER = "hsdkit_plugins.engines.vllm_server.NoProposer"

#: The `model_type`s of our targets that vLLM's registry has an architecture for.
MODEL_TYPES = frozenset(
    {
        "deepseek_ocr2",
        "deepseek_vl_v2",
        "dots_ocr",
        "glm_ocr",
        "hunyuan_vl",
        "idefics3",
        "lighton_ocr",
        "paddleocr_vl",
        "qwen2_5_vl",
        "qwen3_vl",
        "unlimited_ocr",
    }
)


def version_problem(version: str) -> str:
    """Why this version of vLLM cannot be used; "" when it can."""
    found = re.match(r"v?(\d+)\.(\d+)", version)
    number = (int(found[1]), int(found[2])) if found else None
    if number is not None and OLDEST <= number < BELOW:
        return ""
    return (
        f"vLLM {version or 'of an unknown version'}: hsdkit works with vllm{SUPPORTED}; its scheduler is built on "
        f'parts of vLLM that change between versions: pip install "vllm{SUPPORTED}"'
    )


def engine_arguments(draft_tokens: int) -> dict[str, Any]:
    """What any vLLM engine needs to verify drafts, by the names of `vllm.EngineArgs`.

    Sampling defaults of a checkpoint are left out (`generation_config`): every request says what it needs.
    """
    return {
        "scheduler_cls": SCHEDULER,
        "speculative_config": {"method": "custom_class", "model": PROPOSER, "num_speculative_tokens": draft_tokens},
        "generation_config": "vllm",
        "limit_mm_per_prompt": {"image": 1},
    }


def config_overrides(config: Mapping[str, Any], target: str) -> dict[str, Any]:
    """What vLLM has to read differently in a checkpoint's config.json (`hf_overrides`) to compute what it says.

    M-RoPE deals the frequencies of a head out to the three axes of positions in sections. transformers goes round the
    axes for any number of sections; vLLM takes three, or deals the frequencies out one by one, which is the same as
    sections of one. Raises `ConfigError` for what is neither.
    """
    rope = (config.get("text_config") or {}).get("rope_parameters") or {}
    sections = rope.get("mrope_section") or ()
    if len(sections) <= 3:
        return {}
    if set(sections) != {1}:
        raise ConfigError(
            f"target {target!r}: its checkpoint has {len(sections)} mrope sections ({sections}), and vLLM takes three, "
            "or any number of size 1: use engine=transformers"
        )
    dealt = [len(range(axis, len(sections), 3)) for axis in range(3)]
    return {"text_config": {"rope_parameters": {"mrope_section": dealt, "mrope_interleaved": True}}}


def server_command(arguments: Mapping[str, Any]) -> str:
    """One line that starts a server with these arguments of `vllm.EngineArgs`. (The `vllm` command does the same, but
    fails in installations for CPUs.)"""
    words = ["python", "-m", "vllm.entrypoints.openai.api_server"]
    for name, value in arguments.items():
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            words.append(flag if value else "--no-" + flag[2:])
        else:
            words += [flag, json.dumps(value) if isinstance(value, (dict, list)) else str(value)]
    return shlex.join(words)


def check_model_types(target: str, model_types: Set[str]) -> None:
    """Raises `ConfigError` for a target whose model vLLM has not."""
    if not model_types & MODEL_TYPES:
        kinds = ", ".join(sorted(model_types)) or "any"
        raise ConfigError(
            f"target {target!r} (model type {kinds}) is not in the registry of vLLM {SUPPORTED}: use "
            "engine=transformers, or a target that is: those of model types " + ", ".join(sorted(MODEL_TYPES))
        )
