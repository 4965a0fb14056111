"""Limits, broken files and strangers: every refusal has its status and one line, never a 5xx."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest
from services import pdf, process, running
from toys import TOY, toy_registry

from hsdkit.config import compose
from hsdkit.service.access import Access
from hsdkit.service.counting import Counting
from hsdkit.service.limits import Limits
from hsdkit.service.refusal import Refusal


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "bad.pdf: the file is empty (0 bytes)"),
        (b"hello", "bad.pdf: "),
        (b"%PDF-1.7\n1 0 obj<<", "bad.pdf: "),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "bad.pdf: "),
    ],
)
def test_broken_files_are_told_in_one_line(tmp_path: Path, data: bytes, said: str):
    with running(tmp_path) as r:
        answer = r.post("/v1/parse", data, "bad.pdf")
        assert answer.status_code == 422
        assert answer.json()["error"].startswith(said)
        assert "\n" not in answer.json()["error"]
        assert str(tmp_path) not in answer.text
        assert not any((tmp_path / "jobs").glob("[!.]*")), "nothing is kept of it"


def test_a_file_that_hangs_its_reader_is_told_and_the_next_is_read(tmp_path: Path):
    registry = toy_registry()
    counting = Counting(compose([*TOY, "prepare_seconds=2"], registry=registry))
    try:
        counting.start()
        assert asyncio.run(counting.count(pdf(tmp_path, 3))) == 3
        for counter in counting._all:
            counter._ready()
            os.kill(counter._started().pid, signal.SIGSTOP)
        with pytest.raises(Refusal, match=r"^a.pdf: the process that opened it took more than 2 s") as e:
            asyncio.run(counting.count(tmp_path / "a.pdf"))
        assert e.value.status == 422
        assert asyncio.run(counting.count(tmp_path / "a.pdf")) == 3
    finally:
        counting.close()


def test_requests_that_cannot_be_understood_are_refused(tmp_path: Path):
    with running(tmp_path) as r:
        post, file = r.client.post, {"file": ("a.pdf", pdf(tmp_path).read_bytes())}
        refusals = [
            (post("/v1/parse"), 415, "send a form"),
            (post("/v1/parse", json={"a": 1}), 415, "send a form"),
            (post("/v1/parse", data={"pages": "1"}), 422, "send the document as `file`"),
            (post("/v1/parse", files=file, data={"verifier.tau": "0.1"}), 422, "no option 'verifier.tau'"),
            (post("/v1/parse", files=file, data={"pages": "x"}), 422, "pages=x: "),
            (post("/v1/parse", files=file, data={"pages": "9"}), 422, "a.pdf, page 9: out of range"),
            (post("/v1/parse", files=file, data={"format": "docx"}), 422, "format=docx"),
            (post("/v1/parse", files=file, data={"async": "maybe"}), 422, "async=maybe"),
            (post("/v1/parse", files=file, data={"url": "http://example.org/a.pdf"}), 422, "send the document as"),
            (post("/v1/parse", data={"url": "http://example.org/a.pdf"}), 422, "url: this service takes no addresses"),
            (post("/v1/parse", files=[("file", b"a"), ("file", b"b")]), 422, "the form cannot be read: Too many files"),
            (post("/v1/parse", files=file, data={"pages": "1" * 3000}), 422, "pages: longer than"),
            (post("/v1/parse", files={"document": b"a"}), 422, "no option 'document'"),
            (post("/v1/parse", content=b"x", headers={"content-type": "multipart/form-data"}), 422, "the form cannot"),
            (r.client.put("/v1/parse"), 405, "Method Not Allowed"),
            (r.client.get("/v2/parse"), 404, "Not Found"),
        ]
    for answer, status, said in refusals:
        assert (answer.status_code, answer.json()["error"][: len(said)]) == (status, said)


def test_bodies_and_documents_that_are_too_large_are_refused(tmp_path: Path):
    with running(tmp_path, limits=Limits(body_bytes=50_000, pages=3)) as r:
        large = r.post("/v1/parse", b"%PDF-" + b"x" * 60_000)
        assert large.status_code == 413

        def undeclared():  # type: ignore[no-untyped-def]
            yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
            for _ in range(100):
                yield b"x" * 1000

        streamed = r.client.post(
            "/v1/parse", content=undeclared(), headers={"content-type": "multipart/form-data; boundary=b"}
        )
        assert streamed.status_code == 413
        many = r.post("/v1/parse", pdf(tmp_path, 4))
        assert many.status_code == 413
        assert many.json()["error"] == "a.pdf: 4 pages, at most 3 in one request; choose some with pages=1-3"
        assert r.post("/v1/parse", pdf(tmp_path, 4), pages="2-4").status_code == 200


def test_a_full_queue_is_told_at_once_and_opens_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import toys

    go = threading.Event()
    verify = toys.ToyVerifier.verify
    monkeypatch.setattr(toys.ToyVerifier, "verify", lambda *a: (go.wait(10), verify(*a))[1])
    with running(tmp_path, limits=Limits(queue=2)) as r:
        jobs = [r.post("/v1/jobs", pdf(tmp_path)).json()["id"] for _ in range(2)]
        full = r.post("/v1/jobs", pdf(tmp_path))
        assert full.status_code == 429
        assert int(full.headers["retry-after"]) > 0
        assert 'hsdkit_refused_total{reason="queue"} 1.0' in r.client.get("/metrics").text
        go.set()
        for job in jobs:
            assert r.ended(job)["status"] == "done"
        assert r.post("/v1/parse", pdf(tmp_path)).status_code == 200


def test_a_full_disk_is_told_and_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from hsdkit.service import runner, upload

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with running(tmp_path) as r:
        with monkeypatch.context() as patch:
            patch.setattr(upload, "_copy", full)
            answer = r.post("/v1/parse", pdf(tmp_path))
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "30")
            assert "No space left on device" in answer.json()["error"]
        with monkeypatch.context() as patch:
            patch.setattr(runner, "save_page", full)
            answer = r.post("/v1/parse", pdf(tmp_path, 3))
            assert (answer.status_code, answer.json()["status"]) == (422, "failed")
            assert "No space left on device" in answer.json()["error"]
        assert r.post("/v1/parse", pdf(tmp_path)).status_code == 200


def test_kept_jobs_are_bounded_in_number_size_and_age(tmp_path: Path):
    with running(tmp_path, limits=Limits(keep_jobs=2)) as r:
        ids = [r.post("/v1/parse", pdf(tmp_path)).json()["id"] for _ in range(4)]
        r.service.jobs.tidy()
        assert {j["id"] for j in r.client.get("/v1/jobs").json()} == set(ids[2:])
        assert {p.name for p in (tmp_path / "jobs").glob("[!.]*")} == set(ids[2:])
    with running(tmp_path, limits=Limits(keep_bytes=1)) as r:
        r.service.jobs.tidy()
        assert len(r.service.jobs) == 0
    with running(tmp_path, limits=Limits(keep_seconds=0)) as r:
        assert r.post("/v1/parse", pdf(tmp_path)).status_code == 200
        r.service.jobs.tidy()
        assert len(r.service.jobs) == 0


def test_a_token_is_asked_for_everywhere_but_on_the_pages_and_health(tmp_path: Path):
    with running(tmp_path, token="s3cret") as r:
        for path in ("/", "/page/page.js", "/v1/health", "/docs"):
            assert r.client.get(path).status_code == 200
        for path in ("/v1/jobs", "/metrics", "/v1/jobs/x/events", "/v1/limits", "/page/../v1/jobs"):
            assert r.client.get(path).status_code == 401
        for given in ("Bearer wrong", "Bearer ", "Basic s3cret", "s3cret", "Bearer s3cret-\xfc"):
            answer = r.client.get("/v1/jobs", headers={"Authorization": given.encode("latin-1")})
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
        assert r.post("/v1/parse", pdf(tmp_path)).status_code == 401
        good = {"Authorization": "Bearer s3cret"}
        assert r.client.get("/v1/jobs", headers=good).status_code == 200


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:8471", None, 200),
        ("127.0.0.1", None, 200),
        ("[::1]:8471", None, 200),
        ("evil.example", None, 403),
        ("127.0.0.1.evil.example:8471", None, 403),
        ("", None, 403),
        ("localhost:8471", "http://localhost:8471", 200),
        ("localhost:8471", "http://evil.example", 403),
        ("localhost:8471", "null", 403),
    ],
)
def test_web_pages_of_others_cannot_ask(tmp_path: Path, host: str, origin: str | None, status: int):
    with running(tmp_path) as r:
        headers = {"Host": host} | ({"Origin": origin} if origin else {})
        answer = r.client.get("/v1/jobs", headers=headers)
        assert answer.status_code == status
        assert "access-control-allow-origin" not in answer.headers
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_proxy_in_front_may_have_a_name(tmp_path: Path):
    access = Access(None, loopback=True, names=frozenset({"docs.example.org"}))
    access.check("/v1/jobs", {"host": "docs.example.org", "origin": "https://docs.example.org"})
    with pytest.raises(Refusal):
        access.check("/v1/jobs", {"host": "example.org"})


def test_the_command_line_loads_no_server():
    code = "import sys, hsdkit.cli.app; print(sorted({'fastapi', 'uvicorn', 'starlette', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_the_command_refuses_to_listen_for_others_without_a_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from commands import hsdkit

    monkeypatch.delenv("HSDKIT_TOKEN", raising=False)
    monkeypatch.setattr("hsdkit.service.server.serve", lambda *a, **k: None)
    refused = hsdkit("serve", "--host", "0.0.0.0")
    assert refused.exit_code == 2
    assert "set a token" in refused.stderr
    assert hsdkit("serve", "--host", "0.0.0.0", "--no-token").exit_code == 0
    monkeypatch.setenv("HSDKIT_TOKEN", "secret")
    assert hsdkit("serve", "--host", "0.0.0.0").exit_code == 0
    (tmp_path / "empty").write_text(" \n")
    assert "a token is letters" in hsdkit("serve", "--token-file", str(tmp_path / "empty")).stderr
    assert "cannot be read" in hsdkit("serve", "--token-file", str(tmp_path / "none")).stderr
    assert "documents are sent to it" in hsdkit("serve", "a.pdf").stderr
    assert "has no meaning" in hsdkit("serve", "pages=1").stderr


def test_a_crowd_of_connections_and_silent_ones_are_cut_off(tmp_path: Path):
    import socket

    before = "from hsdkit.service import server, limits\nserver._HEAD_SECONDS = 0.5\n"
    before += (
        "limits.Limits.__init__.__defaults__ = tuple(4 if d == 512 else d for d in limits.Limits.__init__.__defaults__)"
    )
    with process(tmp_path, before=before) as (_, address):
        host, port = address.removeprefix("http://").split(":")
        crowd = [socket.create_connection((host, int(port))) for _ in range(8)]
        for connection in crowd:
            connection.settimeout(10)
        crowd[0].sendall(b"GET /v1/health HTTP/1.1\r\nHost: ")
        answers = [connection.recv(100) for connection in crowd]
        for connection in crowd:
            connection.close()
    assert answers[0] == b"", "closed in the middle of its headers"
    assert sum(a.startswith(b"HTTP/1.1 429") for a in answers) == 4
    assert sum(a == b"" for a in answers) == 4


def test_a_refusal_reaches_who_is_still_sending(tmp_path: Path):
    with process(tmp_path, "--max-mb", "1") as (_, address), httpx.Client() as client:
        for _ in range(3):
            large = client.post(f"{address}/v1/parse", files={"file": ("a.pdf", b"x" * 8_000_000)}, timeout=30)
            assert large.status_code == 413
        assert client.get(f"{address}/v1/health").status_code == 200


def test_slow_bodies_are_cut_off(tmp_path: Path):
    import socket

    before = "from hsdkit.service import server, upload; upload._LONGEST_PAUSE = 0.5; server._LINGERING = 0.5"
    with process(tmp_path, before=before) as (_, address):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(
                b"POST /v1/parse HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
                b"Content-Length: 5000\r\n\r\n--b\r\n"
            )
            assert connection.recv(2000).startswith(b"HTTP/1.1 408")
            with contextlib.suppress(ConnectionResetError):
                while connection.recv(2000):  # until it is closed, though its body is not at its end
                    pass
