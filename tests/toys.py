"""Throw-away components, registered in process as any plugin would be: no model, no weights, milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pypdfium2 as pdfium

from hsdkit import hookimpl
from hsdkit.components import Component, Requirement
from hsdkit.errors import DrafterError
from hsdkit.plugins import Plugins, plugins
from hsdkit.protocols import DecodeSettings, Verdict
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.results import SequenceResult, StageResult, StageTimes, Step


@dataclass(frozen=True)
class ToyDrafterConfig:
    """`behave` is what it does to every page; `seconds` is what it says it expects to take, null to say nothing."""

    behave: Literal["well", "refuse", "crash", "garbage", "half"] = "well"
    seconds: float | None = None


class ToyDrafter:
    name = "toy"

    def __init__(self, config: ToyDrafterConfig) -> None:
        self.config = config
        self.drafted: list[int] = []
        if config.seconds is not None:
            self.expected_seconds = lambda page: config.seconds

    def draft(self, page: Any) -> Any:
        self.drafted.append(page.number)
        good = Region(Box(0, 0, 10, 10), Label.TEXT, "drafted")
        match self.config.behave:
            case "refuse":
                raise DrafterError("the page is upside down")
            case "crash":
                raise ZeroDivisionError("division by zero")
            case "garbage":
                return ["not a draft"]
            case "half":
                return Draft((good, Region(Box(0, 0, float("nan"), 1), Label.TEXT, "nowhere")), "toy")
        return Draft((good,), "toy", notes=("toy draft",))


@dataclass(frozen=True)
class ToyTargetConfig:
    model: str = "toy-checkpoint"


class ToyTarget:
    name, dpi, separator = "toy", 72, "\n\n"
    eos_ids = frozenset({0})

    def __init__(self, config: ToyTargetConfig) -> None:
        self.model = SimpleNamespace(
            config=SimpleNamespace(_name_or_path=config.model), dtype="torch.float32", device="cpu"
        )

    def tokenizer(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [ord(c) for c in text]}

    def clean(self, text: str, finish_reason: str = "eos") -> str:
        return text.replace("RAW ", "")

    def page_drafts(self, regions: Any, image: Any, read: Any = None) -> tuple[str, ...]:
        return tuple(r.text for r in regions)

    def regions(self, text: str, image: Any) -> tuple[Region, ...]:
        """It says where on the page it read what: in one place."""
        return (Region(Box(1, 2, 30, 40), Label.TEXT, text),) if text else ()


@dataclass(frozen=True)
class ToyEngineConfig:
    """`token` is the seconds of a plain step."""

    token: float = 0.01


class ToyEngine:
    def __init__(self, config: ToyEngineConfig, target: ToyTarget) -> None:
        self.config, self.target = config, target

    def load(self) -> None:
        assert self.target.model

    def expected_seconds(self, tokens: int) -> float:
        return tokens * self.config.token


@dataclass(frozen=True)
class ToyVerifierConfig:
    """`fail`, `interrupt`: page numbers at which it crashes, or the user presses Ctrl-C. `step`: seconds of a step."""

    tau: float = 1.0
    uses_draft: bool = True
    fail: tuple[int, ...] = ()
    interrupt: tuple[int, ...] = ()
    step: float = 0.01
    text: str | None = None
    matching: Literal["aligned", "paper"] = "aligned"

    def __post_init__(self) -> None:
        if not 0 < self.tau <= 1:
            raise ValueError(f"tau must be above 0 and at most 1, not {self.tau:g}")


class ToyVerifier:
    name = "toy"

    def __init__(self, config: ToyVerifierConfig) -> None:
        self.config, self.uses_draft = config, config.uses_draft
        self.settings = DecodeSettings(tau=config.tau)

    def verify(self, page: Any, draft: Draft, target: Any, engine: Any, on_text: Any = None) -> Verdict:
        if page.number in self.config.fail:
            raise RuntimeError("the toy\nbroke")
        if page.number in self.config.interrupt:
            raise KeyboardInterrupt
        text = f"RAW page {page.number} of {page.source}" if self.config.text is None else self.config.text
        if on_text:
            on_text(0, text)
        return Verdict(text, "eos", (self.stage(text, draft),))

    def stage(self, text: str, draft: Draft) -> StageResult:
        """Each step has four draft tokens right if there is a draft, none otherwise."""
        accepted = 4 if draft.regions else 0
        count = max(0, len(text) - 1) // (accepted + 1)
        steps = tuple(
            Step(8 * (accepted > 0), accepted, True, "toy" * (accepted > 0), self.config.step) for _ in range(count)
        )
        pieces = tuple(text[: 1 + count * (accepted + 1)])
        sequence = SequenceResult(tuple(map(ord, pieces)), text, "eos", steps, pieces, 10)
        return StageResult("page", (sequence,), StageTimes(0.01, 0.02, count * self.config.step), count)


class Toys:
    @hookimpl
    def hsdkit_components(self) -> Iterable[Component]:
        yield Component("drafter", "toy", "drafts one word", ToyDrafterConfig, ToyDrafter)
        yield Component("target", "toy", "reads nothing", ToyTargetConfig, ToyTarget)
        yield Component("engine", "toy", "runs nothing", ToyEngineConfig, ToyEngine)
        yield Component("verifier", "toy", "agrees", ToyVerifierConfig, ToyVerifier)
        yield Component(
            "drafter", "toy_missing", "lacks something", ToyDrafterConfig, ToyDrafter,
            (Requirement("surely_not_installed", "hsdkit[toys]"),),
        )  # fmt: skip


TOY = ["drafter=toy", "target=toy", "engine=toy", "verifier=toy"]


def toy_registry() -> Plugins:
    """Toys and nothing else."""
    registry = Plugins()
    registry.register(Toys(), "toys")
    return registry


@cache
def register_toys() -> None:
    """Make the toys known to this process, beside what is installed; for tests that go through the command line."""
    plugins().register(Toys(), "toys")


def blank_pdf(path: Path, pages: int = 1) -> Path:
    document = pdfium.PdfDocument.new()
    for _ in range(pages):
        document.new_page(200, 100)
    document.save(path)
    document.close()
    return path
