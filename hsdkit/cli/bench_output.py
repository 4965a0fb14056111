"""What `hsdkit bench` shows and writes: the table, the verdict on the outputs, bench.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from hsdkit.bench import BenchResult, Sample, Saturation, Spread, Summary, Throughput, throughputs
from hsdkit.bench.traces import PageTrace, traces
from hsdkit.cli.console import count, plain
from hsdkit.files import make_folder, write_whole
from hsdkit.results_json import dumps, stage_to_json
from hsdkit.versions import machine

_MOST_SHOWN = 5


def print_result(
    out: Console,
    result: BenchResult,
    summaries: Sequence[Summary],
    baseline: str,
    saturation: Saturation | None = None,
) -> None:
    """Speed, time split, throughput, whether the outputs agree, what failed."""
    if summaries:
        out.print(speed_table(summaries, result.rounds))
        out.print(time_table(summaries))
    filled = throughputs(saturation, [baseline]) if saturation else []
    if saturation and filled:
        out.print(throughput_table(filled, saturation.concurrency, baseline, summaries))
    for line in (*agreement(summaries, baseline), *saturated_agreement(filled, baseline)):
        out.print(line, soft_wrap=True)
    for note in result.notes[:_MOST_SHOWN]:
        out.print(f"note: {plain(note)}", soft_wrap=True)
    if len(result.notes) > _MOST_SHOWN:
        out.print(f"and {len(result.notes) - _MOST_SHOWN} more notes, in bench.json")
    warm = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result.warm_up.items())
    if warm:
        out.print(f"[dim]warm-up before anything was counted, seconds: {plain(warm)}[/]", soft_wrap=True)
    for failure in result.failures:
        where = failure.document + (f", page {failure.page}" if failure.page else "")
        out.print(f"[red]left out:[/] {plain(where)}: {plain(failure.side)}: {plain(failure.reason)}", soft_wrap=True)


def speed_table(summaries: Sequence[Summary], rounds: int) -> Table:
    pages = summaries[0].pages
    table = Table(
        title=f"{count(pages, 'page')}, {count(rounds, 'round')}",
        caption="Seconds: mean over pages of the median over rounds. Speedups: median over pages and rounds of the "
        "ratio within one round, with its quartiles. "
        "End to end counts rendering and drafting; decoding counts drafting and region crops.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("side", style="bold")
    for name in ("s/page", "decode s", "tokens/step", "AAL", "passes"):
        table.add_column(name, justify="right")
    compared = {name for s in summaries for name in s.speedups}
    references = [s.side for s in summaries if s.side in compared]
    for name in references:
        table.add_column(f"end to end\nvs {name}", justify="right")
        table.add_column(f"decoding\nvs {name}", justify="right")
    for s in summaries:
        figures = [f"{s.e2e:.3f}", f"{s.decode:.3f}", f"{s.tokens_per_step:.2f}", f"{s.aal:.2f}", f"{s.forwards:.0f}"]
        ratios = [spread_text(r) for n in references for r in s.speedups.get(n, (None, None))]
        table.add_row(s.side, *figures, *ratios)
    return table


def spread_text(spread: Spread | None) -> str:
    """`3.41 (3.30-3.55)`; a dash for a side compared with itself."""
    return f"{spread.median:.2f} ({spread.low:.2f}-{spread.high:.2f})" if spread else "-"


def time_table(summaries: Sequence[Summary]) -> Table:
    table = Table(
        title="Where the time goes, ms a page",
        caption="host: the part of decode outside the model. other: between the stages. "
        "generate's image encoding is in its prefill.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("side", style="bold")
    phases = list(summaries[0].phases)
    for phase in phases:
        table.add_column("(host)" if phase == "host" else phase, justify="right")
    for s in summaries:
        table.add_row(s.side, *(f"{1e3 * s.phases[p]:.1f}" for p in phases))
    return table


def throughput_table(
    filled: Sequence[Throughput], concurrency: int, baseline: str, summaries: Sequence[Summary]
) -> Table:
    table = Table(
        title=f"{concurrency} pages in flight",
        caption=f"Medians over rounds of all pages; vs {baseline}: of the ratio within one round, with its quartiles. "
        "Rendering and drafting count, beside decoding. One at a time: pages a second by the first table.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("side", style="bold")
    for name in ("pages/s", "tokens/s", f"pages/s\nvs {baseline}", "pages/s, one\nat a time"):
        table.add_column(name, justify="right")
    alone = {s.side: f"{1 / s.e2e:.3f}" for s in summaries}
    for t in filled:
        ratio = spread_text(t.against.get(baseline))
        table.add_row(t.side, f"{t.pages:.3f}", f"{t.tokens:.0f}", ratio, alone.get(t.side, "-"))
    return table


def saturated_agreement(filled: Sequence[Throughput], baseline: str) -> list[str]:
    """One line a side whose pages came out otherwise when several were in flight."""
    return [
        f"[yellow]{t.side}, pages in flight: {len(t.differing)} pages differ from {baseline}, one at a time[/]; "
        + plain(f"first: {t.differing[0][0]}, page {t.differing[0][1]}")
        for t in filled
        if t.differing
    ]


def agreement(summaries: Sequence[Summary], baseline: str) -> list[str]:
    """One line a side: identical outputs, or how many pages differ and where the first of them departs."""
    lines = []
    for s in summaries:
        if s.side == baseline and not s.differing:
            continue
        if not s.differing:
            lines.append(f"[green]{s.side}: output identical to {baseline}, token for token, on all pages[/]")
            continue
        document, page, first = s.differing[0]
        lines.append(
            f"[yellow]{s.side}: {len(s.differing)} of {s.pages} pages differ from {baseline}[/]; first: "
            + plain(f"{document}, page {page}, after {first.at} tokens: {first.other!r} instead of {first.baseline!r}")
        )
    return lines


def write_json(
    folder: Path,
    result: BenchResult,
    summaries: Sequence[Summary],
    settings: dict[str, Any],
    versions: dict[str, str],
    inputs: dict[str, str],
    saturation: Saturation | None = None,
) -> Path:
    """Write bench.json: everything the tables are made of; `inputs` are digests of the documents. Raises
    `OutputError`."""
    content = {
        "settings": settings,
        "versions": versions,
        "machine": machine(),
        "inputs": inputs,
        "rounds": result.rounds,
        "interrupted": result.interrupted,
        "warm_up_seconds": result.warm_up,
        "sides": [_summary_json(s) for s in summaries],
        "samples": [_sample_json(s) for s in result.samples],
        "saturated": saturation and asdict(saturation),
        "failures": [asdict(f) for f in result.failures],
        "notes": list(result.notes),
    }
    make_folder(folder)
    head = json.dumps(content, indent=1, ensure_ascii=False, default=str).removesuffix("\n}")
    lines = ",\n".join(dumps(_trace_json(t)) for t in traces(result.samples))  # hundreds of steps: a page a line
    return write_whole(folder / "bench.json", (head, ',\n "traces": [\n', lines, "\n ]\n}\n"))


def _summary_json(s: Summary) -> dict[str, Any]:
    found = asdict(s)
    found["speedups"] = {n: {"e2e": asdict(a), "decode": asdict(b)} for n, (a, b) in s.speedups.items()}
    found["differing"] = [{"document": d, "page": p, **asdict(first)} for d, p, first in s.differing]
    return found


def _trace_json(t: PageTrace) -> dict[str, Any]:
    stages = [stage_to_json(stage) for stage in t.stages]
    at = {"document": t.document, "page": t.page, "side": t.side}
    return at | {"draft": t.draft, "rounds": list(t.rounds), "stages": stages}


def _sample_json(s: Sample) -> dict[str, Any]:
    return {
        "document": s.document,
        "page": s.page,
        "round": s.round,
        "side": s.side,
        "e2e": s.e2e,
        "decode": s.decode,
        "render": s.render,
        "draft": s.draft,
        "stages": {stage.name: asdict(stage.times) for stage in s.output.stages},
        "tokens": len(s.output.tokens),
        "steps": sum(stage.steps for stage in s.output.stages),
        "accepted": sum(stage.accepted for stage in s.output.stages),
        "emitted": sum(step.emitted for stage in s.output.stages for q in stage.sequences for step in q.steps),
        "forwards": sum(stage.forwards for stage in s.output.stages),
        "finish_reason": s.output.finish_reason,
        "same": s.difference is None,
    }
