"""What `hsdkit whatif` shows: the recording, the costs, a table a machine, what to know about the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from hsdkit.cli.console import count, plain
from hsdkit.roofline import BYTES, Device, Machine, Prediction, Records, Shape, SideWork, speedup_of_sums
from hsdkit.roofline.steps import forwards_agree


def print_recording(out: Console, records: Records, shape: Shape, sides: Sequence[SideWork], prompt: int) -> None:
    pages = len({(p.document, p.page) for p in records.pages})
    out.print(
        f"[bold]{plain(shape.name)}[/]: {_scaled(shape.weights)} parameters. From the recorded steps of "
        f"{count(pages, 'page')}: {sides[0].tokens} tokens, {prompt} tokens of prompt a page",
        soft_wrap=True,
    )


def print_machine(
    out: Console, shape: Shape, found: Sequence[Prediction], machine: Machine, dtype: str, same: bool
) -> None:
    """`same`: the recording was made with this model, on a machine like this one."""
    out.print(time_table(found, machine, dtype, same))
    if isinstance(machine, Device):
        peak, bandwidth = machine.peak(dtype) / 1e12, machine.bandwidth / 1e9
        if (needed := shape.weights * BYTES[dtype]) > machine.memory:
            out.print(
                f"[yellow]its weights alone take {needed / 1e9:.0f} GB, and one {machine.name} has "
                f"{machine.memory / 1e9:.0f}[/]"
            )
        out.print(
            f"[dim]{machine.name}: {peak:.0f} TFLOP/s in {dtype}, {bandwidth:.0f} GB/s, so computing binds above "
            f"{machine.ridge(dtype):.0f} FLOP/byte ({machine.source})[/]",
            soft_wrap=True,
        )


def cost_table(found: Sequence[Prediction], dtype: str) -> Table:
    table = Table(
        title=f"Verification passes, in {dtype}",
        caption="In brackets: over the baseline's. Padding of rows is computed, and counted.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("side", style="bold")
    for name in ("passes", "FLOP", "bytes", "FLOP/byte"):
        table.add_column(name, justify="right")
    base = found[0]
    for p in found:
        passes, flops, moved = p.side.forwards, p.cost.flops, p.cost.bytes
        ratios = [_over(passes, base.side.forwards), _over(flops, base.cost.flops), _over(moved, base.cost.bytes)]
        shown = [str(passes), _scaled(flops), _scaled(moved)]
        cells = [f"{s} ({r})" if p is not base else s for s, r in zip(shown, ratios, strict=True)]
        table.add_row(_name(p), *cells, f"{p.cost.intensity:.2f}")
    return table


def time_table(found: Sequence[Prediction], machine: Machine, dtype: str, same: bool) -> Table:
    table = Table(
        title=f"Predicted seconds on {plain(machine.name)}",
        caption="passes: verification in the model alone. prompts: image and prefill, of crops too. recorded: drafting "
        "and the host's part of decoding, as the recording has them. Speedups over the baseline: of the passes alone; "
        "of decoding (passes, recorded, prompts of crops); end to end, without rendering.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("side", style="bold")
    for column in ("passes", "prompts", "recorded", "speedup\npasses", "decoding", "end to end"):
        table.add_column(column, justify="right")
    published = isinstance(machine, Device)
    if published:
        table.add_column("of sums\n(paper)", justify="right")
        table.add_column("bound by", justify="right")
    if same:
        table.add_column("measured\npasses", justify="right")
        table.add_column("error", justify="right")
        table.add_column("measured\nspeedup", justify="right")
    for p in found:
        cells = [_seconds(p.model), _seconds(prompt_seconds(p)), _seconds(p.side.draft + p.side.host)]
        cells += [f"{b / o:.2f}" if o else "-" for b, o in _ratios(found[0], p)]
        if isinstance(machine, Device):
            cells.append(f"{speedup_of_sums(found[0].cost, p.cost, machine, dtype):.2f}")
            cells.append("computing" if p.cost.intensity > machine.ridge(dtype) else "memory")
        if same:
            cells += _measured_cells(found[0], p)
        table.add_row(_name(p), *cells)
    return table


def prompt_seconds(p: Prediction) -> float:
    return p.page.encode + p.page.prefill + p.before.encode + p.before.prefill


def measured(p: Prediction) -> float | None:
    """Recorded seconds of the verification passes, None for a side that was not recorded."""
    return p.side.measured_page.decode + p.side.measured_before.decode if p.side.recorded else None


def _measured_cells(base: Prediction, p: Prediction) -> list[str]:
    took, plain_took = measured(p), measured(base)
    if not took:
        return ["-", "-", "-"]
    return [_seconds(took), f"{100 * (p.model / took - 1):+.0f}%", f"{plain_took / took:.2f}" if plain_took else "-"]


def _ratios(base: Prediction, p: Prediction) -> list[tuple[float, float]]:
    return [(base.model, p.model), (base.decode, p.decode), (base.e2e, p.e2e)]


def figures(found: Sequence[Prediction], machine: Machine, dtype: str, same: bool) -> dict[str, Any]:
    """The same as numbers."""
    base = found[0]
    sides = []
    for p in found:
        names = ("passes", "decoding", "end_to_end")
        sides.append(
            {
                "side": p.side.name,
                "recorded": p.side.recorded,
                "forwards": p.side.forwards,
                "tokens": p.side.tokens,
                "flops": p.cost.flops,
                "bytes": p.cost.bytes,
                "intensity": p.cost.intensity,
                "seconds": {
                    "passes": p.model,
                    "prompts": prompt_seconds(p),
                    "draft": p.side.draft,
                    "host": p.side.host,
                    "decoding": p.decode,
                    "end_to_end": p.e2e,
                },
                "speedup": {n: b / o if o else None for n, (b, o) in zip(names, _ratios(base, p), strict=True)},
                "measured_passes": measured(p) if same else None,
            }
        )
        if isinstance(machine, Device):
            sides[-1]["speedup_of_sums"] = speedup_of_sums(base.cost, p.cost, machine, dtype)
    source = machine.source if isinstance(machine, Device) else "measured"
    return {"device": machine.name, "dtype": dtype, "source": source, "sides": sides}


def notes_of(
    records: Records, shape: Shape, sides: Sequence[SideWork], other: bool, scaled: bool, elsewhere: bool
) -> list[str]:
    """What a reader of the figures has to know. `other`: another model than the recorded one; `scaled`: with prompts of
    another length; `elsewhere`: on another device than this machine."""
    found = [f"left out of the costs: {', '.join(shape.left_out)}"] if shape.left_out else []
    if elsewhere and records.max_packed == "auto":
        found.append(
            "steps were as wide as paid where they were recorded (max_packed=auto); for a GPU, record with "
            "verifier.max_packed=128"
        )
    if other:
        found.append("acceptance and number of tokens are the recorded model's: another tokenizer, or another reading")
        found[-1] += " of the page, changes both"
        if not scaled:
            found.append("prompts are as long as recorded: prompt=N says how many tokens a page is to this model")
    if not sides[0].recorded:
        found.append("plain decoding was not recorded: it is the same tokens, one a pass, without time on the host")
    if records.skipped:
        found.append(f"{count(records.skipped, 'page')} of the recording failed and are left out")
    odd = sum(not forwards_agree(s, records.max_rows) for p in records.pages for s in p.stages)
    if odd:
        found.append(f"{count(odd, 'stage')} counted other passes than its steps make: passes beside them are left out")
    if any(p.side == "vsd" for p in records.pages):
        found.append("vsd: the passes of its smaller model are left out")
    return found


def _name(p: Prediction) -> str:
    return plain(p.side.name) + ("" if p.side.recorded else " (derived)")


def _over(value: float, base: float) -> str:
    return f"x{value / base:.3g}" if base else "-"


def _seconds(value: float) -> str:
    return f"{value:.3g}"


def _scaled(value: float) -> str:
    for size, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"
