"""Results as JSON and back, without loss. Step records are stored as columns: a page has hundreds of them.

A document is one JSON object whose `pages` stand one a line, so that it can be put together from finished pages
without holding them; what `summary` holds is derived and not read back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from hsdkit.regions import Box, Draft, Label, Region
from hsdkit.results import Attempt, PageResult, SequenceResult, StageResult, StageTimes, Step
from hsdkit.totals import Totals

Json = dict[str, Any]

_STEP_COLUMNS = ("nodes", "accepted", "bonus", "source", "seconds", "rejected")


def dumps(value: Any) -> str:
    """Compact JSON on one line; letters stay letters unless some are lone surrogates; non-finite numbers are null."""
    text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)
    return text


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value


def page_to_json(page: PageResult) -> Json:
    return {
        "number": page.number,
        "error": page.error,
        "finish_reason": page.finish_reason,
        "verifier": page.verifier,
        "tau": page.tau,
        "exact": page.exact,
        "origin": page.origin,
        "attempts": [asdict(attempt) for attempt in page.attempts],
        "width": page.width,
        "height": page.height,
        "seconds": page.seconds,
        "notes": list(page.notes),
        "summary": Totals.of(page).to_json(),
        "markdown": page.markdown,
        "text": page.text,
        "regions": [_region_to_json(r) for r in page.regions],
        "draft": draft_to_json(page.draft),
        "stages": [stage_to_json(s) for s in page.stages],
    }


def page_from_json(data: Json) -> PageResult:
    plain = ("number", "error", "finish_reason", "verifier", "tau", "width", "height", "seconds", "markdown", "text")
    return PageResult(
        **{k: data[k] for k in plain},
        exact=data.get("exact", data["tau"] == 1),
        origin=data.get("origin", "model"),
        attempts=tuple(Attempt(**attempt) for attempt in data.get("attempts", ())),
        notes=tuple(data["notes"]),
        regions=tuple(map(_region_from_json, data.get("regions", ()))),
        draft=draft_from_json(data["draft"]),
        stages=tuple(stage_from_json(s) for s in data["stages"]),
    )


def draft_to_json(draft: Draft) -> Json:
    return {
        "drafter": draft.drafter,
        "seconds": draft.seconds,
        "notes": list(draft.notes),
        "regions": [_region_to_json(r) for r in draft.regions],
    }


def draft_from_json(data: Json) -> Draft:
    regions = tuple(map(_region_from_json, data["regions"]))
    return Draft(regions, data["drafter"], data["seconds"], tuple(data["notes"]))


def _region_to_json(region: Region) -> Json:
    return {
        "box": [region.box.x0, region.box.y0, region.box.x1, region.box.y1],
        "label": region.label.value,
        "text": region.text,
        "format": region.format,
        "level": region.level,
        "score": region.score,
    }


def _region_from_json(data: Json) -> Region:
    box, label = Box(*data["box"]), Label(data["label"])
    return Region(box, label, data["text"], data["format"], data["level"], data["score"])


def stage_to_json(stage: StageResult) -> Json:
    return {
        "name": stage.name,
        "forwards": stage.forwards,
        "region_index": list(stage.region_index),
        "times": asdict(stage.times),
        "sequences": [_sequence_to_json(s) for s in stage.sequences],
    }


def stage_from_json(data: Json) -> StageResult:
    return StageResult(
        data["name"],
        tuple(_sequence_from_json(s) for s in data["sequences"]),
        StageTimes(**data["times"]),
        data["forwards"],
        tuple(data["region_index"]),
    )


def _sequence_to_json(sequence: SequenceResult) -> Json:
    steps = {c: [getattr(s, c) for s in sequence.steps] for c in _STEP_COLUMNS}
    return {
        "text": sequence.text,
        "finish_reason": sequence.finish_reason,
        "prompt_tokens": sequence.prompt_tokens,
        "image_tokens": sequence.image_tokens,
        "aal": sequence.aal,
        "tokens": list(sequence.tokens),
        "pieces": list(sequence.pieces),
        "steps": steps,
    }


def _steps_from_json(columns: Json) -> tuple[Step, ...]:
    known = {"rejected": [None] * len(columns["nodes"])} | columns  # files of earlier versions have none
    return tuple(Step(*row) for row in zip(*(known[c] for c in _STEP_COLUMNS), strict=True))


def _sequence_from_json(data: Json) -> SequenceResult:
    return SequenceResult(
        tuple(data["tokens"]),
        data["text"],
        data["finish_reason"],
        _steps_from_json(data["steps"]),
        tuple(data["pieces"]),
        data["prompt_tokens"],
        data.get("image_tokens", 0),
    )


def document_lines(
    source: str, settings: Json, versions: Json, error: str | None, summary: Totals, pages: Iterable[str]
) -> Iterator[str]:
    """The document's JSON in pieces; `pages` are pages as JSON texts, taken one at a time."""
    head = {"source": source, "error": error, "settings": settings, "versions": versions, "summary": summary.to_json()}
    yield dumps(head)[:-1] + ',"pages":[\n'
    for i, page in enumerate(pages):
        yield ("" if i == 0 else ",\n") + page
    yield "\n]}\n"
