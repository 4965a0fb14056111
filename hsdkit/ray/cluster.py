"""Connecting to a Ray cluster for the time of a run, or starting one on this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator, Mapping

from hsdkit.errors import ConfigError, PluginError


@contextlib.contextmanager
def connected(address: str | None = None) -> Iterator[list[Mapping[str, float]]]:
    """The resources (`CPU`, `GPU`) of each living node of the cluster at `address`.

    Without an address: the cluster that `RAY_ADDRESS` names or that runs on this machine, else one is started here and
    stopped at the end ("local" always starts one). A program that has called `ray.init` keeps its connection. Raises
    `PluginError` where Ray is not installed, `ConfigError` where no cluster answers.
    """
    ray = _ray()
    if ray.is_initialized():
        yield _nodes(ray)
        return
    # What Ray's native part says of every pool of actors ("has constructor arguments in the object store") is no error.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        _reach(address)
        with _own_signals():
            ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="error")
    except (ValueError, RuntimeError, OSError, OverflowError) as e:
        raise ConfigError(f"--ray={address or ''}: no Ray cluster answers: {' '.join(str(e).split())}") from e
    try:
        yield _nodes(ray)
    finally:
        ray.shutdown()


def _ray():  # type: ignore[no-untyped-def]
    try:
        import ray
        import ray.data
    except ImportError as e:
        raise PluginError(f"--ray needs Ray Data, not installed ({e}): pip install 'hsdkit[ray]'") from e
    return ray


def _nodes(ray) -> list[Mapping[str, float]]:  # type: ignore[no-untyped-def]
    return [node["Resources"] for node in ray.nodes() if node["Alive"]]


def _reach(address: str | None) -> None:
    """Raises `OSError` where nothing listens at HOST:PORT: Ray itself would try for minutes."""
    if match := re.fullmatch(r"([\w.-]+):([0-9]+)", address or ""):
        socket.create_connection((match[1], int(match[2])), timeout=10).close()


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """`ray.init` replaces the handler of SIGTERM, with which a run ends in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
