"""SIGTERM: pages in flight are finished, everything is saved, the process ends in time."""

from __future__ import annotations

import json
import signal
import threading
import time
from pathlib import Path

import httpx
from services import pdf, process

SLOW = (
    "import time\nverify = toys.ToyVerifier.verify\n"
    "toys.ToyVerifier.verify = lambda *a: (time.sleep(1.5 if a[1].source != 'stuck.pdf' else 600), verify(*a))[1]"
)


def post(address: str, path: str, file: Path) -> httpx.Response:
    return httpx.post(address + path, files={"file": (file.name, file.read_bytes())}, timeout=30)


def test_sigterm_finishes_the_page_in_flight_and_saves_what_is_done(tmp_path: Path):
    waiting: list[httpx.Response] = []
    with process(tmp_path, "--folder", "kept", before=SLOW) as (server, address):
        file = pdf(tmp_path, 9)
        job = post(address, "/v1/jobs", file).json()["id"]
        waiter = threading.Thread(target=lambda: waiting.append(post(address, "/v1/parse", file)))
        waiter.start()
        with httpx.stream("GET", f"{address}/v1/jobs/{job}/events", timeout=30) as stream:
            told = []
            for line in stream.iter_lines():
                told.append(json.loads(line))
                if told[-1]["event"] == "page" and server.poll() is None and told[-1]["page"]["number"] == 1:
                    server.send_signal(signal.SIGTERM)
                    assert httpx.get(f"{address}/v1/health").status_code == 503
                    assert post(address, "/v1/jobs", file).status_code == 503
        assert told[-1]["event"] == "end"
        assert told[-1]["status"] == "stopped"
        waiter.join(20)
        assert server.wait(20) in (0, -signal.SIGTERM)
    facts = json.loads((tmp_path / "kept" / job / "job.json").read_text())
    done = facts["pages_finished"]
    assert 1 <= done < 9
    assert facts["error"] == f"the service was shut down after {done} of 9 pages"
    text = (tmp_path / "kept" / job / "result.md").read_text()
    assert text.count("page ") == done
    assert waiting[0].status_code == 503
    assert waiting[0].json()["status"] == "stopped"


def test_a_page_that_never_ends_does_not_hold_up_the_end(tmp_path: Path):
    with process(tmp_path, "--grace-seconds", "1", before=SLOW) as (server, address):
        post(address, "/v1/jobs", pdf(tmp_path, 1, "stuck.pdf"))
        time.sleep(0.5)
        start = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) in (0, -signal.SIGTERM)
        assert time.monotonic() - start < 10


def test_a_model_that_cannot_be_loaded_ends_the_service_with_one_line(tmp_path: Path):
    broken = (
        "from hsdkit.errors import TargetError\n"
        "def load(self): raise TargetError('toy-checkpoint: is not there')\n"
        "toys.ToyEngine.load = load\n"
        "import services; services.wait_ready = lambda _: None"
    )
    import services

    wait = services.wait_ready
    services.wait_ready = lambda address: None
    try:
        with process(tmp_path, before=broken) as (server, _):
            assert server.stderr is not None
            assert server.stderr.read() == "error: toy-checkpoint: is not there\n"
            assert server.wait(20) == 1
    finally:
        services.wait_ready = wait
