"""Who may ask: the host's name, the page a browser is on, the token. Pure functions over headers."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from hsdkit.service.refusal import Refusal

#: Answered to anybody: the pages without their data, and what tells a load balancer that the service is there.
OPEN = frozenset({"/", "/docs", "/openapi.json", "/v1/health"})


def is_loopback(host: str) -> bool:
    """Whether a name or address to listen on can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """`token`: None where none is asked for. `loopback`: the service listens on this machine only, so that any other
    name in the Host header is a web page's that had its own name lead here (DNS rebinding); but for `names`, those of a
    proxy in front."""

    token: str | None
    loopback: bool
    names: frozenset[str] = frozenset()

    def check(self, path: str, headers: Mapping[str, str]) -> None:
        """Raises `Refusal`. `headers` are found by their names in small letters."""
        if "content-length" in headers and "transfer-encoding" in headers:
            raise Refusal(400, "the body has two lengths (Content-Length and Transfer-Encoding)", "form")
        host = headers.get("host", "")
        if self.loopback and (name := _name(host)) not in self.names and not is_loopback(name):
            raise Refusal(403, "the Host header names another machine: ask for localhost (or see --name)", "host")
        if (origin := headers.get("origin")) and _site(origin) != host.lower():
            raise Refusal(403, "requests of other sites' pages are not answered", "host")
        if self.token is not None and not _is_open(path) and not self._knows(headers.get("authorization", "")):
            raise Refusal(401, "a token is needed: send the header Authorization: Bearer TOKEN", "token")

    def _knows(self, authorization: str) -> bool:
        scheme, _, given = authorization.partition(" ")
        known = (self.token or "").encode()
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode("latin-1"), known)


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith("/page/")


def _site(origin: str) -> str | None:
    """Name and port of an Origin header; None for what is no address."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def _name(host: str) -> str:
    """The name of a Host header, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
