"""Fixtures shared by test files: tiny random checkpoints and targets on them, made once a session."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from models import SimpleTarget


def pytest_configure() -> None:
    """Time is no property: on a busy machine everything is slow."""
    with contextlib.suppress(ImportError):  # environments with Ray or vLLM need not have it
        from hypothesis import HealthCheck, settings

        settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.load_profile("busy")


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the current one, with the toys registered: where commands run."""
    from toys import register_toys

    register_toys()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True, scope="session")
def _home_of_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Nothing a test does is kept in the user's own folder, nor read from there."""
    os.environ["HSDKIT_HOME"] = str(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny random checkpoint, by the name of its architecture (`models.ARCHITECTURES`)."""
    from models import make

    return cache(lambda architecture: make(architecture, tmp_path_factory.mktemp(architecture)))


@pytest.fixture(scope="session")
def random_target(checkpoint: Callable[[str], Path]) -> Callable[[str], SimpleTarget]:
    """A target without end tokens on such a checkpoint."""
    from models import SimpleTarget

    return cache(lambda architecture: SimpleTarget(checkpoint(architecture), eos_ids=frozenset()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """HSDKIT_HOME of one test, with the environment of the fake library (`heavy`) ready in it."""
    from heavy import library, make_ready

    made = tmp_path / "home"
    monkeypatch.setenv("HSDKIT_HOME", str(made))
    made.mkdir()
    make_ready(library(made).environment)
    return made
