"""Pages in flight on the real engine: token for token what each is alone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hsdkit.config import compose
from hsdkit.parallel import PageParser, PageTask, Stopped, parse_pages
from hsdkit.pipeline import Pipeline

EXAMPLES = Path(__file__).parent.parent / "examples"
TASKS = [PageTask(EXAMPLES / "ten_pages.pdf", 1), PageTask(EXAMPLES / "report.pdf", 1)]


@pytest.fixture(scope="module")
def base() -> Pipeline:
    pipeline = Pipeline(compose(options("preparing=0", "concurrency=1")))
    pipeline.load()
    return pipeline


def options(*overrides: str) -> list[str]:
    common = ["drafter=pdftext", "target=tiny", "engine.dtype=fp32", "engine.threads=1", "verifier.max_new_tokens=24"]
    return [*common, *overrides]


def test_pages_in_flight_are_what_they_are_alone(base: Pipeline) -> None:
    found = []
    for way in ("preparing=0 concurrency=1", "preparing=1 concurrency=2"):
        run = base.with_config(compose(options("verifier=hsd", "verifier.stage1=always", *way.split())))
        results = {t.path.name: r for t, r in parse_pages(run, TASKS[:: -1 if found else 1])}
        assert [r.error for r in results.values()] == [None] * 2
        found.append(
            {
                key: [(s.name, [q.tokens for q in s.sequences]) for s in r.stages] + [r.markdown, r.draft.regions]
                for key, r in results.items()
            }
        )
    assert found[1] == found[0]


def test_closing_in_the_middle_leaves_the_engine_as_it_was(base: Pipeline) -> None:
    run = base.with_config(
        compose(options("verifier=page", "verifier.max_new_tokens=2000", "preparing=0", "concurrency=3"))
    )
    begun: list[str] = []
    with PageParser(run) as parser:
        futures = [parser.submit(task, begun.append) for task in TASKS]
        while not begun:
            time.sleep(0.01)
    assert any(isinstance(f.exception(), Stopped) for f in futures if not f.cancelled())
    again = base.with_config(compose(options("verifier=page", "preparing=0", "concurrency=2")))
    assert all(r.error is None and r.text for _, r in parse_pages(again, TASKS))
