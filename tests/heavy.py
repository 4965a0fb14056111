"""A drafter around a fake library whose worker is tests/data/fake_worker.py, and an environment that needs no pip."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hsdkit import hookimpl
from hsdkit.components import Component, Environment
from hsdkit.documents import Page
from hsdkit.errors import DrafterError
from hsdkit.regions import Box, Label, Region
from hsdkit.workers import HeavyDrafter, Library, Server, WorkerOptions
from hsdkit.workers.environments import MARKER, folder, python

SCRIPT = Path(__file__).parent / "data" / "fake_worker.py"

#: Stands in for `python -m venv DIR` and for the environment's own Python: makes itself the latter.
STAND_IN = """#!{python}
import os, shutil, sys
arguments = sys.argv[1:]
if arguments[:2] == ["-m", "venv"]:
    os.makedirs(arguments[2] + "/bin")
    shutil.copy(__file__, arguments[2] + "/bin/python")
elif "install" in arguments:
    print("Collecting fake==1.2")
    {pip}
elif arguments[0] == "-c":
    print("1.2")
"""


@dataclass(frozen=True)
class FakeConfig(WorkerOptions):
    """told: what the worker script is told, as JSON."""

    told: str = "{}"
    timeout: float = 10.0
    start_timeout: float = 10.0

    def options(self) -> dict[str, Any]:
        return dict(json.loads(self.told))


def fake_convert(native: Any, page: Page) -> list[Region]:
    return [Region(Box(0, 0, page.width, page.height), Label.TEXT, f"{native['text']} by {native['pid']}")]


def fake_ask(server: Server, file: Path, options: dict[str, Any]) -> Any:
    return server.upload("/draft", file, {"told": json.dumps(options)})


def fake_explain(error: str) -> str | None:
    return "get weights.bin with: fetch-weights" if "weights.bin" in error else None


def environment(home: Path, module: str = "surely_not_installed") -> Environment:
    requirements = home / "fake.txt"
    requirements.write_text("# pins\nfake==1.2  # the library\n", encoding="utf-8")
    return Environment("fake", requirements, module, "fake", "fake-serve")


def make_ready(made: Environment) -> None:
    """The environment as an installation leaves it: this Python, without packages."""
    place = folder(made)
    python(place).parent.mkdir(parents=True)
    python(place).symlink_to(Path(sys.executable).resolve())
    (place / MARKER).write_text('{"version": "1.2"}', encoding="utf-8")


def stand_in(folder: Path, pip: str = "pass") -> str:
    path = folder / "stand-in"
    path.write_text(STAND_IN.format(python=Path(sys.executable).resolve(), pip=pip))
    path.chmod(0o755)
    return str(path)


def library(home: Path, **changes: Any) -> Library:
    found = Library(environment(home), SCRIPT, fake_convert, fake_ask, fake_explain)
    return replace(found, **changes) if changes else found


class Heavy:
    """A plugin that brings the drafter `fake`."""

    def __init__(self, home: Path, **changes: Any) -> None:
        self.library = library(home, **changes)

    @hookimpl
    def hsdkit_components(self) -> Iterable[Component]:
        made = self.library.environment
        yield Component("drafter", "fake", "a fake", FakeConfig, self.library.drafter, environment=made)


def page(number: int = 1, text: str = "") -> Page:
    return Page(number, Image.new("RGB", (40, 30), f"#0000{number % 256:02x}"), "a.png")


def drafter(home: Path, told: dict[str, Any] | None = None, **options: Any) -> HeavyDrafter:
    return library(home).drafter(FakeConfig(told=json.dumps(told or {}), **options))


def text(made: HeavyDrafter, number: int = 1) -> str:
    return made.draft(page(number)).regions[0].text


def pid(made: HeavyDrafter, number: int = 1) -> int:
    return int(text(made, number).split()[-1])


def refusal(made: HeavyDrafter, number: int = 1) -> str:
    with pytest.raises(DrafterError) as caught:
        made.draft(page(number))
    assert "\n" not in str(caught.value)
    return str(caught.value)
