"""What surrounds every request (ASGI): access, headers that keep browsers careful, counts."""

from __future__ import annotations

import asyncio
import contextlib
import logging

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hsdkit.service.access import Access
from hsdkit.service.metrics import Metrics
from hsdkit.service.refusal import Refusal, stopping

log = logging.getLogger(__name__)

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


class Guard:
    def __init__(self, app: ASGIApp, access: Access, metrics: Metrics) -> None:
        self.app, self.access, self.metrics = app, access, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        begun = False

        async def answer(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                self.metrics.requests.labels(str(message["status"])).inc()
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self.access.check(scope["path"], Headers(scope=scope))
        except Refusal as e:
            self.metrics.refused.labels(e.reason).inc()
            await refused_with(e)(scope, receive, answer)
            return
        try:
            await self.app(scope, receive, answer)
        except asyncio.CancelledError:  # the service ends, and has waited long enough for this
            with contextlib.suppress(Exception):  # part of an answer of known length: it is cut
                if begun:
                    await answer({"type": "http.response.body"})
                else:
                    await refused_with(stopping())(scope, receive, answer)
        except Exception as e:  # a bug costs its request alone, and the client is told in one line
            log.exception("%s %s failed", scope["method"], scope["path"])
            if begun:
                raise
            bug = Refusal(500, f"a bug of hsdkit: {type(e).__name__}; its log says more", "bug")
            await refused_with(bug)(scope, receive, answer)


def refused_with(refusal: Refusal) -> JSONResponse:
    return JSONResponse({"error": refusal.message}, refusal.status, refusal.headers)
