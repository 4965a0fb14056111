"""Documents by address (`--allow-urls`): http and https only, no address inside the network, within the limits.

What is checked is the address that is connected to, at every redirect: a name that changes between check and
connection gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpcore

from hsdkit.service.limits import MIB, Limits
from hsdkit.service.refusal import Refusal

_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = (80, 443)

#: IPv4 by way of a translator (NAT64), and all that the internet has of IPv6: beside it are old ways to write addresses
#: of IPv4 and of one's own site.
_TRANSLATED, _ASSIGNED = ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("2000::/3")


async def fetch(url: str, path: Path, limits: Limits) -> None:
    """Raises `Refusal` (413, 422)."""
    try:
        async with asyncio.timeout(limits.upload_seconds):
            await _fetch(url, path, limits)
    except UnicodeError:  # of a name in the address it redirects to, or one that no resolver takes
        raise _refused("is no address") from None
    except TimeoutError:
        raise _refused(f"took longer than {limits.upload_seconds:g} s") from None
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as e:
        raise _refused(f"cannot be fetched: {type(e).__name__}") from None


async def _fetch(url: str, path: Path, limits: Limits) -> None:
    async with httpcore.AsyncConnectionPool(network_backend=PublicOnly(), max_connections=1) as pool:
        for _ in range(_MOST_REDIRECTS + 1):
            check(url)
            async with pool.stream(
                "GET", url, headers={"User-Agent": "hsdkit", "Accept-Encoding": "identity"}
            ) as answer:
                if answer.status in _REDIRECTS:
                    where = dict(answer.headers).get(b"location") or dict(answer.headers).get(b"Location", b"")
                    url = urljoin(url, where.decode("latin-1"))
                    continue
                if answer.status != 200:
                    raise _refused(f"answers {answer.status}")
                size = 0
                with path.open("wb") as out:
                    async for chunk in answer.aiter_stream():
                        size += len(chunk)
                        if size > limits.body_bytes:
                            raise Refusal(
                                413, f"the document is larger than {limits.body_bytes / MIB:g} MiB", "body_size"
                            )
                        out.write(chunk)
                return
    raise _refused(f"redirects more than {_MOST_REDIRECTS} times")


def check(url: str) -> None:
    """Raises `Refusal` for what is no plain address of a document."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refused("is no address") from None
    if not url.isascii() or not url.isprintable():
        raise _refused("holds signs that an address has percent-encoded (a name in another script: as xn--)")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _refused("must begin with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise _refused("may not hold a user name or password")
    if port is not None and port not in _PORTS:
        raise _refused("may only name the ports 80 and 443")


def public(address: str) -> bool:
    """Whether an address is one of the internet, also where it is one of IPv4 within IPv6."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast
    inner = ip.ipv4_mapped or ip.sixtofour
    if ip in _TRANSLATED:
        inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if inner is not None:
        return public(str(inner))
    return ip.is_global and ip in _ASSIGNED


class PublicOnly(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only; the name is looked up once, and what was checked is what is connected to."""

    def __init__(self) -> None:
        self._backend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            raise _refused("names a host that is not known") from None
        addresses = [str(entry[4][0]).partition("%")[0] for entry in found]
        if not addresses or not all(map(public, addresses)):
            raise _refused("leads to an address that is not public")
        return await self._backend.connect_tcp(addresses[0], port, timeout, local_address, socket_options)

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        raise _refused("must begin with http:// or https://")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _refused(why: str) -> Refusal:
    return Refusal(422, f"url: {why}", "url")
