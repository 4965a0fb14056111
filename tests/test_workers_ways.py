"""The three ways to a library (its own environment, this process, a server), and the choice between them."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from heavy import FakeConfig, library, make_ready, page

from hsdkit.components import Environment
from hsdkit.errors import DrafterError, PluginError
from hsdkit.workers import HeavyDrafter, Server, server
from hsdkit.workers.environments import folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HSDKIT_HOME", str(tmp_path))
    return tmp_path


class Answering(BaseHTTPRequestHandler):
    """Answers by the path it is asked: what came in, or one of the ways a server fails."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        match self.path:
            case "/draft" | "/echo":
                said = {
                    "text": "page 1",
                    "pid": 0,
                    "type": self.headers["Content-Type"],
                    "body": body.decode("latin-1"),
                }
                self.reply(200, json.dumps(said).encode())
            case "/refuse":
                self.reply(422, b'{"detail":\n "no such field"}')
            case "/html":
                self.reply(200, b"<html>welcome")
            case "/slow":
                time.sleep(1)  # by then nobody waits for an answer
            case "/drip":
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                with contextlib.suppress(OSError):
                    for _ in range(100):
                        self.wfile.write(b" ")
                        time.sleep(0.02)
            case "/moved":
                self.send_response(302)
                self.send_header("Location", "/echo")
                self.send_header("Content-Length", "0")
                self.end_headers()
            case "/broken":
                self.send_response(500)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"out of memory")
            case "/long":
                self.reply(200, b"[" + b"0," * 10_000 + b"0]")
            case "/deep":
                self.reply(200, b"[" * 100_000)
            case "/cut":
                self.send_response(200)
                self.send_header("Content-Length", "100")
                self.end_headers()
                self.wfile.write(b"{")

    do_GET = do_POST

    def reply(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def where(made: HeavyDrafter) -> str:
    return made._reader.where


def test_its_own_environment_comes_first_then_this_process(home: Path):
    absent = library(home)
    with pytest.raises(PluginError) as caught:
        absent.drafter(FakeConfig())
    said = str(caught.value)
    for way in (
        "`hsdkit drafter install fake`",
        "drafter.url=http://HOST:PORT (fake-serve)",
        "install fake==1.2 beside",
    ):
        assert way in said
    here = library(home, environment=Environment("fake", absent.environment.requirements, "json", "fake"))
    assert where(here.drafter(FakeConfig())) == "this process"
    make_ready(here.environment)
    assert where(here.drafter(FakeConfig())) == "its own environment"
    assert where(here.drafter(FakeConfig(via="process"))) == "this process"
    assert where(here.drafter(FakeConfig(url="http://h:1"))) == "the server http://h:1"


def test_a_way_that_was_asked_for_and_is_not_there_is_an_error(home: Path):
    made = library(home)
    with pytest.raises(PluginError, match="cannot run in its own environment: hsdkit drafter install fake makes one"):
        made.drafter(FakeConfig(via="environment"))
    with pytest.raises(PluginError, match="cannot run in this process: surely_not_installed cannot be imported"):
        made.drafter(FakeConfig(via="process"))


def test_an_environment_for_other_pins_is_outdated(home: Path):
    made = library(home)
    make_ready(made.environment)
    made.environment.requirements.write_text("fake==2", encoding="utf-8")
    with pytest.raises(
        PluginError, match="made for other versions than this hsdkit needs; hsdkit drafter install fake"
    ):
        made.drafter(FakeConfig(via="environment"))


def test_all_three_ways_give_the_same_json(home: Path, url: str, capsys: pytest.CaptureFixture[str]):
    made = library(home)
    make_ready(made.environment)
    here = library(home, environment=Environment("fake", made.environment.requirements, "json", "fake"))
    by_worker = made.drafter(FakeConfig()).draft(page())
    in_process = here.drafter(FakeConfig(via="process")).draft(page())
    by_server = made.drafter(FakeConfig(url=url)).draft(page())
    texts = [d.regions[0].text.rsplit(" ", 1)[0] for d in (by_worker, in_process, by_server)]
    assert texts == ["page 1 by"] * 3
    assert "reading" not in capsys.readouterr().out, "standard output is for results"


def test_errors_in_process_are_those_of_the_worker(home: Path):
    environment = Environment("fake", library(home).environment.requirements, "json", "fake")
    made = library(home, environment=environment)
    config = FakeConfig(told=json.dumps({"do": {"1": "raise", "2": "exit"}}))
    drafter = made.drafter(config)
    with pytest.raises(DrafterError, match=r"^a\.png, page 1: ValueError: no such page$"):
        drafter.draft(page())
    with pytest.raises(DrafterError, match=r"^a\.png, page 1: SystemExit: the library gives up$"):
        drafter.draft(page())
    with pytest.raises(PluginError, match=r"^drafter 'fake' in this process: get weights\.bin with: fetch-weights$"):
        made.drafter(FakeConfig(told='{"load": "raise"}')).load()


def test_a_file_is_uploaded_as_a_form_with_its_fields(tmp_path: Path, url: str):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7 \x00\xff")
    said = Server(url, 5).upload("/echo", tmp_path / "a.pdf", {"one": "1", "many": ["x", "y"]})
    mark = said["type"].removeprefix("multipart/form-data; boundary=")
    parts = said["body"].split(f"--{mark}")
    assert [p.split("\r\n")[1] for p in parts[1:-1]] == [
        'Content-Disposition: form-data; name="one"',
        'Content-Disposition: form-data; name="many"',
        'Content-Disposition: form-data; name="many"',
        'Content-Disposition: form-data; name="files"; filename="a.pdf"',
    ]
    assert "Content-Type: application/pdf\r\n\r\n%PDF-1.7 \x00\xff\r\n" in parts[4]
    assert parts[-1] == "--\r\n"


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/refuse", '/refuse answers 422 Unprocessable Entity: {"detail": "no such field"}'),
     ("/html", "/html answers something that is not JSON: b'<html>welcome'"),
     ("/slow", "/slow gave no answer in 0.3 s (drafter.timeout=0.3)"),
     ("/drip", "/drip gave no answer in 0.3 s (drafter.timeout=0.3)"),
     ("/moved", "/moved answers 302 Found: it sends to /echo; name that server in drafter.url"),
     ("/broken", "/broken answers 500 Internal Server Error: "),
     ("/long", "/long answers more than 0.01 MB"),
     ("/deep", "/deep answers something that is not JSON: b'[["),
     ("/cut", "/cut broke off: IncompleteRead")],
)  # fmt: skip
def test_what_a_server_does_wrong_is_told_with_its_address(
    url: str, path: str, expected: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(server, "MOST_BYTES", 10_000 if path == "/long" else server.MOST_BYTES)
    with pytest.raises(DrafterError) as caught:
        Server(url, 0.3).post(path, {})
    assert f"{url}{expected}" in str(caught.value)


def test_a_server_that_never_answers_is_not_asked_for_ever(home: Path, url: str):
    asked: list[Path] = []

    def ask(server: Server, file: Path, options: dict[str, Any]) -> Any:
        asked.append(file)
        return server.post("/slow", {})

    made = library(home, ask=ask).drafter(FakeConfig(url=url, timeout=0.01))
    for _ in range(7):
        with pytest.raises(DrafterError) as caught:
            made.draft(page())
    assert str(caught.value) == f"a.png, page 1: {url} gave no answer to 5 pages in a row"
    assert len(asked) == 5


def test_an_answer_that_its_reader_stumbles_over_is_told(home: Path, url: str):
    made = library(home, ask=lambda server, file, options: server.post("/echo", {})["nothing"])
    with pytest.raises(DrafterError, match=rf"^a\.png, page 1: {url} answers nonsense: KeyError: 'nothing'$"):
        made.drafter(FakeConfig(url=url)).draft(page())


def test_no_server_is_told_with_how_to_start_one():
    with pytest.raises(
        DrafterError, match=r"^no server can be reached at http://127\.0\.0\.1:9/v1 .*; start one with: x"
    ):
        Server("http://127.0.0.1:9", 1, "x").get("/v1")
    with pytest.raises(DrafterError, match="no server can be reached at http://:99999999/v1"):
        Server("http://:99999999", 1).get("/v1")


def test_the_worker_does_not_see_hsdkit_s_packages(home: Path, monkeypatch: pytest.MonkeyPatch):
    """Its environment is its own: neither PYTHONPATH nor the folder of the worker's main loop is searched."""
    script = home / "looks_worker.py"
    script.write_text(
        "import sys\n\ndef load(options):\n    return lambda path: {'text': ' '.join(sys.path), 'pid': 0}\n"
    )
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    made = library(home, script=script)
    make_ready(made.environment)
    searched = made.drafter(FakeConfig()).draft(page()).regions[0].text
    assert "/somewhere" not in searched
    assert "hsdkit" not in searched.replace(str(folder(made.environment)), "")
    assert sys.prefix not in searched or sys.prefix == sys.base_prefix
