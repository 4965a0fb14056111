"""What fits into memory: read off the model and the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hsdkit_plugins.engines import memory
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from models import SimpleTarget


def test_half_of_what_is_free_is_for_keys_and_values(
    random_target: Callable[[str], SimpleTarget], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = TransformersEngine(TransformersConfig(), random_target("qwen3_vl")).model
    assert memory.token_bytes(model) == 3 * 2 * 2 * 16 * 4  # layers, keys and values, heads, size, bytes
    monkeypatch.setattr(memory, "_available", lambda: 768 * 2000)
    monkeypatch.setattr(memory, "_left_of_group", lambda: None)
    assert memory.affordable_tokens(model) == 1000
    monkeypatch.setattr(memory, "_left_of_group", lambda: 768 * 200)
    assert memory.affordable_tokens(model) == 100
    monkeypatch.setattr(memory, "_free_bytes", lambda device: None)
    assert memory.affordable_tokens(model) == sys.maxsize


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory.max": "1000\n", "memory.current": "400\n"}, 600),
        ({"memory.max": "max\n", "memory.current": "400\n"}, None),
        ({"memory/memory.limit_in_bytes": "1000", "memory/memory.usage_in_bytes": "1400"}, 0),
        ({}, None),
    ],
)
def test_a_containers_limit_is_read(files: dict[str, str], left: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path("/sys/fs/cgroup")
    monkeypatch.setattr(memory, "_read", lambda path: files.get(str(path.relative_to(root)), ""))
    assert memory._left_of_group() == left
