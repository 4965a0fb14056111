"""`hsdkit serve-command`, and which vLLM and which targets it is for."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from commands import hsdkit
from hsdkit_plugins.engines._vllm.support import MODEL_TYPES, OLDEST, SUPPORTED, config_overrides, version_problem

from hsdkit.errors import ConfigError
from hsdkit.plugins import plugins

TARGETS = [c for c, plugin in plugins().components("target") if plugin.package == "hsdkit"]


def words(*arguments: str) -> list[str]:
    result = hsdkit("serve-command", *arguments)
    assert result.exit_code == 0, result.output
    (line,) = result.stdout.splitlines()
    return shlex.split(line)


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


@pytest.mark.parametrize("target", [c.name for c in TARGETS])
def test_every_target_that_vllm_has_gets_a_command(target: str) -> None:
    """All of ours are in its registry; nothing is fetched to say so."""
    command = words(f"target={target}")
    config = plugins().component("target", target).config()
    assert command[:3] == ["python", "-m", "vllm.entrypoints.openai.api_server"]
    assert option(command, "--model").endswith(config.model or "tiny_checkpoint")
    assert option(command, "--scheduler-cls") == "hsdkit_plugins.engines.vllm_server.Scheduler"
    speculative = json.loads(option(command, "--speculative-config"))
    assert speculative["method"] == "custom_class"
    assert speculative["num_speculative_tokens"] == 64
    assert ("--revision" in command) == (config.revision is not None)


def test_options_of_engine_and_target_go_into_the_command() -> None:
    command = words(
        "target=qwen3_vl",
        "target.model=/models/q wen",
        "engine.draft_tokens=32",
        "engine.dtype=bf16",
        "engine.arguments.max_model_len=16384",
        "engine.arguments.enforce_eager=true",
        "engine.arguments.enable_prefix_caching=false",
    )
    assert option(command, "--model") == "/models/q wen"
    assert "--revision" not in command  # it is one of the default model
    assert json.loads(option(command, "--speculative-config"))["num_speculative_tokens"] == 32
    assert option(command, "--dtype") == "bfloat16"
    assert option(command, "--max-model-len") == "16384"
    assert {"--enforce-eager", "--no-enable-prefix-caching"} < set(command)


def with_sections(*sections: int) -> dict[str, Any]:
    return {"text_config": {"rope_parameters": {"rope_type": "default", "mrope_section": [*sections]}}}


@pytest.mark.parametrize("number", [4, 15, 16, 17])
def test_sections_of_one_are_dealt_out_by_vllm_as_they_are_here(number: int) -> None:
    """What each frequency's axis is in `transformers` (Qwen2.5-VL's rotary embedding), and in vLLM's."""
    rope = config_overrides(with_sections(*[1] * number), "x")["text_config"]["rope_parameters"]
    _, height, width = rope["mrope_section"]
    assert rope["mrope_interleaved"]
    assert sum(rope["mrope_section"]) == number
    theirs = [1 if i % 3 == 1 and i < 3 * height else 2 if i % 3 == 2 and i < 3 * width else 0 for i in range(number)]
    assert theirs == [i % 3 for i in range(number)]


def test_three_sections_are_left_as_they_are_and_what_vllm_has_not_is_refused() -> None:
    assert config_overrides({}, "x") == config_overrides(with_sections(16, 24, 24), "x") == {}
    with pytest.raises(ConfigError, match=r"target 'x': its checkpoint has 4 mrope sections"):
        config_overrides(with_sections(2, 2, 2, 2), "x")


def test_the_embedded_models_server_is_told_its_sections() -> None:
    overrides = json.loads(option(words("target=tiny"), "--hf-overrides"))
    assert overrides["text_config"]["rope_parameters"] == {"mrope_section": [6, 5, 5], "mrope_interleaved": True}
    assert "--hf-overrides" not in words("target=qwen2_5_vl")


def test_a_target_that_vllm_has_not_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from hsdkit_plugins.engines._vllm import support

    monkeypatch.setattr(support, "MODEL_TYPES", MODEL_TYPES - {"hunyuan_vl"})
    result = hsdkit("serve-command", "target=hunyuanocr")
    assert result.exit_code == 2
    assert "'hunyuanocr' (model type hunyuan_vl) is not in the registry of vLLM" in " ".join(result.output.split())


def test_an_engine_without_a_server_is_told() -> None:
    result = hsdkit("serve-command", "engine=transformers")
    assert result.exit_code == 2
    assert "has no server" in result.output


@pytest.mark.parametrize(
    ("version", "good"),
    [
        ("{}.{}.0", True),
        ("{}.{}.3rc1", True),
        ("{}.{}.0+cpu", True),
        ("0.1.0", False),
        ("9.0.0", False),
        ("dev", False),
    ],
)
def test_versions_beyond_those_tried_are_refused_with_those_that_work(version: str, good: bool) -> None:
    problem = version_problem(version.format(*OLDEST))
    assert (problem == "") == good
    assert good or SUPPORTED in problem


def test_the_extra_asks_for_the_versions_that_the_guard_lets_pass() -> None:
    from importlib.metadata import requires

    asked: Any = [r for r in requires("hsdkit") or () if "extra ==" in r and "'vllm'" in r.replace('"', "'")]
    (vllm,) = [r for r in asked if r.startswith("vllm")]
    assert set(vllm.split(";")[0].strip().removeprefix("vllm").split(",")) == set(SUPPORTED.split(","))
