"""The report of a folder of results: tables as Markdown, CSV and LaTeX, plots, and one page of HTML with all of it."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hsdkit.errors import DocumentError, OutputError
from hsdkit.files import make_folder, write_whole
from hsdkit.study import evaluated, fates
from hsdkit.study.evaluated import Evaluated
from hsdkit.study.fingerprint import relevant
from hsdkit.study.groups import by_document, by_group, by_prefill_share, group_names
from hsdkit.study.plots import MATPLOTLIB, Plot, draw, draw_bars
from hsdkit.study.records import CellRecord, PageRecord, Store
from hsdkit.study.runs import flat
from hsdkit.study.statistics import RESAMPLES, SEED
from hsdkit.study.tables import Table, cells_table, to_csv, to_latex, to_markdown


@dataclass(frozen=True, slots=True)
class Content:
    """All that a report shows. `about` are facts in (name, value) pairs, `notes` what its reader should know."""

    title: str
    tables: dict[str, Table]
    plots: tuple[Plot, ...] = ()
    about: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def read_folder(folder: Path) -> Content:
    """The content for a folder of `hsdkit sweep` or `hsdkit eval`. Raises `DocumentError` when it is neither."""
    if (folder / "sweep.json").exists():
        store = Store(folder)
        about = store.about()
        return sweep_content(str(about.get("study") or "") or folder.name, about["axes"], store.cells())
    if (folder / evaluated.NAME).exists():
        return evaluation_content(folder.name, evaluated.read(folder))
    raise DocumentError(
        f"{folder}: holds no results of `hsdkit sweep` (sweep.json) or `hsdkit eval` ({evaluated.NAME}); "
        "reports of single runs are made by `hsdkit run --report`"
    )


def sweep_content(title: str, axes: Sequence[str], records: Sequence[CellRecord]) -> Content:
    tables = {"cells": cells_table(axes, records, "All cells")}
    tables |= {n: t for n, made in _GROUPED.items() if (t := made(axes, records)) is not None}
    tables |= {f"by_{name}": table for name, table in by_group(axes, records).items()}
    tables |= {f"drafts_by_{n}": t for n, made in _fates(records).items() if (t := made(axes, records)) is not None}
    notes = dict.fromkeys(n for r in records for n in r.notes)
    plots = tuple(draw(axes, records)) if MATPLOTLIB.installed else ()
    return Content(title, tables, plots, tuple(_facts(records)), (*_no_plots(), *notes))


def evaluation_content(title: str, found: Evaluated) -> Content:
    shown = found.bars if MATPLOTLIB.installed else {}
    plots = tuple(draw_bars(name, found.tables[name].title, rows) for name, rows in shown.items())
    return Content(title, found.tables, plots, found.about, (*(_no_plots() if found.bars else ()), *found.notes))


def _no_plots() -> tuple[str, ...]:
    return () if MATPLOTLIB.installed else (f'no plots: they need matplotlib: pip install "{MATPLOTLIB.install}"',)


_GROUPED = {"by_document": by_document, "by_prefill_share": by_prefill_share}


def _fates(records: Sequence[CellRecord]) -> dict[str, Callable[..., Table | None]]:
    """What divides drafts: the label of the region, the document where there are several, a benchmark's groups."""
    found: dict[str, Callable[..., Table | None]] = {"region": fates.by_label}
    if len({p.document for r in records for p in r.pages}) > 1:
        found["document"] = partial(fates.by_part, name="document", part=lambda p: Path(p.document).name)
    for name in group_names(records):
        found[name] = partial(fates.by_part, name=name, part=partial(_group, name))
    return found


def _group(name: str, page: PageRecord) -> str | None:
    return page.groups.get(name)


def _facts(records: Sequence[CellRecord]) -> list[tuple[str, str]]:
    """What all measured cells have in common: documents, settings, versions, machine."""
    measured = [r for r in records if r.pages]
    if not measured:
        return []
    facts = [("pages", str(max(len(r.pages) for r in measured))), ("rounds", str(measured[0].rounds))]
    facts += [("document", f"{Path(name).name} (sha256 {digest[:12]})") for name, digest in measured[0].inputs.items()]
    for name in ("versions", "machine"):
        facts += _common([getattr(r, name) for r in measured])
    dates = sorted(r.measured for r in measured)
    facts.append(("measured", dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"))
    facts.append(("bootstrap", f"{RESAMPLES} draws, seed {SEED}"))
    return facts + _common([flat(relevant(r.settings)) for r in measured])


def _common(found: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Names with one value for all."""
    first = found[0]
    return [(k, str(v)) for k, v in first.items() if all(o.get(k) == v for o in found)]


def write_report(folder: Path, content: Content) -> list[Path]:
    """Write NAME.md, .csv and .tex of each table, NAME.svg and .png of each plot, and index.html. Raises
    `OutputError`."""
    make_folder(folder)
    written = [write_whole(folder / "index.html", (html(content),))]
    for name, table in content.tables.items():
        for ending, made in ((".md", to_markdown), (".csv", to_csv), (".tex", to_latex)):
            written.append(write_whole(folder / f"{name}{ending}", (made(table),)))
    for plot in content.plots:
        for ending, image in ((".svg", plot.svg), (".png", plot.png)):
            written.append(_bytes(folder / f"{plot.name}{ending}", image))
    return written


def _bytes(path: Path, content: bytes) -> Path:
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as e:
        raise OutputError(f"{path}: cannot be written: {e.strerror}") from e
    return path


def html(content: Content) -> str:
    """One page that loads nothing and runs no script; all text is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("hsdkit.study", ""), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    images = [(p.title, base64.b64encode(p.svg).decode()) for p in content.plots]
    return environment.get_template("study.html.j2").render(content=content, images=images)
