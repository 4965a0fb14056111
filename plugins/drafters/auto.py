"""The text layer where it can be trusted, OCR of the image where not; the draft's notes say which and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from hsdkit_plugins.drafters.pdftext import PdfText, PdfTextConfig

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.documents import Page
from hsdkit.plugins import plugins
from hsdkit.protocols import Drafter
from hsdkit.regions import Draft


@dataclass(frozen=True)
class AutoConfig:
    """least_score: text layers trusted less than this (0..1) are read by OCR instead. ocr: the drafter for those pages,
    with its own default options; "none" leaves them without a draft."""

    least_score: float = 0.5
    ocr: str = "rapidocr"

    def __post_init__(self) -> None:
        if self.ocr in ("auto", "pdftext"):
            raise ValueError(f"ocr={self.ocr}: must be a drafter that reads images, such as rapidocr, or none")


class Auto:
    """Where there is no OCR, the draft of a page without a text layer is empty and says why."""

    name = "auto"

    def __init__(self, config: AutoConfig) -> None:
        self.config = config
        self._text = PdfText(PdfTextConfig(config.least_score))

    def draft(self, page: Page) -> Draft:
        verdict = self._text.judge(page)
        if verdict.score:
            draft = self._text.draft(page)
            return replace(draft, notes=("drafted from the text layer", *draft.notes))
        if self._ocr is None:
            return Draft((), self.name, 0.0, (f"no draft: {verdict.reason}, and {self._why_no_ocr}",))
        draft = self._ocr.draft(page)
        return replace(draft, notes=(f"drafted by {draft.drafter}: {verdict.reason}", *draft.notes))

    def expected_seconds(self, page: Page) -> float:
        """That of whichever drafter this page will get."""
        if self._text.judge(page).score:
            return self._text.expected_seconds(page)
        estimate = getattr(self._ocr, "expected_seconds", None)
        return estimate(page) if estimate else 0.0

    @cached_property
    def _ocr(self) -> Drafter | None:
        if self._why_no_ocr:
            return None
        built: Drafter = plugins().build("drafter", self.config.ocr)
        return built

    @cached_property
    def _why_no_ocr(self) -> str:
        if self.config.ocr == "none":
            return "drafter.ocr is none"
        install = plugins().component("drafter", self.config.ocr).install
        return f"drafter {self.config.ocr} is not installed ({install})" if install else ""


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "the PDF's text layer where it can be trusted, OCR where not"
    return [Component("drafter", "auto", summary, AutoConfig, Auto)]
