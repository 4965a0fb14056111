"""Writes the report: a head, a fragment a page as it finishes, and the totals last (CSS puts them first).

Memory stays that of one page. A report cut short (Ctrl-C) is still a readable file without totals.
"""

from __future__ import annotations

import base64
import io
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from jinja2 import Environment, PackageLoader, StrictUndefined

from hsdkit.drafting_tally import by_label, together
from hsdkit.regions import OMITTED, Label
from hsdkit.rejections import REASONS, End
from hsdkit.report import figures, safe_html
from hsdkit.report.tokens import Origin, runs, shares
from hsdkit.results import PageResult, final_stage
from hsdkit.totals import Totals

if TYPE_CHECKING:
    from types import TracebackType

    from PIL.Image import Image

#: Longest side of an embedded page image in pixels, and its JPEG quality: about 100 kB a page.
_MOST_SIDE, _QUALITY = 1000, 72


@dataclass(slots=True)
class _Document:
    """What the totals at the end need of the pages before: a few numbers each."""

    totals: Totals = field(default_factory=Totals)
    origins: Counter[Origin] = field(default_factory=Counter)
    pages: list[dict[str, Any]] = field(default_factory=list)

    def add(self, page: PageResult, origins: dict[Origin, int]) -> None:
        self.totals += Totals.of(page)
        self.origins.update(origins)
        failed = page.error is not None
        self.pages.append({"number": page.number, "seconds": page.seconds, "failed": failed, "origins": origins})


class ReportWriter:
    """One document's report, `NAME.html`, written as pages arrive.

    `settings` is the composed configuration, `versions` what made the result; both are shown. Use as a context manager:
    leaving it writes the totals. Everything read from documents, drafters and models is escaped; the file holds no
    script and forbids any, and loads nothing.
    """

    def __init__(
        self,
        path: Path,
        source: str,
        settings: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        self._parts = _macros()
        self._settings, self._versions = dict(settings or {}), dict(versions or {})
        self._document = _Document()
        self._file: TextIO = path.open("w", encoding="utf-8", errors="replace", newline="\n")
        self._file.write(self._parts.head(Path(source).name or source))
        self._file.flush()

    def add(self, page: PageResult, image: Image | None) -> None:
        """Append one page; `image` is the page as the target saw it, None where it could not be rendered."""
        last = final_stage(page.stages)
        final = last.sequences if last else ()
        origins = shares(final)
        fates = together([by_label(page)])
        ended = {end for f in fates.values() for end in f.ends} - {End.UNKNOWN}
        self._document.add(page, origins)
        self._file.write(
            self._parts.page(
                page=page,
                picture=_data_url(image) if image else None,
                sequences=final,
                runs=runs,
                origins=origins,
                totals=Totals.of(page),
                timeline=figures.timeline(page),
                histogram=figures.histogram(page.stages),
                strip=figures.strip([step for s in final for step in s.steps]),
                rendered=safe_html.render(page.markdown),
                labels=_labels(page),
                omitted=OMITTED,
                drafter=page.draft.drafter,
                fates=fates,
                ends=[
                    end for end in (*REASONS, End.NOT_VERIFIED, End.TAKEN) if ended and (end in REASONS or end in ended)
                ],
            )
        )
        self._file.flush()

    def close(self, error: str | None = None) -> None:
        """Write the totals, and the error that ended the document if one did. Closing twice does nothing."""
        if self._file.closed:
            return
        settings = json.dumps(self._settings, indent=2, ensure_ascii=False, default=str)
        names = {kind: _name(self._settings.get(kind)) for kind in ("verifier", "drafter", "target", "engine")}
        self._file.write(self._parts.tail(self._document, names, settings, self._versions, error))
        self._file.close()

    def __enter__(self) -> ReportWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(None if error is None else str(error) or type(error).__name__)


def _macros() -> Any:
    """The template's macros `head`, `page` and `tail`."""
    env = Environment(
        loader=PackageLoader("hsdkit.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters["duration"] = duration
    return env.get_template("report.html.j2").module


def duration(seconds: float) -> str:
    """`1.24 s`, `86 ms`, `3 min 20 s`."""
    if seconds < 0.9995:
        return f"{seconds * 1e3:.0f} ms" if seconds >= 0.00995 else f"{seconds * 1e3:.1f} ms"
    if seconds < 99.95:
        return f"{seconds:.3g} s"
    return f"{round(seconds) // 60} min {round(seconds) % 60} s"


def _labels(page: PageResult) -> dict[Label, list[int]]:
    """The numbers of the draft's regions by label, in order of appearance."""
    found: dict[Label, list[int]] = {}
    for number, region in enumerate(page.draft.regions, 1):
        found.setdefault(region.label, []).append(number)
    return found


def _name(choice: Any) -> str:
    """The component's name in the composed configuration, "" where there is none."""
    return str(choice.get("name", "")) if isinstance(choice, Mapping) else str(choice or "")


def _data_url(image: Image) -> str:
    return "data:image/jpeg;base64," + base64.b64encode(small_jpeg(image, _MOST_SIDE, _QUALITY)).decode("ascii")


def small_jpeg(image: Image, most_side: int, quality: int) -> bytes:
    """The image as a JPEG file, no side longer than `most_side` pixels."""
    small = image.convert("RGB")
    small.thumbnail((most_side, most_side))
    out = io.BytesIO()
    small.save(out, "JPEG", quality=quality)
    return out.getvalue()
