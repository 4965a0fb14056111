"""Documents by address: public ones only, whatever the name, the redirect or the way an address is written."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from services import pdf, running

from hsdkit.service import fetching
from hsdkit.service.limits import Limits
from hsdkit.service.refusal import Refusal


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1",
        "255.255.255.255", "::1", "::", "fe80::1", "fd00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::", "ff02::1", "fec0::1", "::7f00:1", "::ffff:0:7f00:1", "64:ff9b:1::7f00:1", "2001:0:7f00:1::",
    ],
)  # fmt: skip
def test_addresses_within_the_network_are_not_public(address: str):
    assert not fetching.public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:4700::1111", "64:ff9b::808:808"])
def test_addresses_of_the_internet_are(address: str):
    assert fetching.public(address)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("file:///etc/passwd", "must begin with http"),
        ("gopher://example.org/", "must begin with http"),
        ("ftp://example.org/a.pdf", "must begin with http"),
        ("//example.org/a.pdf", "must begin with http"),
        ("http://", "must begin with http"),
        ("http://[::1", "is no address"),
        ("http://user:pw@example.org/", "user name or password"),
        ("http://example.org:22/", "ports 80 and 443"),
        ("http://example.org:99999/", "is no address"),
        ("http://127.0.0.1/a.pdf", "not public"),
        ("http://a..b/", "is no address"),
        (f"http://{'a' * 70}.example/", "is no address"),
        ("http://ex\u00e4mple.org/a.pdf", "percent-encoded"),
        ("http://example.org/\u00fc.pdf", "percent-encoded"),
        ("http://example.org/a\r\nX: y", "percent-encoded"),
        ("http://\uff11\uff12\uff17.0.0.1/", "percent-encoded"),
        ("http://localhost/a.pdf", "not public"),
        ("http://[::1]/a.pdf", "not public"),
        ("http://2130706433/a.pdf", "not "),
        ("http://0x7f.1/a.pdf", "not "),
        ("http://169.254.169.254/latest/meta-data", "not public"),
    ],
)
def test_other_addresses_are_refused(tmp_path: Path, url: str, said: str):
    with pytest.raises(Refusal, match=said) as e:
        asyncio.run(fetching.fetch(url, tmp_path / "a", Limits()))
    assert e.value.status == 422


class Site(BaseHTTPRequestHandler):
    document = b""

    def do_GET(self) -> None:
        if self.path == "/around":
            self.send_response(302)
            self.send_header("Location", "/around")
            self.end_headers()
        elif self.path == "/inside":
            self.send_response(302)
            self.send_header("Location", "http://10.0.0.1/secret")
            self.end_headers()
        elif self.path == "/odd":
            self.send_response(302)
            self.send_header("Location", "http://a..b/\u00fc")
            self.end_headers()
        elif self.path == "/moved":
            self.send_response(301)
            self.send_header("Location", "/report.pdf")
            self.end_headers()
        elif self.path == "/missing":
            self.send_error(404)
        else:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.document)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A site that counts as public, on a port that counts as usual."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(Site, "document", pdf(tmp_path, 2).read_bytes())
    monkeypatch.setattr(fetching, "_PORTS", (80, 443, server.server_port))
    public = fetching.public
    monkeypatch.setattr(fetching, "public", lambda address: address == "127.0.0.1" or public(address))
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_documents_are_fetched_where_that_is_allowed(tmp_path: Path, site: str):
    with running(tmp_path, urls=True) as r:
        for path in ("/report.pdf?x=1", "/moved"):
            answer = r.client.post("/v1/parse", data={"url": site + path, "pages": "2"})
            assert answer.status_code == 200, answer.text
        assert r.client.get("/v1/jobs").json()[1]["source"] == "report.pdf"
        for path, said in [
            ("/around", "url: redirects more than 5 times"),
            ("/inside", "url: leads to an address that is not public"),
            ("/missing", "url: answers 404"),
            ("/odd", "url: holds signs that an address has percent-encoded (a name in another script: as xn--)"),
        ]:
            answer = r.client.post("/v1/parse", data={"url": site + path})
            assert (answer.status_code, answer.json()["error"]) == (422, said)
    with running(tmp_path, urls=True, limits=Limits(body_bytes=300)) as r:
        assert r.client.post("/v1/parse", data={"url": f"{site}/report.pdf"}).status_code == 413
