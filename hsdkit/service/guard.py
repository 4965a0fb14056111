"""What surrounds every request (ASGI): access, headers that keep browsers careful, counts, and bodies nobody read."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hsdkit.service.access import Access
from hsdkit.service.metrics import Metrics
from hsdkit.service.refusal import Refusal

#: Nothing from elsewhere, no script or style within a page, no frames around it; images also from the page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

#: Of a body that is refused so much is still taken, so that the answer arrives: bytes and seconds.
_DRAINED_BYTES, _DRAINED_SECONDS = 64 << 20, 1.0


class Guard:
    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self.app, self.access, self.metrics = app, access, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        body = _Body(receive, headers)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.metrics.requests.labels(str(message["status"])).inc()
                given = {name.lower() for name, _ in message["headers"]}
                more = {k: v for k, v in _HEADERS.items() if k.lower().encode() not in given}
                if not body.finished:
                    await body.drain()
                    more["Connection"] = "close"
                message["headers"] = [*message["headers"], *((k.lower().encode(), v.encode()) for k, v in more.items())]
            await send(message)

        try:
            self.access.check(scope["path"], headers)
        except Refusal as e:
            self.metrics.refused.labels(e.reason).inc()
            await refuse(e, answer)
            return
        await self.app(scope, body.receive, answer)


async def refuse(refusal: Refusal, send: Send) -> None:
    text = json.dumps({"error": refusal.message}).encode()
    headers = {"content-type": "application/json", "content-length": str(len(text)), **refusal.headers}
    raw = [(k.lower().encode(), v.encode()) for k, v in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": raw})
    await send({"type": "http.response.body", "body": text})


class _Body:
    """A request's body, and whether all of it has been taken."""

    def __init__(self, receive: Receive, headers: Headers) -> None:
        self._receive = receive
        self._asked = False
        self._expected = headers.get("expect", "").lower() == "100-continue"
        self.finished = "content-length" not in headers and "transfer-encoding" not in headers
        self.finished |= headers.get("content-length") == "0"

    async def receive(self) -> Message:
        self._asked = True
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            self.finished = True
        return message

    async def drain(self) -> None:
        """Take what is still coming, within limits: an answer to someone who is still sending would be lost."""
        if self._expected and not self._asked:  # it waits to be told whether to send at all
            return
        end, size = time.monotonic() + _DRAINED_SECONDS, 0
        try:
            while not self.finished and size < _DRAINED_BYTES:
                message: Any = await asyncio.wait_for(self.receive(), max(0.01, end - time.monotonic()))
                size += len(message.get("body", b""))
        except TimeoutError:
            pass
