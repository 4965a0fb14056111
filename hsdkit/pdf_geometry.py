"""Where things are on a PDF page: points to page pixels, ruling lines and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from ctypes import byref, c_double, c_float, c_int
from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as c

from hsdkit.regions import Box

#: Paths read per page, and segments per path, in search of ruling lines: drawings have very many.
MAX_PATHS, MAX_SEGMENTS = 6_000, 400

#: A path thinner than this many points is a line, not an area.
RULE_POINTS = 3.0


_Matrix = tuple[float, float, float, float, float, float]
_IDENTITY: _Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Projection:
    """From PDF points (origin bottom left, not rotated) to page pixels (origin top left, as shown).

    `matrix` maps a point as `_apply` does; `turn` is the clockwise quarter turns the page is shown with; `width` and
    `height` are the page's pixels.
    """

    matrix: _Matrix
    turn: int
    width: int
    height: int

    @property
    def scale(self) -> float:
        """Pixels a point."""
        return math.hypot(self.matrix[0], self.matrix[1])

    def box(self, left: float, bottom: float, right: float, top: float) -> Box:
        x0, y0 = _apply(self.matrix, left, bottom)
        x1, y1 = _apply(self.matrix, right, top)
        return Box(min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1))


def projection_of(page: pdfium.PdfPage, rotate: int, width: int, height: int) -> Projection:
    """How PDFium shows the page, turned clockwise by `rotate` degrees more, in an image of that size.

    PDFium itself is asked where three corners of the image lie on the page: crop boxes and rotation may be inherited,
    and its box functions do not all know that.
    """
    x, y = c_double(), c_double()

    def point(dx: int, dy: int) -> tuple[float, float]:
        c.FPDF_DeviceToPage(page.raw, 0, 0, width, height, rotate // 90, dx, dy, byref(x), byref(y))
        return x.value, y.value

    origin, right, down = point(0, 0), point(width, 0), point(0, height)
    # Columns of the map from pixels to points; exactly two of the four numbers are not zero.
    a, b = (right[0] - origin[0]) / width, (right[1] - origin[1]) / width
    d, e = (down[0] - origin[0]) / height, (down[1] - origin[1]) / height
    area = a * e - b * d
    if not area:
        raise pdfium.PdfiumError("the page has no area")
    inverse = e / area, -b / area, -d / area, a / area
    x0 = -(inverse[0] * origin[0] + inverse[2] * origin[1])
    y0 = -(inverse[1] * origin[0] + inverse[3] * origin[1])
    return Projection((*inverse, x0, y0), (page.get_rotation() + rotate) // 90 % 4, width, height)


def read_objects(page: pdfium.PdfPage, projection: Projection) -> tuple[tuple[Box, ...], tuple[Box, ...]]:
    rules: list[Box] = []
    images: list[Box] = []
    paths = 0
    for handle, to_page in _objects(page):
        kind = c.FPDFPageObj_GetType(handle)
        if kind == c.FPDF_PAGEOBJ_IMAGE:
            bounds = _bounds(handle, to_page)
            if bounds:
                images.append(projection.box(*bounds).clamped(projection.width, projection.height))
        elif kind == c.FPDF_PAGEOBJ_PATH and paths < MAX_PATHS:
            paths += 1
            for line in _lines(handle, to_page):
                box = projection.box(*line).clamped(projection.width, projection.height)
                if max(box.width, box.height) > 4:
                    rules.append(box)
    return tuple(rules), tuple(b for b in images if b.area > 0)


def _objects(page: pdfium.PdfPage) -> Iterator[tuple[c.FPDF_PAGEOBJECT, _Matrix]]:
    """Page objects and those of its forms (two levels), each with the matrix to the page."""
    for i in range(c.FPDFPage_CountObjects(page.raw)):
        handle = c.FPDFPage_GetObject(page.raw, i)
        if handle:
            yield from _nested(handle, _IDENTITY, 2)


def _nested(handle: c.FPDF_PAGEOBJECT, to_page: _Matrix, depth: int) -> Iterator[tuple[c.FPDF_PAGEOBJECT, _Matrix]]:
    if c.FPDFPageObj_GetType(handle) != c.FPDF_PAGEOBJ_FORM:
        yield handle, to_page
    elif depth:
        inner = _chained(_matrix(handle), to_page)
        for i in range(c.FPDFFormObj_CountObjects(handle)):
            child = c.FPDFFormObj_GetObject(handle, i)
            if child:
                yield from _nested(child, inner, depth - 1)


def _matrix(handle: c.FPDF_PAGEOBJECT) -> _Matrix:
    m = c.FS_MATRIX()
    if not c.FPDFPageObj_GetMatrix(handle, byref(m)):
        return _IDENTITY
    return m.a, m.b, m.c, m.d, m.e, m.f


def _chained(first: _Matrix, then: _Matrix) -> _Matrix:
    a, b, cc, d, e, f = first
    A, B, C, D, E, F = then
    return (a * A + b * C, a * B + b * D, cc * A + d * C, cc * B + d * D, e * A + f * C + E, e * B + f * D + F)


def _apply(m: _Matrix, x: float, y: float) -> tuple[float, float]:
    return m[0] * x + m[2] * y + m[4], m[1] * x + m[3] * y + m[5]


def _bounds(handle: c.FPDF_PAGEOBJECT, to_page: _Matrix) -> tuple[float, float, float, float] | None:
    left, bottom, right, top = (c_float() for _ in range(4))
    if not c.FPDFPageObj_GetBounds(handle, byref(left), byref(bottom), byref(right), byref(top)):
        return None
    corners = [_apply(to_page, x.value, y.value) for x in (left, right) for y in (bottom, top)]
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def _lines(handle: c.FPDF_PAGEOBJECT, to_page: _Matrix) -> Iterator[tuple[float, float, float, float]]:
    """Horizontal and vertical strokes of a path, and filled rectangles so thin that they are lines, in points."""
    bounds = _bounds(handle, to_page)
    if bounds is None:
        return
    left, bottom, right, top = bounds
    if min(right - left, top - bottom) <= RULE_POINTS:
        yield bounds
        return
    fill, stroke = c_int(), c.FPDF_BOOL()
    c.FPDFPath_GetDrawMode(handle, byref(fill), byref(stroke))
    count = c.FPDFPath_CountSegments(handle)
    if not stroke.value or not 2 <= count <= MAX_SEGMENTS:
        return
    matrix = _chained(_matrix(handle), to_page)
    x, y = c_float(), c_float()
    start = last = None
    for i in range(count):
        segment = c.FPDFPath_GetPathSegment(handle, i)
        c.FPDFPathSegment_GetPoint(segment, byref(x), byref(y))
        point = _apply(matrix, x.value, y.value)
        kind = c.FPDFPathSegment_GetType(segment)
        if kind == c.FPDF_SEGMENT_MOVETO:
            start = point
        elif kind == c.FPDF_SEGMENT_LINETO and last is not None:
            yield from _stroke(last, point)
        if c.FPDFPathSegment_GetClose(segment) and start is not None:
            yield from _stroke(point, start)
        last = point


def _stroke(p: tuple[float, float], q: tuple[float, float]) -> Iterator[tuple[float, float, float, float]]:
    dx, dy = abs(p[0] - q[0]), abs(p[1] - q[1])
    if max(dx, dy) > RULE_POINTS and min(dx, dy) < 0.5:
        yield min(p[0], q[0]) - 0.25, min(p[1], q[1]) - 0.25, max(p[0], q[0]) + 0.25, max(p[1], q[1]) + 0.25
