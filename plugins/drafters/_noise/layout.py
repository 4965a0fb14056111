"""Layout noise: regions dropped, merged, split, moved in the reading order, and their boxes jittered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from hsdkit_plugins.drafters._noise.cuts import nearest_cut
from hsdkit_plugins.drafters._noise.lines import ROW
from hsdkit_plugins.drafters._noise.seeds import share

from hsdkit.regions import Box, Label, Region

if TYPE_CHECKING:
    import numpy as np

#: A random generator for a purpose.
Numbers: TypeAlias = Callable[[str], "np.random.Generator"]


@dataclass(frozen=True)
class LayoutNoise:
    """jitter: how far the edges of boxes are off (standard deviation), as a share of the box's width and height.
    merge: share of neighbours in reading order, both running text, that become one region.
    split: share of the regions with text that become two.
    drop: share of the regions that are missed.
    reorder: share of the regions that stand elsewhere in the reading order.
    """

    jitter: float = 0.0
    merge: float = 0.0
    split: float = 0.0
    drop: float = 0.0
    reorder: float = 0.0

    def __post_init__(self) -> None:
        for name in ("jitter", "merge", "split", "drop", "reorder"):
            share(f"layout.{name}", getattr(self, name))


def disturbed(regions: Sequence[Region], how: LayoutNoise, rng: Numbers, width: int, height: int) -> tuple[Region, ...]:
    """The regions of a `width` x `height` page with all of it, in the order of the fields but boxes last."""
    found = list(regions)
    if how.drop:
        gone = rng("drop").random(len(found)) < how.drop
        found = [r for r, lost in zip(found, gone, strict=True) if not lost]
    if how.merge:
        found = merged(found, how.merge, rng("merge"))
    if how.split:
        found = split(found, how.split, rng("split"))
    if how.reorder:
        found = reordered(found, how.reorder, rng("reorder"))
    if how.jitter:
        moves = rng("jitter")
        found = [replace(r, box=jittered(r.box, how.jitter, moves, width, height)) for r in found]
    return tuple(found)


def merged(regions: Sequence[Region], rate: float, rng: np.random.Generator) -> list[Region]:
    found: list[Region] = []
    for region, draw in zip(regions, rng.random(len(regions)).tolist(), strict=True):
        if found and draw < rate and _running(found[-1]) and _running(region):
            found[-1] = _one(found[-1], region)
        else:
            found.append(region)
    return found


def _running(region: Region) -> bool:
    return region.format == "text" and region.readable and region.label not in (Label.TABLE, Label.FORMULA)


def _one(a: Region, b: Region) -> Region:
    """Label and level are those of the first: a heading that swallowed its paragraph is a heading."""
    box = Box(min(a.box.x0, b.box.x0), min(a.box.y0, b.box.y0), max(a.box.x1, b.box.x1), max(a.box.y1, b.box.y1))
    both = a.label is b.label is Label.LIST
    text = f"{a.text.rstrip()}\n{b.text}" if both else f"{a.text.rstrip()} {' '.join(b.text.split())}"
    return replace(a, box=box, text=text)


def split(regions: Sequence[Region], rate: float, rng: np.random.Generator) -> list[Region]:
    draws = rng.random((len(regions), 2)).tolist()
    return [
        part
        for region, (draw, where) in zip(regions, draws, strict=True)
        for part in (_two(region, 0.2 + 0.6 * where) if draw < rate else (region,))
    ]


def _two(region: Region, at: float) -> tuple[Region, ...]:
    """The region cut at about that share of its text: between rows, items or words. What is one piece stays whole."""
    texts = _halves(region, at)
    if not region.readable or texts is None:
        return (region,)
    b = region.box
    y = b.y0 + b.height * len(texts[0]) / (len(texts[0]) + len(texts[1]))
    upper, lower = replace(b, y1=y), replace(b, y0=y)
    return replace(region, box=upper, text=texts[0]), replace(region, box=lower, text=texts[1])


def _halves(region: Region, at: float) -> tuple[str, str] | None:
    if region.format == "latex":
        return None
    if region.format == "html":
        rows = ROW.findall(region.text)
        if len(rows) < 2 or region.text.lower().count("<table") > 1:
            return None
        k = min(max(1, round(at * len(rows))), len(rows) - 1)
        return f"<table>{''.join(rows[:k])}</table>", f"<table>{''.join(rows[k:])}</table>"
    lines = region.text.split("\n")
    if len(lines) > 1:
        k = min(max(1, round(at * len(lines))), len(lines) - 1)
        return "\n".join(lines[:k]), "\n".join(lines[k:])
    cut = nearest_cut(region.text, at)
    return None if cut is None else (region.text[:cut].rstrip(), region.text[cut:])


def reordered(regions: Sequence[Region], rate: float, rng: np.random.Generator) -> list[Region]:
    """Each of the moved ones is put back at a place drawn at random, which may be its old one."""
    moves = rng.random(len(regions)) < rate
    found = [r for r, moved in zip(regions, moves, strict=True) if not moved]
    for region in (r for r, moved in zip(regions, moves, strict=True) if moved):
        found.insert(int(rng.integers(len(found) + 1)), region)
    return found


def jittered(box: Box, by: float, rng: np.random.Generator, width: int, height: int) -> Box:
    """Every edge moved on its own; the box stays on the page and keeps an area if it had one."""
    dx0, dy0, dx1, dy1 = (by * rng.standard_normal(4)).tolist()
    x0, x1 = sorted((box.x0 + dx0 * box.width, box.x1 + dx1 * box.width))
    y0, y1 = sorted((box.y0 + dy0 * box.height, box.y1 + dy1 * box.height))
    moved = Box(x0, y0, x1, y1).clamped(width, height)
    return moved if moved.area or not box.area else box
