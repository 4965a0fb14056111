"""Drafts from the page image: RapidOCR lines (PP-OCRv6) in rapid-layout regions (CDLA). Both ship their models.

Reading lines is the expensive part and its cost goes with the pixels across all lines, so lines are narrowed a little,
read one by one without padding, and read in as many threads as there are cores.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hsdkit_plugins.drafters._grid import make_grid, to_html
from hsdkit_plugins.drafters._lines import Line, bounding, is_cjk
from hsdkit_plugins.drafters._ocr_cost import OcrCost
from hsdkit_plugins.drafters._page import page_regions
from hsdkit_plugins.drafters._tables import Table, find_tables
from hsdkit_plugins.drafters._trust import overlap

from hsdkit import hookimpl
from hsdkit.components import Component, Requirement
from hsdkit.documents import Page
from hsdkit.errors import ConfigError, DrafterError
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.textlayer import Word

if TYPE_CHECKING:
    import numpy as np

#: Height in pixels the recognition model takes.
_LINE_HEIGHT = 48

#: Pages of fewer pixels are not shown to the layout model: it was trained on whole pages and takes them for pictures.
SMALL_PAGE = 400_000

#: How far detected boxes reach beyond the ink, in their heights.
_MARGIN = 0.14

#: A "figure" of which text covers more than this is text: the layout model takes small pages for pictures.
_MOST_TEXT = 0.15

_LABELS = {
    "text": Label.TEXT,
    "title": Label.HEADING,
    "figure": Label.FIGURE,
    "figure_caption": Label.CAPTION,
    "table": Label.TABLE,
    "table_caption": Label.CAPTION,
    "header": Label.HEADER,
    "footer": Label.FOOTER,
    "reference": Label.REFERENCE,
    "equation": Label.FORMULA,
}


@dataclass
class RapidOcrConfig:
    """detect_side: the page is scaled down to this longest side to find lines; larger finds smaller print, slower.
    narrow: lines are narrowed to this part of their width before they are read; below 0.7 letters are lost.
    layout: also run the layout model (0.3 s a page): labels, tables, captions; without it geometry alone decides.
    threads: lines read at the same time; 0 takes all cores.
    least_confidence: lines read with less (0..1) are dropped.
    """

    detect_side: int = 1216
    narrow: float = 0.75
    layout: bool = True
    threads: int = 0
    least_confidence: float = 0.5

    def __post_init__(self) -> None:
        if self.detect_side < 32:
            raise ConfigError(f"drafter.detect_side={self.detect_side}: must be at least 32")
        if not 0.3 <= self.narrow <= 1:
            raise ConfigError(f"drafter.narrow={self.narrow}: must be between 0.3 and 1")
        if self.threads < 0:
            raise ConfigError(f"drafter.threads={self.threads}: must be 0 (all cores) or more")


@dataclass(frozen=True, slots=True)
class Timing:
    """Where the seconds of the last page went."""

    detect: float
    layout: float
    read: float
    lines: int
    columns: int


class RapidOcr:
    """One instance holds one set of models and is for one thread; it uses several inside."""

    name = "rapidocr"

    def __init__(self, config: RapidOcrConfig) -> None:
        self.config = config
        self.timing: Timing | None = None
        self._threads = config.threads or os.cpu_count() or 1
        self._cost = OcrCost(self._threads, config.layout, config.detect_side, config.narrow)

    def draft(self, page: Page) -> Draft:
        start = time.perf_counter()
        try:
            regions, notes = self._draft(page)
        except (DrafterError, ConfigError):
            raise
        except Exception as e:  # OCR libraries raise what they like
            raise DrafterError(f"{page.source}, page {page.number}: OCR failed: {type(e).__name__}: {e}") from e
        return Draft(tuple(regions), self.name, time.perf_counter() - start, notes)

    def expected_seconds(self, page: Page) -> float:
        """From what past pages took, for the amount of ink on this one; a measured guess for the first page."""
        return self._cost.expected(page)

    def _draft(self, page: Page) -> tuple[list[Region], tuple[str, ...]]:
        import numpy as np

        start = time.perf_counter()
        models = self._models
        loading = time.perf_counter() - start
        image = np.ascontiguousarray(np.asarray(page.image)[:, :, ::-1])  # BGR
        with ThreadPoolExecutor(self._threads) as pool:
            use_layout = self.config.layout and page.width * page.height >= SMALL_PAGE
            layout = pool.submit(_timed, models.layout_boxes, image) if use_layout else None
            quads, detecting = _timed(models.detect, image)
            crops = [_line_image(image, quad, self.config.narrow) for quad in quads]
            before = time.perf_counter()
            order = sorted(range(len(crops)), key=lambda i: -crops[i].shape[1])  # long ones first, so that none is last
            read = dict(zip(order, pool.map(models.read, [crops[i] for i in order]), strict=True))
            reading = time.perf_counter() - before
            areas, laying = layout.result() if layout else ([], 0.0)
        columns = sum(crop.shape[1] for crop in crops)
        self.timing = Timing(detecting, laying, reading, len(crops), columns)
        self._cost.learn(page, detecting, laying, reading, columns, loading)
        least = self.config.least_confidence
        kept = [i for i in range(len(quads)) if read[i][1] >= least and read[i][0].strip()]
        lines = [_line(quads[i], read[i][0].strip()) for i in kept]
        regions = _regions(lines, areas, page.height)
        scores = {line.box: read[i][1] for line, i in zip(lines, kept, strict=True)}
        return [replace(r, score=_mean_inside(r.box, scores)) for r in regions], _notes(lines)

    @cached_property
    def _models(self) -> _Models:
        return _Models(self.config, self._threads)


class _Models:
    """The ONNX sessions. Finding lines takes all threads; reading takes one a line, many lines at a time."""

    def __init__(self, config: RapidOcrConfig, threads: int) -> None:
        try:
            from rapidocr import RapidOCR
        except ImportError as e:
            raise DrafterError(f"drafter rapidocr needs rapidocr, not installed ({e}): {_INSTALL}") from e
        common = {
            "Global.log_level": "error",
            "Global.use_preprocess_img": False,
            "Global.use_cls": False,
            "Det.limit_type": "max",
            "Det.limit_side_len": config.detect_side,
            # A line is read at its own width: the default pads short lines to 320 pixels.
            "Rec.rec_img_shape": [3, _LINE_HEIGHT, _LINE_HEIGHT],
        }
        prefix = "EngineConfig.onnxruntime."
        self._finder = RapidOCR(params=common | {prefix + k: v for k, v in _engine(threads).items()})
        self._reader = RapidOCR(params=common | {prefix + k: v for k, v in _engine(1).items()})
        self._layout = _layout_model(_engine(1)) if config.layout else None

    def detect(self, image: np.ndarray) -> list[np.ndarray]:
        """Corner points (4, 2) of the lines in pixels, clockwise from the top left."""
        boxes = getattr(self._finder(image, use_det=True, use_cls=False, use_rec=False), "boxes", None)
        return [] if boxes is None else list(boxes)

    def read(self, crop: np.ndarray) -> tuple[str, float]:
        """Text and confidence of a line image."""
        result: Any = self._reader(crop, use_det=False, use_cls=False, use_rec=True)
        return (result.txts[0], float(result.scores[0])) if getattr(result, "txts", None) else ("", 0.0)

    def layout_boxes(self, image: np.ndarray) -> list[tuple[Box, Label, float]]:
        assert self._layout is not None
        found = self._layout(image)
        if found.boxes is None or found.class_names is None or found.scores is None:
            return []
        areas = [
            (Box(*map(float, box)), _LABELS.get(name, Label.OTHER), float(score))
            for box, name, score in zip(found.boxes, found.class_names, found.scores, strict=True)
        ]
        return without_overlaps(areas)


_INSTALL = 'pip install "hsdkit[rapidocr]"'


def _engine(threads: int) -> dict[str, Any]:
    return {"intra_op_num_threads": threads, "inter_op_num_threads": 1, "enable_cpu_mem_arena": True}


def _layout_model(engine: dict[str, Any]) -> Any:
    try:
        from rapid_layout import RapidLayout
    except ImportError as e:
        raise DrafterError(f"drafter rapidocr needs rapid_layout, not installed ({e}): {_INSTALL}") from e
    logging.disable(logging.INFO)  # it announces its model's path
    try:
        return RapidLayout(model_type="pp_layout_cdla", engine_cfg=engine)
    finally:
        logging.disable(logging.NOTSET)


def _timed(function: Any, image: np.ndarray) -> tuple[Any, float]:
    start = time.perf_counter()
    return function(image), time.perf_counter() - start


def without_overlaps(areas: Sequence[tuple[Box, Label, float]]) -> list[tuple[Box, Label, float]]:
    """Layout areas, likeliest first, without those that mostly lie in (or around) a likelier one of whatever class."""
    kept: list[tuple[Box, Label, float]] = []
    for area in sorted(areas, key=lambda a: -a[2]):
        if all(max(overlap(area[0], k[0]), overlap(k[0], area[0])) < 0.6 for k in kept):
            kept.append(area)
    return kept


def _line_image(image: np.ndarray, quad: np.ndarray, narrow: float) -> np.ndarray:
    """The line cut out upright, `_LINE_HEIGHT` high. What is much taller than wide is text turned by 90 degrees."""
    import cv2
    import numpy as np

    corners = np.asarray(quad, np.float32)
    if np.linalg.norm(corners[3] - corners[0]) >= 1.5 * np.linalg.norm(corners[1] - corners[0]):
        corners = np.roll(corners, -1, axis=0)
    sides = [float(np.linalg.norm(corners[k] - corners[k - 1])) for k in range(4)]  # left, top, right, bottom
    width, height = max(sides[1], sides[3]), max(sides[0], sides[2], 1.0)
    columns = max(16, round(_LINE_HEIGHT * width / height * narrow))
    to = np.array([[0, 0], [columns, 0], [columns, _LINE_HEIGHT], [0, _LINE_HEIGHT]], np.float32)
    transform = cv2.getPerspectiveTransform(corners, to)
    return cv2.warpPerspective(
        image, transform, (columns, _LINE_HEIGHT), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )


def _line(quad: np.ndarray, text: str) -> Line:
    xs, ys = quad[:, 0], quad[:, 1]
    # Slant makes the box taller, not the print: the height is that of the quadrangle.
    height = float(((quad[3] - quad[0]) ** 2).sum() ** 0.5)
    margin = _MARGIN * min(height, float(xs.max() - xs.min()))
    box = Box(float(xs.min()) + margin, float(ys.min()) + margin, float(xs.max()) - margin, float(ys.max()) - margin)
    size = box.width / _ems(text) if len(text) > 3 else 0.75 * height
    return Line((Word(text, box, (box.y0 + box.y1) / 2 + 0.3 * size, size),))


def _ems(text: str) -> float:
    """Width of the text in font sizes in a usual print. How wide a line is says more about the size of its print than
    how high: boxes are found on a coarse grid, and "on" is lower than "Only"."""
    return sum(1.0 if is_cjk(ch) else _EMS.get(ch, 0.67 if ch.isupper() else 0.53) for ch in text)


_EMS = dict.fromkeys(" ijlI.,:;'|!", 0.26) | dict.fromkeys("frt()[]-/", 0.34) | dict.fromkeys("mwMW%@", 0.83)


def _regions(lines: list[Line], areas: list[tuple[Box, Label, float]], height: int) -> list[Region]:
    lines = _same_sizes(lines)
    members: dict[int, list[Line]] = {}
    for line in lines:
        shares = [overlap(line.box, box) for box, _, _ in areas]
        best = max(range(len(areas)), key=lambda k: shares[k], default=-1)
        members.setdefault(best if best >= 0 and shares[best] > 0.5 else -1, []).append(line)
    text = list(members.pop(-1, []))
    tables: list[Table] = []
    pictures: list[Box] = []
    for k, (box, label, _) in enumerate(areas):
        inside = members.get(k, [])
        words = [w for line in inside for w in line.words]
        if label == Label.FIGURE:
            if sum(line.box.area for line in inside) < _MOST_TEXT * box.area:
                pictures.append(box)
            else:
                text += inside
        elif label == Label.TABLE and (grid := make_grid(words, (), gap=0)):
            tables.append(Table(bounding([box, *(w.box for w in words)]), to_html(grid), frozenset()))
        else:
            text += [replace(line, label=None if label == Label.TABLE else label, group=k) for line in inside]
    # Tables the layout model has missed (it was not run, or takes them for text).
    unlabelled = [w for line in text if line.label in (None, Label.TEXT) for w in line.words]
    missed = find_tables(unlabelled, (), gap=0)
    in_missed = {unlabelled[i].box for table in missed for i in table.words}
    text = [line for line in text if line.words[0].box not in in_missed]
    return page_regions(text, [*tables, *missed], pictures, height)


def _same_sizes(lines: list[Line]) -> list[Line]:
    """Box heights waver: lines within an eighth of the usual size have the usual size."""
    if not lines:
        return []
    sizes = sorted(line.size for line in lines)
    usual = sizes[len(sizes) // 2]
    return [
        replace(line, words=tuple(replace(w, size=usual) for w in line.words))
        if abs(line.size - usual) < 0.125 * usual
        else line
        for line in lines
    ]


def _mean_inside(box: Box, scores: dict[Box, float]) -> float | None:
    values = [score for line, score in scores.items() if overlap(line, box) > 0.9]
    return sum(values) / len(values) if values else None


def _notes(lines: list[Line]) -> tuple[str, ...]:
    words = " ".join(line.text for line in lines if line.text.isascii()).split()
    if len(words) > 20 and sum(map(len, words)) / len(words) > 9:
        return ("OCR has left out many spaces",)
    return ()


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "OCR of the page image (RapidOCR PP-OCRv6 lines, rapid-layout regions), offline"
    requires = tuple(Requirement(m, "hsdkit[rapidocr]") for m in ("rapidocr", "rapid_layout", "onnxruntime"))
    return [Component("drafter", "rapidocr", summary, RapidOcrConfig, RapidOcr, requires)]
