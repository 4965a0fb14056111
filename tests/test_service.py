"""The service: documents in, results out, jobs watched, kept and deleted."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from services import pdf, running

from hsdkit.document_result import DocumentResult
from hsdkit.service.limits import Limits
from hsdkit.service.page_queue import PageQueue
from hsdkit.service.upload import safe_name


def test_a_document_is_parsed_while_the_client_waits(tmp_path: Path):
    with running(tmp_path) as r:
        answer = r.post("/v1/parse", pdf(tmp_path, 3), "report.pdf")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["markdown"] == "page 1 of report.pdf\n\npage 2 of report.pdf\n\npage 3 of report.pdf\n"
    assert [p["number"] for p in body["results"]] == [1, 2, 3]
    assert body["status"] == "done"
    assert body["results"][0]["regions"][0]["box"] == [1, 2, 30, 40]
    assert body["tokens"] == sum(p["tokens"] for p in body["results"])


def test_options_choose_pages_and_format(tmp_path: Path):
    with running(tmp_path) as r:
        answer = r.post("/v1/parse?pages=2-", pdf(tmp_path, 3), format="markdown")
        assert answer.text == "page 2 of a.pdf\n\npage 3 of a.pdf\n"
        assert answer.headers["content-type"].startswith("text/markdown")
        later = r.post("/v1/parse", pdf(tmp_path), **{"async": "true"})
        assert later.status_code == 202
        assert later.headers["location"] == f"/v1/jobs/{later.json()['id']}"


def test_a_job_tells_its_pages_as_they_are_finished_and_keeps_all_results(tmp_path: Path):
    with running(tmp_path) as r:
        taken = r.post("/v1/jobs", pdf(tmp_path, 2))
        assert taken.status_code == 202
        job = taken.json()["id"]
        told = r.events(job)
        assert told[0]["event"] == "job"
        assert told[-1]["event"] == "end"
        assert told[-1]["status"] == "done"
        pages = [t["page"] for t in told if t["event"] == "page"]
        assert [p["number"] for p in pages] == [1, 2]
        assert "".join(run["text"] for run in pages[0]["runs"]) == "RAW page 1 of a.pdf"[: pages[0]["tokens"]]
        assert {run["origin"] for run in pages[0]["runs"]} == {"model", "accepted", "corrected"}
        assert pages[0]["drafted"][0]["text"] == "drafted"

        assert r.client.get(f"/v1/jobs/{job}/markdown").text == "page 1 of a.pdf\n\npage 2 of a.pdf\n"
        document = DocumentResult.from_json(r.client.get(f"/v1/jobs/{job}/json").content)
        assert document.markdown == "page 1 of a.pdf\n\npage 2 of a.pdf\n"
        assert document.settings["verifier"]["name"] == "toy"
        report = r.client.get(f"/v1/jobs/{job}/report")
        assert "</html>" in report.text
        assert "data:image/jpeg;base64," in report.text
        assert "sandbox" in report.headers["content-security-policy"]
        image = r.client.get(f"/v1/jobs/{job}/pages/2/image")
        assert image.content[:2] == b"\xff\xd8"
        assert r.events(job)[-2]["page"] == pages[-1], "who comes late is told the same"
        assert [j["id"] for j in r.client.get("/v1/jobs").json()] == [job]

        folder = tmp_path / "jobs" / job
        assert not (folder / "upload").exists()
        assert r.client.delete(f"/v1/jobs/{job}").status_code == 204
        assert not folder.exists()
        assert r.client.get(f"/v1/jobs/{job}").status_code == 404


def test_a_password_opens_an_encrypted_document_and_is_not_kept(tmp_path: Path):
    import papers

    with running(tmp_path) as r:
        locked = papers.pdf(tmp_path / "locked.pdf", lambda canvas: None, password="s3cret")
        assert r.post("/v1/parse", locked).status_code == 422
        answer = r.post("/v1/parse", locked, password="s3cret")
        assert answer.status_code == 200
        kept = (tmp_path / "jobs" / answer.json()["id"]).iterdir()
        assert not any(b"s3cret" in f.read_bytes() for f in kept)


def test_a_page_that_fails_is_named_and_the_others_are_there(tmp_path: Path):
    with running(tmp_path, "verifier.fail=[2]") as r:
        answer = r.post("/v1/parse", pdf(tmp_path, 3))
    assert answer.status_code == 200
    assert answer.json()["pages_failed"] == 1
    assert answer.json()["results"][1]["error"] == "a.pdf, page 2: RuntimeError: the toy broke"
    assert answer.json()["markdown"] == "page 1 of a.pdf\n\npage 3 of a.pdf\n"


def test_a_document_of_which_no_page_can_be_parsed_is_refused(tmp_path: Path):
    with running(tmp_path, "verifier.fail=[1]") as r:
        answer = r.post("/v1/parse", pdf(tmp_path))
        assert answer.status_code == 422
        assert answer.json()["error"] == "a.pdf, page 1: RuntimeError: the toy broke"


def test_text_is_told_while_it_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import toys

    go, reached = threading.Event(), threading.Event()
    verify = toys.ToyVerifier.verify

    def slowly(self, page, draft, target, engine, on_text=None):  # type: ignore[no-untyped-def]
        on_text(0, "first ")
        on_text(0, "words")
        reached.set()
        go.wait(10)
        return verify(self, page, draft, target, engine)

    monkeypatch.setattr(toys.ToyVerifier, "verify", slowly)
    with running(tmp_path) as r:
        job = r.post("/v1/jobs", pdf(tmp_path)).json()["id"]
        assert reached.wait(10)
        kept = r.service.jobs.get(job)
        threading.Timer(0.3, go.set).start()
        told = r.events(job)
        assert kept.text == {}
    texts = [t for t in told if t["event"] == "text"]
    assert [(t["page"], t["at"], t["text"]) for t in texts] == [(1, 0, "first words")]


def test_results_asked_for_too_early_or_of_no_job_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import toys

    go = threading.Event()
    verify = toys.ToyVerifier.verify
    monkeypatch.setattr(toys.ToyVerifier, "verify", lambda *a: (go.wait(10), verify(*a))[1])
    with running(tmp_path) as r:
        job = r.post("/v1/jobs", pdf(tmp_path)).json()["id"]
        for what in ("markdown", "json", "report"):
            early = r.client.get(f"/v1/jobs/{job}/{what}")
            assert early.status_code == 409
            assert early.json()["error"].startswith("0 of 1 pages are finished")
        assert r.client.get(f"/v1/jobs/{job}/pages/1/image").status_code == 404
        assert r.client.get(f"/v1/jobs/{job}/pages/x/image").status_code == 422
        for what in ("", "/events", "/markdown", "/json", "/report"):
            assert r.client.get(f"/v1/jobs/none{what}").status_code == 404
        go.set()
        r.ended(job)


def test_a_deleted_job_ends_its_page_and_frees_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import toys

    begun, ended = threading.Event(), threading.Event()
    verify = toys.ToyVerifier.verify

    def endless(self, page, draft, target, engine, on_text=None):  # type: ignore[no-untyped-def]
        if page.source == "b.pdf":
            return verify(self, page, draft, target, engine, on_text)
        begun.set()
        try:
            while True:
                on_text(0, "and so on ")
                ended.wait(0.01)
        finally:
            ended.set()

    monkeypatch.setattr(toys.ToyVerifier, "verify", endless)
    with running(tmp_path) as r:
        job = r.post("/v1/jobs", pdf(tmp_path)).json()["id"]
        assert begun.wait(10)
        assert r.client.delete(f"/v1/jobs/{job}").status_code == 204
        assert ended.wait(10)
        assert r.post("/v1/parse", pdf(tmp_path), "b.pdf").status_code == 200


def test_a_document_that_takes_too_long_ends_with_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import time

    import toys

    verify = toys.ToyVerifier.verify
    monkeypatch.setattr(toys.ToyVerifier, "verify", lambda *a: (time.sleep(0.3), verify(*a))[1])
    with running(tmp_path, limits=Limits(document_seconds=0.4)) as r:
        answer = r.post("/v1/parse", pdf(tmp_path, 9)).json()
    assert answer["status"] == "done"
    assert 1 <= answer["pages_failed"] < 9
    assert "page 9: the document took longer than 0.4 s" in answer["results"][-1]["error"]
    assert answer["markdown"].startswith("page 1 of a.pdf\n")


def test_jobs_of_an_earlier_service_on_the_folder_are_there_again(tmp_path: Path):
    with running(tmp_path) as r:
        job = r.post("/v1/parse", pdf(tmp_path, 2)).json()["id"]
    killed, broken, other = (tmp_path / "jobs" / name for name in ("A" * 16, "b" * 16, "other"))
    (killed / "upload").mkdir(parents=True)
    (killed / "upload" / "a.pdf").write_text("")
    (killed / ".page-1.view.json.part").write_text("")
    broken.mkdir()
    (broken / "job.json").write_text(json.dumps({"status": "running"}))
    other.mkdir()
    (other / "job.json").write_text("{}")
    mine = tmp_path / "jobs" / ("c" * 16)
    mine.mkdir()
    (mine / "thesis.txt").write_text("")
    with running(tmp_path) as r:
        [kept] = r.client.get("/v1/jobs").json()
        assert (kept["id"], kept["status"], kept["pages_finished"]) == (job, "done", 2)
        assert r.client.get(f"/v1/jobs/{job}/markdown").text.startswith("page 1")
        assert len([t for t in r.events(job) if t["event"] == "page"]) == 2
        assert not killed.exists()
        assert not broken.exists()
        assert (other / "job.json").exists(), "what is no job's is nobody's to remove"
        assert (mine / "thesis.txt").exists()


def test_health_metrics_and_the_description_of_the_api(tmp_path: Path):
    with running(tmp_path) as r:
        r.post("/v1/parse", pdf(tmp_path, 2))
        r.post("/v1/parse", b"no document")
        health = r.client.get("/v1/health")
        assert (health.status_code, health.json()["status"], health.json()["target"]) == (200, "ready", "toy")
        metrics = r.client.get("/metrics").text
        assert 'hsdkit_pages_total{outcome="eos"} 2.0' in metrics
        assert 'hsdkit_refused_total{reason="document"} 1.0' in metrics
        assert 'hsdkit_requests_total{status="422"} 1.0' in metrics
        assert "hsdkit_page_seconds_count 2.0" in metrics
        assert "hsdkit_queued_pages 0.0" in metrics
        paths = r.client.get("/openapi.json").json()["paths"]
        assert {"/v1/parse", "/v1/jobs", "/v1/jobs/{id}/events", "/v1/health"} <= set(paths)
        docs = r.client.get("/docs").text
        assert "/v1/jobs/{id}/events" in docs
        assert "http://" not in docs.replace("http://127.0.0.1:8471", ""), "nothing is loaded from elsewhere"


def test_pages_of_all_jobs_take_turns():
    queue = PageQueue()
    queue.add("long", Path("a"), (1, 2, 3, 4))
    order = [queue.take(0)]
    queue.add("short", Path("b"), (7,))
    queue.add("gone", Path("c"), (1, 2))
    order += [queue.take(0) for _ in range(2)]
    queue.discard("gone")
    order += [queue.take(0) for _ in range(3)]
    assert order.pop() is None
    assert [(t.key, t.number) for t in order if t] == [("long", 1), ("long", 2), ("short", 7), ("long", 3), ("long", 4)]
    assert queue.pages == 0
    queue.add("late", Path("d"), (1,))
    queue.close()
    assert queue.take(60) is None


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\a b.pdf", "a b.pdf"),
        ("", "document"),
        ("..", "document"),
        (".hidden", "hidden"),
        ("a\x00\r\nb\u202e.pdf", "ab.pdf"),
        ("ü" * 200, "ü" * 75),
        (None, "document"),
    ],
)
def test_names_of_uploads_become_harmless(given: str | None, kept: str):
    assert safe_name(given) == kept
