"""Strangers who do what no client does: whatever it is, it is theirs alone, and never an answer of 5xx."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from services import pdf, process, running

from hsdkit.errors import OutputError
from hsdkit.report.safe_html import render
from hsdkit.service import runner
from hsdkit.service.jobs import Jobs
from hsdkit.service.limits import Limits


@pytest.mark.parametrize("origin", ["http://[", "http://[::1]]", "[", "//", "null"])
def test_origins_that_are_no_addresses_are_refused(tmp_path: Path, origin: str):
    with running(tmp_path) as r:
        assert r.client.get("/v1/jobs", headers={"Origin": origin}).status_code == 403


def test_a_body_of_two_lengths_is_refused_and_the_connection_ended(tmp_path: Path):
    with running(tmp_path) as r:
        answer = r.client.post(
            "/v1/parse", content=iter([b"x"]), headers={"content-length": "1", "transfer-encoding": "chunked"}
        )
        assert (answer.status_code, answer.headers["connection"]) == (400, "close")


@pytest.mark.parametrize("charset", ["undefined", "idna", "unicode_escape", "utf-16", "rot13", "none"])
def test_forms_in_odd_charsets_are_refused(tmp_path: Path, charset: str):
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n' + pdf(tmp_path).read_bytes()
    body += b'\r\n--b\r\nContent-Disposition: form-data; name="pages"\r\n\r\n\\ud800\r\n--b--\r\n'
    with running(tmp_path) as r:
        kind = f"multipart/form-data; boundary=b; charset={charset}"
        answer = r.client.post("/v1/jobs", content=body, headers={"content-type": kind})
        assert answer.status_code == 422
        assert "\n" not in answer.json()["error"]


def test_options_are_one_line(tmp_path: Path):
    with running(tmp_path) as r:
        for value in ("1\n2", "1\x00", "1\u202e2"):
            answer = r.post("/v1/jobs", pdf(tmp_path), pages=value)
            assert (answer.status_code, answer.json()["error"][:20]) == (422, "pages: holds signs t")


def test_forms_that_are_bombs_are_refused(tmp_path: Path):
    part = b'--b\r\nContent-Disposition: form-data; name="%d"\r\n\r\nx\r\n'
    bodies = [
        b"".join(part % i for i in range(5000)),
        b"--b\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(5000)) + b"\r\n",
        b"--b\r\nX: " + b"y" * 1_000_000,
        b"\r" * 1_000_000,
        b"--b--\r\n" + b"x\r\n" * 300_000,
        b"\x1f\x8b\x08",
    ]
    with running(tmp_path) as r:
        for body in bodies:
            answer = r.client.post(
                "/v1/jobs", content=body, headers={"content-type": "multipart/form-data; boundary=b"}
            )
            assert answer.status_code == 422


def test_a_bug_is_an_answer_in_json_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with running(tmp_path) as r:
        with monkeypatch.context() as patch:
            patch.setattr(Jobs, "all", lambda self: 1 / 0)
            answer = r.client.get("/v1/jobs")
        assert (answer.status_code, answer.json()["error"][:32]) == (500, "a bug of hsdkit: ZeroDivisionErr")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert r.service.metrics.requests.labels("500")._value.get() == 1


def test_a_page_that_cannot_be_kept_is_its_document_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    save = runner.save_page

    def picky(job, page):  # type: ignore[no-untyped-def]
        if job.source == "bad.pdf":
            raise AssertionError("odd")
        return save(job, page)

    monkeypatch.setattr(runner, "save_page", picky)
    monkeypatch.setattr(runner, "jpeg", lambda image: 1 / 0)
    with running(tmp_path) as r:
        answer = r.post("/v1/parse", pdf(tmp_path, 3), "bad.pdf")
        assert (answer.status_code, answer.json()["status"]) == (422, "failed")
        assert answer.json()["error"] == "bad.pdf, page 1: cannot be kept: AssertionError: odd"
        assert r.post("/v1/parse", pdf(tmp_path), "good.pdf").status_code == 200
        assert r.client.get("/v1/health").status_code == 200


def test_tables_that_the_reader_of_html_does_not_take_are_text(tmp_path: Path):
    assert render("a <table><![x[ y") == "<p>a</p>\n<p>&lt;table&gt;&lt;![x[ y</p>"
    with running(tmp_path, "verifier.text=<table><![x[ y") as r:
        assert r.post("/v1/parse", pdf(tmp_path)).status_code == 200


def test_errors_of_the_disk_name_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        try:
            raise OSError(28, "No space left on device", str(tmp_path))
        except OSError as e:
            raise OutputError(f"{tmp_path}: cannot be written") from e

    for what in ("save_page", "save_document"):
        with running(tmp_path) as r, monkeypatch.context() as patch:
            patch.setattr(runner, what, full)
            error = r.post("/v1/parse", pdf(tmp_path)).json()["error"]
            assert error.endswith("cannot be kept: No space left on device")
            assert str(tmp_path) not in error


def test_a_report_that_has_no_room_is_refused_and_can_be_had_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from hsdkit.service import results

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with running(tmp_path) as r:
        job = r.post("/v1/parse", pdf(tmp_path)).json()["id"]
        with monkeypatch.context() as patch:
            patch.setattr(results.ReportWriter, "add", full)
            assert r.client.get(f"/v1/jobs/{job}/report").status_code == 429
        before = r.service.jobs.get(job).bytes
        assert r.client.get(f"/v1/jobs/{job}/report").status_code == 200
        assert r.service.jobs.get(job).bytes > before, "its size counts"
        assert not (tmp_path / "jobs" / job / "report.part").exists()


def test_a_long_write_holds_nobody_else_up(tmp_path: Path):
    with running(tmp_path) as r:
        job = r.post("/v1/parse", pdf(tmp_path)).json()["id"]
        with r.service.jobs.get(job).writing:  # a report of 500 pages is being written, say
            gone = threading.Thread(target=r.client.delete, args=(f"/v1/jobs/{job}",))
            gone.start()
            assert r.client.get(f"/v1/jobs/{job}").status_code == 200
            assert r.client.get("/v1/jobs").status_code == 200
            assert r.post("/v1/parse", pdf(tmp_path)).status_code == 200
        gone.join()
        assert r.client.get(f"/v1/jobs/{job}").status_code == 404


def test_a_result_that_is_waited_for_is_not_tidied_away(tmp_path: Path):
    with running(tmp_path, limits=Limits(keep_seconds=0)) as r:
        job = r.service.jobs.get(r.post("/v1/parse", pdf(tmp_path)).json()["id"])
        with r.service.jobs.held(job):
            r.service.jobs.tidy()
            assert r.client.get(f"/v1/jobs/{job.id}/markdown").status_code == 200
        r.service.jobs.tidy()
        assert r.client.get(f"/v1/jobs/{job.id}/markdown").status_code == 404


def test_a_folder_is_one_services_alone(tmp_path: Path):
    first = Jobs(tmp_path / "jobs", Limits())
    with pytest.raises(OutputError, match="another hsdkit serve uses it"):
        Jobs(tmp_path / "jobs", Limits())
    first.close()
    Jobs(tmp_path / "jobs", Limits()).close()


@pytest.mark.parametrize(
    "change",
    [{"bytes": "much"}, {"finished": 3}, {"ended": "now"}, {"status": "odd"}, {"source": "../../x"}, {"error": 1}],
)
def test_facts_that_make_no_sense_are_not_taken_up(tmp_path: Path, change: dict[str, object]):
    with running(tmp_path) as r:
        job = r.post("/v1/parse", pdf(tmp_path)).json()["id"]
    facts = tmp_path / "jobs" / job / "job.json"
    facts.write_text(json.dumps(json.loads(facts.read_text()) | change))
    jobs = Jobs(tmp_path / "jobs", Limits())
    assert len(jobs) == 0
    assert not facts.exists()
    jobs.close()


def test_results_that_the_disk_has_lost_are_told_as_such(tmp_path: Path):
    with running(tmp_path) as r:
        job = r.post("/v1/parse", pdf(tmp_path, 2)).json()["id"]
        folder = tmp_path / "jobs" / job
        (folder / "page-1.view.json").write_bytes(b"\xff")
        (folder / "page-2.view.json").unlink()
        (folder / "result.json").unlink()
        pages = [t["page"] for t in r.events(job) if t["event"] == "page"]
        assert [p["error"] for p in pages] == [f"a.pdf, page {n}: this result is not there any more" for n in (1, 2)]
        assert r.client.get(f"/v1/jobs/{job}/json").status_code == 404
        assert r.client.get(f"/v1/jobs/{job}/report").status_code == 404


def test_text_of_an_attempt_that_failed_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import toys

    tries = iter((1, 2))

    def verify(self, page, draft, target, engine, on_text=None):  # type: ignore[no-untyped-def]
        on_text(0, "some ")
        on_text(0, "words")
        time.sleep(0.3)
        if next(tries) == 1:
            raise RuntimeError("broke")
        return original(self, page, draft, target, engine)

    original = toys.ToyVerifier.verify
    monkeypatch.setattr(toys.ToyVerifier, "verify", verify)
    with running(tmp_path, "on_failure=[retry]") as r:
        job = r.post("/v1/jobs", pdf(tmp_path)).json()["id"]
        seen, states = "", []
        for told in r.events(job):
            states.append(told.get("status"))
            if told["event"] == "text":
                seen = seen[: told["at"]] + told["text"]
                assert len(seen) <= len("some words")
        assert seen == "some words"
        assert "running" in states, "told when it begins, not only with its first page"


def test_paths_are_not_completed_by_the_host_header(tmp_path: Path):
    with running(tmp_path) as r:
        assert r.client.get("/v1/jobs/", follow_redirects=False).status_code == 404


def test_the_description_names_the_token_and_the_kinds_of_answers(tmp_path: Path):
    with running(tmp_path, token="s3cret") as r:
        api = r.client.get("/openapi.json").json()
        assert api["security"] == [{"token": []}]
        routes = {(m, p): route for p, methods in api["paths"].items() for m, route in methods.items()}
        kinds = {p: list(route["responses"].get("200", {}).get("content", [])) for (_, p), route in routes.items()}
        assert kinds["/v1/jobs/{id}/markdown"] == ["text/markdown"]
        assert kinds["/v1/jobs/{id}/events"] == ["application/x-ndjson"]
        assert kinds["/v1/jobs/{id}/pages/{number}/image"] == ["image/jpeg"]
        assert sorted(kinds["/v1/parse"]) == ["application/json", "text/markdown"]
        assert "HTTPValidationError" not in json.dumps(api)
        for route in routes.values():
            assert "401" in route["responses"] or route.get("security") == []


def test_connections_that_stall_are_ended(tmp_path: Path):
    """In a later request's headers, and by not reading what was asked for."""
    before = "from hsdkit.service import server; server._HEAD_SECONDS = server._STALLED = 0.5"
    with process(tmp_path, before=before) as (_, address):
        host, port = address.removeprefix("http://").split(":")
        ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        with socket.create_connection((host, int(port)), timeout=3) as late:
            late.sendall(ask)
            late.recv(100)
            late.sendall(b"GET / HT")
            while late.recv(100_000):
                pass
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            deaf.settimeout(10)
            deaf.connect((host, int(port)))
            deaf.sendall(ask * 1000)
            with pytest.raises((ConnectionResetError, BrokenPipeError)):
                _send_on(deaf)


def _send_on(connection: socket.socket) -> None:
    for _ in range(100):
        time.sleep(0.1)
        connection.sendall(b"G")


def test_a_body_that_is_half_sent_when_the_service_ends_is_answered(tmp_path: Path):
    with process(tmp_path, before="from hsdkit.service import server; server._LAST_ANSWERS = 1") as (server, address):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=20) as half:
            half.sendall(
                b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                b"Content-Length: 5000\r\n\r\n--b\r\n"
            )
            time.sleep(0.3)
            server.terminate()
            assert half.recv(1000).startswith(b"HTTP/1.1 503")
        assert server.wait(20) in (0, -signal.SIGTERM)
        assert server.stderr is not None
        assert "Traceback" not in server.stderr.read()


def test_a_working_folder_that_has_been_deleted_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with running(tmp_path) as r:
        assert r.post("/v1/parse", pdf(tmp_path)).status_code == 200
