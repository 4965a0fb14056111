"""A page's lines, tables and pictures as regions in reading order: the last step of every drafter that sees lines."""

from __future__ import annotations

from collections.abc import Sequence

from hsdkit_plugins.drafters._blocks import blocks_of, body_of, regions_of
from hsdkit_plugins.drafters._furniture import part_furniture
from hsdkit_plugins.drafters._lines import Line
from hsdkit_plugins.drafters._tables import Table

from hsdkit.reading_order import reading_order
from hsdkit.regions import Box, Label, Region

Piece = Line | Table | Box


def page_regions(
    lines: Sequence[Line], tables: Sequence[Table], pictures: Sequence[Box], height: float
) -> list[Region]:
    """Regions of a page `height` pixels high; running headers come first, footers last."""
    text, furniture = part_furniture(lines, height)
    pieces: list[Piece] = [*text, *tables, *pictures]
    top = [f for f in furniture if f.box.y1 < height / 2]
    bottom = [f for f in furniture if f.box.y1 >= height / 2]
    if not pieces:
        return [*top, *bottom]
    sizes = sorted(line.size for line in text) or [20.0]
    ordered = _ordered(pieces, gutter=0.35 * sizes[len(sizes) // 2])
    read = [p for p in ordered if isinstance(p, Line)]
    body = body_of(read) if read else None
    regions: list[Region] = []
    run: list[Line] = []
    for piece in [*ordered, None]:
        if isinstance(piece, Line):
            run.append(piece)
            continue
        if run and body:
            regions += regions_of(blocks_of(run, body), body, height)
            run = []
        if isinstance(piece, Table):
            regions.append(Region(piece.box, Label.TABLE, piece.html, "html"))
        elif isinstance(piece, Box):
            regions.append(Region(piece, Label.FIGURE))
    return [*top, *regions, *bottom]


def _ordered(pieces: Sequence[Piece], gutter: float) -> list[Piece]:
    """Pieces in reading order. Lines that a layout model puts in one area stay together: areas keep apart what found
    lines, which reach beyond their ink, do not."""
    areas: dict[Box, list[Piece]] = {}
    for piece in pieces:
        if isinstance(piece, Line) and piece.area is not None:
            areas.setdefault(piece.area, []).append(piece)
    units = [p for p in pieces if not (isinstance(p, Line) and p.area is not None)]
    boxes = [*areas, *(p if isinstance(p, Box) else p.box for p in units)]
    contents: list[list[Piece]] = [*map(_by_row, areas.values()), *([p] for p in units)]
    return [piece for i in reading_order(boxes, gutter) for piece in contents[i]]


def _by_row(lines: list[Piece]) -> list[Piece]:
    boxes = [line if isinstance(line, Box) else line.box for line in lines]
    return [lines[i] for i in reading_order(boxes)]
