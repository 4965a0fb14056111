"""Pages read by workers of a local Ray cluster: poisoned pages, killed workers, drivers that stop and start again.

Needs the extra `ray`. One cluster of two cores for all tests.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import ray_toys
from ray_toys import TOYS_ON_RAY
from toys import blank_pdf

from hsdkit import compose
from hsdkit.document_result import DocumentResult
from hsdkit.errors import TargetError
from hsdkit.parallel import PageTask
from hsdkit.plugins import plugins
from hsdkit.ray import PageParser, pages
from hsdkit.ray.workers import Workers
from hsdkit.results import PageResult

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'hsdkit[ray]'")
pytest.importorskip("ray.data", reason="Ray Data is not installed: pip install 'hsdkit[ray]'")

TWO = Workers(2, 2, 1.0)
TESTS = Path(__file__).parent


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of two cores that has the toys installed."""
    installed = tmp_path_factory.mktemp("installed")
    ray_toys.install(installed)
    if "ray-toys" not in [state.name for state in plugins().states]:
        plugins().register(ray_toys, "ray-toys")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(installed), str(TESTS), *([before] if before else [])])
    ray.init(
        address="local", num_cpus=2, object_store_memory=80_000_000, include_dashboard=False,
        log_to_driver=False, logging_level="error",
    )  # fmt: skip
    try:
        yield ray.get_runtime_context().gcs_address
    finally:
        ray.shutdown()
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """Where the toys leave a mark for each page they read."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder


def toys(marks: Path, *overrides: str) -> list[str]:
    return [*TOYS_ON_RAY, f"verifier.marks={marks}", "preparing=1", *overrides]


def readers(marks: Path) -> set[int]:
    """The processes that have read a page."""
    return {int(line) for mark in marks.iterdir() for line in mark.read_text().split()}


def kill(*pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def processes_named(part: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if part.encode() in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.usefixtures("cluster")
def test_every_page_has_one_result_whatever_happens_to_its_worker(tmp_path: Path, marks: Path):
    from hsdkit.ray.stream import parse_pages

    good = blank_pdf(tmp_path / "good.pdf", 24)
    deadly, fragile = blank_pdf(tmp_path / "deadly.pdf"), blank_pdf(tmp_path / "fragile.pdf")
    broken = tmp_path / "broken.pdf"
    broken.write_bytes(b"%PDF-1.7 and no more")
    bad = [deadly, fragile, broken, tmp_path / "gone.pdf"]
    tasks = [PageTask(good, n + 1, n) for n in range(24)]
    tasks[4:4] = [PageTask(path, 1, path.stem) for path in bad]
    told: list[dict[str, str]] = []
    results: dict[int | str, PageResult] = {}
    config = compose(toys(marks, "verifier.seconds=0.3"))
    with closing(parse_pages(config, tasks, TWO, on_versions=told.append)) as stream:
        for task, result in stream:
            assert task.key not in results
            results[task.key] = result
            if len(results) == 2:
                source = processes_named("ray::ReadFedRows")
                assert source
                kill(*source)
            if len(results) == 8:
                kill(*sorted(readers(marks) & set(processes_named("ray::")))[:1])
    assert results.keys() == {t.key for t in tasks}
    for number in range(24):
        assert results[number].error is None
        assert results[number].markdown == f"page {number + 1} of good.pdf"
    assert "deadly.pdf, page 1: the worker died each of the 3 times" in str(results["deadly"].error)
    assert "broken.pdf" in str(results["broken"].error)
    assert "gone.pdf, page 1: no such file on the worker" in str(results["gone"].error)
    assert results["fragile"].error is None
    assert any("its worker had died" in note for note in results["fragile"].notes)
    assert len(told) == 1
    assert told[0]["model"] == "toy-checkpoint"


@pytest.mark.usefixtures("cluster")
def test_what_every_page_would_fail_with_ends_the_run(tmp_path: Path, marks: Path):
    from hsdkit.ray.stream import parse_pages

    config = compose(toys(marks, "engine.loads=false"))
    tasks = [PageTask(blank_pdf(tmp_path / "a.pdf"), 1)]
    with pytest.raises(TargetError, match="no such checkpoint"), closing(parse_pages(config, tasks, TWO)) as stream:
        list(stream)


@pytest.mark.usefixtures("cluster")
def test_pages_and_parser_are_steps_of_a_pipeline_of_ones_own(tmp_path: Path, marks: Path):
    blank_pdf(tmp_path / "two.pdf", 2)
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    documents = ray.data.from_items([{"path": str(tmp_path / name), "of": 1} for name in ("two.pdf", "broken.pdf")])
    parsed = documents.flat_map(pages).map(PageParser, fn_constructor_args=(toys(marks),), concurrency=1)
    rows = sorted(parsed.take_all(), key=lambda row: (row["path"], row["page"]))
    assert [(Path(r["path"]).name, r["page"], r["of"]) for r in rows] == [
        ("broken.pdf", 1, 1), ("two.pdf", 1, 1), ("two.pdf", 2, 1),
    ]  # fmt: skip
    assert [r["markdown"] for r in rows] == ["", "page 1 of two.pdf", "page 2 of two.pdf"]
    assert "broken.pdf" in rows[0]["error"]
    assert json.loads(rows[2]["result"])["number"] == 2
    assert rows[2]["error"] is None


def run(*arguments: object, cwd: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from hsdkit.cli import main; main()", "run", *map(str, arguments)]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finished(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    out, err = process.communicate(timeout=240)
    assert out == b""  # standard output is for results
    return process.returncode, err.decode()


def until_pages(marks: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while len(list(marks.iterdir())) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)


def files(folder: Path) -> dict[str, object]:
    """What is in the results, times and versions of the machine aside."""
    found: dict[str, object] = {p.name: p.read_text() for p in folder.glob("*.md")}
    for path in folder.glob("*.json"):
        document = DocumentResult.load(path)
        found[path.name] = [(p.number, p.text, p.error, p.draft.regions, p.finish_reason) for p in document.pages]
        assert not document.pages or document.versions["model"] == "toy-checkpoint"
    return found


def test_a_run_that_is_stopped_and_killed_is_continued_with_ray_or_without(cluster: str, tmp_path: Path, marks: Path):
    for name in ("a.pdf", "b.pdf"):
        blank_pdf(tmp_path / name, 12)
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.7 and no more")
    plain = tmp_path / "undisturbed"
    plain.mkdir()
    code, said = finished(run("a.pdf", "b.pdf", "c.pdf", "output=plain", *toys(plain), cwd=tmp_path))
    assert code == 1, said  # c.pdf

    arguments = ["a.pdf", "b.pdf", "c.pdf", "output=out", *toys(marks, "verifier.seconds=0.4")]
    on_ray = [f"--ray={cluster}", "--ray-workers=2", "--ray-cpus=1"]
    first = run(*arguments, *on_ray, cwd=tmp_path)
    until_pages(marks, 6, first)
    first.send_signal(signal.SIGINT)
    code, said = finished(first)
    assert code == 130, said
    assert "interrupted" in said

    second = run(*arguments, *on_ray, cwd=tmp_path)
    until_pages(marks, 12, second)
    second.kill()
    second.communicate()

    code, said = finished(run(*arguments, *on_ray, cwd=tmp_path))
    assert code == 1, said
    assert files(tmp_path / "out") == files(tmp_path / "plain")
    reads = [len(mark.read_text().split()) for mark in marks.iterdir()]
    assert len(reads) == 24
    assert sum(reads) <= 24 + 2 * 2 * TWO.most  # again: what was under way when it was stopped

    code, said = finished(run(*arguments, cwd=tmp_path))  # nothing is left for a run without Ray
    assert code == 1, said
    assert [len(mark.read_text().split()) for mark in marks.iterdir()] == reads


def test_a_cluster_that_does_not_answer_is_told_at_once(tmp_path: Path):
    blank_pdf(tmp_path / "a.pdf")
    code, said = finished(run("a.pdf", "--ray=127.0.0.1:1", cwd=tmp_path))
    assert (code, "--ray=127.0.0.1:1: no Ray cluster answers" in said) == (2, True), said
