"""Recorded steps out of result files: a NAME.json of `hsdkit run` (one side), a bench.json or the results.jsonl of an
evaluation (every side, same run)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from hsdkit.document_result import DocumentResult
from hsdkit.errors import DocumentError, described
from hsdkit.results import StageResult
from hsdkit.results_json import page_from_json, stage_from_json

#: The side that is plain decoding.
PLAIN = "autoregressive"
#: Plain `transformers.generate`: its prompts are not recorded.
_UNKNOWN = "generate"


@dataclass(frozen=True, slots=True)
class PageRecord:
    """What `side` (a verifier) did on a page: seconds of drafting, and its stages; `rounds` are the seconds of decoding
    in each round where there were several, of which the stages are the median one."""

    document: str
    page: int
    side: str
    draft: float
    stages: tuple[StageResult, ...]
    rounds: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Records:
    """`settings` and `versions` are those of the run; `threads` CPU threads of its model, where they are known.
    `skipped`: pages that failed."""

    pages: tuple[PageRecord, ...]
    settings: dict[str, Any]
    versions: dict[str, str]
    threads: int | None = None
    skipped: int = 0

    @property
    def max_rows(self) -> int:
        return int((self.settings.get("engine") or {}).get("max_rows") or 32)

    @property
    def dtype(self) -> str:
        """Of the model, as `BYTES` names it; fp32 where the recording does not say."""
        return {"bfloat16": "bf16", "float16": "fp16"}.get(self.versions.get("dtype", ""), "fp32")

    @property
    def on_cpu(self) -> bool:
        return self.versions.get("device", "").startswith("cpu")

    @property
    def page_prompt(self) -> float:
        """Mean tokens of a page's prompt."""
        stages = [s for p in self.pages for s in p.stages if s.name == "page"]
        lengths = [q.prompt_tokens for s in stages for q in s.sequences if q.prompt_tokens]
        return fmean(lengths) if lengths else 0.0

    @property
    def max_packed(self) -> Any:
        """The verifier's limit of a step, "auto" or a number; None where it has none."""
        return (self.settings.get("verifier") or {}).get("max_packed")

    @property
    def target(self) -> dict[str, Any]:
        """Its name and options."""
        found = self.settings.get("target")
        return found if isinstance(found, dict) else {}

    def of(self, side: str) -> dict[tuple[str, int], PageRecord]:
        return {(p.document, p.page): p for p in self.pages if p.side == side}

    @property
    def sides(self) -> list[str]:
        return list(dict.fromkeys(p.side for p in self.pages))


def load(paths: Iterable[Path]) -> Records:
    """All files as one. Raises `DocumentError` for a file that holds no steps, and for files of different targets."""
    found = [_load(path) for path in paths]
    first = found[0]
    for path, other in zip(paths, found, strict=True):
        if other.target != first.target:
            raise DocumentError(f"{path}: made with another target than the first file; give them one at a time")
    pages = tuple({(p.document, p.page, p.side): p for records in found for p in records.pages}.values())
    if not pages:
        raise DocumentError(f"{', '.join(map(str, paths))}: no page in it was decoded, so there is nothing to predict")
    return Records(pages, first.settings, first.versions, first.threads, sum(r.skipped for r in found))


#: What a folder of `hsdkit eval` keeps its pages in, and what it ends with.
_EVALUATION, _SUMMARY = "results.jsonl", "summary.json"
#: What a folder of `hsdkit sweep` has, and what its files begin with.
_SWEEP, _OF_A_SWEEP = "sweep.json", "schema"


def _load(path: Path) -> Records:
    if (path / _SWEEP).exists():
        raise _no_steps(path)
    if path.is_dir():
        path /= _EVALUATION
    try:
        if path.name == _EVALUATION:
            return _evaluation(path)
        data = json.loads(path.read_bytes())
        if _OF_A_SWEEP in data:
            raise _no_steps(path)
        if "samples" not in data:
            return _run(DocumentResult.load(path))
        if "traces" not in data:
            raise DocumentError(f"{path}: it was written before bench.json held steps: run `hsdkit bench` again")
        return _bench(data)
    except OSError as e:
        raise DocumentError(f"{path}: {e.strerror}") from e
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise DocumentError(
            f"{path}: not a NAME.json of `hsdkit run`, a bench.json of `hsdkit bench` or a folder of `hsdkit eval` "
            f"({described(e)})"
        ) from e


def _no_steps(path: Path) -> DocumentError:
    return DocumentError(
        f"{path}: a sweep keeps no steps: record a combination of it with `hsdkit bench KEY=VALUE FILE`, with the same "
        "options and files"
    )


def _bench(data: dict[str, Any]) -> Records:
    pages = [
        PageRecord(
            t["document"],
            t["page"],
            t["side"],
            t["draft"],
            tuple(map(stage_from_json, t["stages"])),
            tuple(t.get("rounds", ())),
        )
        for t in data["traces"]
        if t["side"] != _UNKNOWN
    ]
    threads = (data.get("machine") or {}).get("torch_threads")
    return Records(tuple(pages), data["settings"], data["versions"], threads, len(data.get("failures", ())))


def _evaluation(path: Path) -> Records:
    """Both sides, where there were two."""
    pages: list[PageRecord] = []
    skipped = 0
    settings: dict[str, Any] = {}
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            data = json.loads(line)
            if "evaluation" in data:
                settings = next(iter(data["evaluation"]["sides"].values()))
                continue
            for name, side in data["sides"].items():
                page = page_from_json(side["page"])
                if page.error is None and page.stages:
                    pages.append(PageRecord(data["document"], data["page"], name, page.draft.seconds, page.stages))
                else:
                    skipped += 1
    summary = json.loads((path.parent / _SUMMARY).read_bytes())
    threads = summary["machine"].get("torch_threads")
    return Records(tuple(pages), settings, summary["versions"], threads, skipped)


def _run(document: DocumentResult) -> Records:
    good = [p for p in document.pages if p.error is None and p.stages]
    pages = tuple(PageRecord(document.source, p.number, p.verifier, p.draft.seconds, p.stages) for p in good)
    return Records(pages, document.settings, document.versions, None, len(document.pages) - len(good))
