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

from hsdkit_plugins.drafters._lines import turned_back
from hsdkit_plugins.drafters._ocr_cost import OcrCost
from hsdkit_plugins.drafters._ocr_regions import (
    Area,
    mean_inside,
    notes_on,
    ocr_line,
    regions_of_lines,
    split_at_columns,
    without_overlaps,
)

from hsdkit import hookimpl
from hsdkit.components import Component, Requirement
from hsdkit.documents import Page
from hsdkit.errors import DrafterError, described
from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.spelling import is_cjk

if TYPE_CHECKING:
    import numpy as np

#: Height in pixels the recognition model takes.
_LINE_HEIGHT = 48

#: Pages of fewer pixels are not shown to the layout model: it was trained on whole pages and takes them for pictures.
SMALL_PAGE = 400_000

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


@dataclass(frozen=True)
class RapidOcrConfig:
    """detect_side: the page is scaled down to this longest side to find lines; larger finds smaller print, slower.
    narrow: lines are narrowed to this part of their width before they are read; below 0.7 letters are lost.
    layout: also run the layout model: labels, tables, captions; without it geometry alone decides.
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
            raise ValueError(f"detect_side={self.detect_side}: must be at least 32")
        if not 0.3 <= self.narrow <= 1:
            raise ValueError(f"narrow={self.narrow}: must be between 0.3 and 1")
        if not 0 <= self.threads <= 1024:
            raise ValueError(f"threads={self.threads}: must be between 0 (all cores) and 1024")


class RapidOcr:
    """One instance holds one set of models and is for one thread; it uses several inside."""

    name = "rapidocr"

    def __init__(self, config: RapidOcrConfig) -> None:
        self.config = config
        self._threads = config.threads or os.cpu_count() or 1
        self._cost = OcrCost(self._threads, config.layout, config.detect_side, config.narrow)

    def draft(self, page: Page) -> Draft:
        start = time.perf_counter()
        try:
            regions, notes = self._draft(page)
        except Exception as e:  # OCR libraries raise what they like
            raise DrafterError(f"{page.source}, page {page.number}: OCR failed: {described(e)}") from e
        return Draft(tuple(regions), self.name, time.perf_counter() - start, notes)

    def expected_seconds(self, page: Page) -> float:
        """From what past pages took, for the amount of ink on this one; a measured guess for the first page."""
        return self._cost.expected(page)

    def _draft_turned(self, page: Page, turn: int) -> tuple[list[Region], tuple[str, ...]]:
        """The draft of a page whose text is turned clockwise by that many quarters, boxes as on the page itself."""
        upright = replace(page, image=page.image.rotate(90 * turn, expand=True))
        regions, notes = self._draft(upright, may_turn=False)
        back = [replace(r, box=turned_back(r.box, -turn % 4, upright.width, upright.height)) for r in regions]
        return back, (f"the page lies on its side; rotate={360 - 90 * turn} would put it upright", *notes)

    def _draft(self, page: Page, may_turn: bool = True) -> tuple[list[Region], tuple[str, ...]]:
        import numpy as np

        models = self._models
        image = np.ascontiguousarray(np.asarray(page.image)[:, :, ::-1])  # BGR
        with ThreadPoolExecutor(self._threads) as pool:
            use_layout = self.config.layout and page.width * page.height >= SMALL_PAGE
            layout = pool.submit(_timed, models.layout_boxes, image) if use_layout else None
            quads, detecting = _timed(models.detect, image)
            areas, laying = layout.result() if layout else ([], 0.0)
            quads = split_at_columns(quads, areas)
            crops = [_line_image(image, quad, self.config.narrow) for quad in quads]
            before = time.perf_counter()
            order = sorted(range(len(crops)), key=lambda i: -crops[i].shape[1])  # long ones first, so that none is last
            read = dict(zip(order, pool.map(models.read, [crops[i] for i in order]), strict=True))
            reading = time.perf_counter() - before
        columns = sum(crop.shape[1] for crop in crops)
        self._cost.learn(page, detecting, laying, reading, columns)
        least = self.config.least_confidence
        if may_turn and (turn := _page_turn(quads, crops, read, models)):
            return self._draft_turned(page, turn)
        kept = [i for i in range(len(quads)) if read[i][1] >= least and read[i][0].strip()]
        lines = [ocr_line(quads[i], read[i][0].strip()) for i in kept]
        regions = regions_of_lines(lines, areas, page.width, page.height)
        scores = {line.box: read[i][1] for line, i in zip(lines, kept, strict=True)}
        return [replace(r, score=mean_inside(r.box, scores)) for r in regions], notes_on(lines)

    @cached_property
    def _models(self) -> _Models:
        return _Models(self.config, self._threads)


class _Models:
    """The ONNX sessions. Finding lines takes all threads; reading takes one a line, many lines at a time."""

    def __init__(self, config: RapidOcrConfig, threads: int) -> None:
        from rapidocr import RapidOCR

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

    def layout_boxes(self, image: np.ndarray) -> list[Area]:
        assert self._layout is not None
        found = self._layout(image)
        if found.boxes is None or found.class_names is None or found.scores is None:
            return []
        areas = [
            (Box(*map(float, box)), _LABELS.get(name, Label.OTHER), float(score))
            for box, name, score in zip(found.boxes, found.class_names, found.scores, strict=True)
        ]
        return without_overlaps(areas)


def _engine(threads: int) -> dict[str, Any]:
    return {"intra_op_num_threads": threads, "inter_op_num_threads": 1, "enable_cpu_mem_arena": True}


def _layout_model(engine: dict[str, Any]) -> Any:
    from rapid_layout import RapidLayout

    logging.disable(logging.INFO)  # it announces its model's path
    try:
        return RapidLayout(model_type="pp_layout_cdla", engine_cfg=engine)
    finally:
        logging.disable(logging.NOTSET)


def _timed(function: Any, image: np.ndarray) -> tuple[Any, float]:
    start = time.perf_counter()
    return function(image), time.perf_counter() - start


def _page_turn(
    quads: Sequence[np.ndarray], crops: Sequence[np.ndarray], read: dict[int, tuple[str, float]], models: _Models
) -> int:
    """Quarters by which the page's text is turned clockwise: 1 or 3 if most lines run up or down and are no Chinese
    or Japanese written that way, else 0. Which of the two is tried on the longest lines."""
    import numpy as np

    tall = [i for i, quad in enumerate(quads) if np.ptp(quad[:, 1]) > 2 * np.ptp(quad[:, 0])]
    if len(tall) < 2 or 2 * len(tall) < len(quads):
        return 0
    tried = sorted(tall, key=lambda i: -crops[i].shape[1])[:4]
    if sum(is_cjk(ch) for i in tried for ch in read[i][0]) > 2 and sum(read[i][1] for i in tried) > 0.8 * len(tried):
        return 0
    flipped = [models.read(np.ascontiguousarray(crops[i][::-1, ::-1])) for i in tried]
    return 1 if sum(read[i][1] for i in tried) >= sum(score for _, score in flipped) else 3


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


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "OCR of the page image (RapidOCR PP-OCRv6 lines, rapid-layout regions), offline"
    requires = tuple(Requirement(m, "hsdkit[rapidocr]") for m in ("rapidocr", "rapid_layout", "onnxruntime"))
    return [Component("drafter", "rapidocr", summary, RapidOcrConfig, RapidOcr, requires)]
