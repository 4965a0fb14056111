"""A hostile drafter as an installed plugin, so that processes that prepare pages have it, too."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from toys import TOY, Toys

from hsdkit.config import RunConfig, compose
from hsdkit.pipeline import Pipeline
from hsdkit.plugins import Plugins

#: Its drafts say which process made them. `harm` says what it does to which page; "FILE" in the place of a page is done
#: when a page of the file of that name is rendered.
PLUGIN = """
import ctypes, os, sys, time
from dataclasses import dataclass, field
from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.documents import Document
from hsdkit.errors import PluginError
from hsdkit.regions import Box, Draft, Label, Region

KEPT = []

def do(harm):
    if harm == "abort":
        os.abort()
    elif harm == "segfault":
        ctypes.string_at(0)
    elif harm == "exit":
        print("about to leave", file=sys.stderr, flush=True)
        os._exit(7)
    elif harm == "hang":
        time.sleep(1000)
    elif harm == "bomb":
        KEPT.append(bytearray(3_000_000_000))
    elif harm == "leak":
        KEPT.append(b"x" * 60_000_000)
    elif harm == "babble":
        for number in range(3, 20):
            try:
                os.write(number, b"X" * 1000)
            except OSError:
                pass
    elif harm == "refuse":
        raise PluginError("it has no heart for this")
    elif harm:
        raise AssertionError(harm)

@dataclass(frozen=True)
class HostileConfig:
    harm: dict = field(default_factory=dict)
    load: str = ""
    seconds: float = 0.0

class Hostile:
    name = "hostile"

    def __init__(self, config):
        self.config = config

    def load(self):
        do(self.config.load)
        page = Document.page
        def harmful(document, number):
            do(self.config.harm.get(document.name, ""))
            return page(document, number)
        Document.page = harmful

    def expected_seconds(self, page):
        return self.config.seconds

    def draft(self, page):
        do(self.config.harm.get(str(page.number), ""))
        print("a library talks")
        text = f"{os.getpid()} {'torch' in sys.modules} {page.number} of {page.source}"
        return Draft((Region(Box(0, 0, 10, 10), Label.TEXT, text),), self.name, notes=("fine", str(time.monotonic())))

@hookimpl
def hsdkit_components():
    return [Component("drafter", "hostile", "does harm", HostileConfig, Hostile)]
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the plugin for this test and the processes it starts, and no other."""
    information = folder / "hostile_toys-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile-toys\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[hsdkit]\nhostile = hostile_toys\n")
    (folder / "hostile_toys.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("HSDKIT_PLUGINS", "hostile-toys")


def registry(*plugins: object) -> Plugins:
    """The installed plugins, the toys, and these."""
    found = Plugins()
    found.discover()
    for number, plugin in enumerate([Toys(), *plugins]):
        found.register(plugin, f"toys{number}")
    return found


def pipeline(*overrides: str, plugins: Iterable[object] = ()) -> Pipeline:
    """A pipeline of toys whose drafter is the hostile one."""
    known = registry(*plugins)
    config: RunConfig = compose([*TOY, "drafter=hostile", "draft=always", *overrides], registry=known)
    return Pipeline(config, registry=known)
