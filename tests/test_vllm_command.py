"""`hsdkit serve-command`, and which vLLM and which targets it is for."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from commands import hsdkit
from hsdkit_plugins.engines._vllm.support import MODEL_TYPES, OLDEST, SUPPORTED, version_problem

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
