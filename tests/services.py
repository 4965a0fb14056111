"""The service for tests: with toys, in process or in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from fastapi.testclient import TestClient
from toys import TOY, blank_pdf, toy_registry

from hsdkit.config import compose
from hsdkit.pipeline import Pipeline
from hsdkit.service.access import Access
from hsdkit.service.app import create_app
from hsdkit.service.counting import Counting
from hsdkit.service.limits import Limits
from hsdkit.service.service import Service


@dataclass
class Running:
    service: Service
    client: TestClient
    folder: Path

    def post(self, path: str, file: bytes | Path, name: str = "a.pdf", **fields: str) -> httpx.Response:
        data = file.read_bytes() if isinstance(file, Path) else file
        return self.client.post(path, files={"file": (name, data)}, data=fields)

    def ended(self, job: str) -> dict[str, Any]:
        """The facts of a job once it is over."""
        for _ in range(400):
            facts: dict[str, Any] = self.client.get(f"/v1/jobs/{job}").json()
            if facts["status"] not in ("queued", "running"):
                return facts
            time.sleep(0.02)
        raise AssertionError(f"still {facts}")

    def events(self, job: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.client.get(f"/v1/jobs/{job}/events").text.splitlines()]


class KeptCounting(Counting):
    """One for all tests: its process takes a second to start."""

    def start(self) -> None:
        """When it is needed."""

    def close(self) -> None:
        """With this process."""


@cache
def kept_counting() -> Counting:
    registry = toy_registry()
    return KeptCounting(compose(TOY, registry=registry))


@contextmanager
def running(
    folder: Path, *overrides: str, limits: Limits | None = None, token: str | None = None, urls: bool = False
) -> Iterator[Running]:
    """A service with toys; ready."""
    registry = toy_registry()
    pipeline = Pipeline(compose([*TOY, *overrides], registry=registry), registry=registry)
    service = Service(pipeline, folder / "jobs", limits or Limits(grace_seconds=5), urls=urls, counting=kept_counting())
    app = create_app(service, Access(token, loopback=True))
    with TestClient(app, base_url="http://127.0.0.1:8471") as client:
        for _ in range(500):
            if service.status != "loading":
                break
            time.sleep(0.01)
        yield Running(service, client, folder)


def pdf(folder: Path, pages: int = 1, name: str = "a.pdf") -> Path:
    return blank_pdf(folder / name, pages)


@contextmanager
def process(folder: Path, *arguments: str, before: str = "") -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`hsdkit serve` with toys as a process of its own, and its address."""
    code = f"import toys; toys.register_toys()\n{before}\nfrom hsdkit.cli import main; main()"
    command = [sys.executable, "-c", code, "serve", *TOY, "preparing=0", "--port", "0", *arguments]
    (folder / "tmp").mkdir()
    env = {
        **os.environ,
        "TMPDIR": str(folder / "tmp"),
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
    }
    server = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        said = server.stderr.readline()
        found = re.search(r"http://\S+?(?=,)", said)
        assert found, said + server.stderr.read()
        wait_ready(found[0])
        yield server, found[0]
    finally:
        server.kill()
        server.communicate()


def wait_ready(address: str) -> None:
    for _ in range(600):
        try:
            if httpx.get(f"{address}/v1/health").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError("the service did not become ready")
