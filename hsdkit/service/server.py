"""The service on a port (uvicorn): connections that are bounded and must say something, and an end in order."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import tempfile
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from hsdkit.errors import ConfigError
from hsdkit.pipeline import Pipeline
from hsdkit.service.access import Access, is_loopback
from hsdkit.service.app import create_app
from hsdkit.service.limits import Limits
from hsdkit.service.service import Service

log = logging.getLogger(__name__)

#: Seconds in which a connection must have said what it wants, and for which what is still coming of a refused body is
#: thrown away: an answer to someone who is still sending would be lost if the connection were closed at once.
_HEAD_SECONDS, _LINGERING = 10.0, 5.0

#: Seconds in which some of what was sent must have been read.
_STALLED = 30.0

#: Seconds for what is being sent or received when all else has ended.
_LAST_ANSWERS = 10

_BACKLOG = 2048

_SAID = b'{"error": "too many connections; try again later"}'
_BUSY = (
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nretry-after: 5\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_SAID), _SAID)
)


def serve(
    pipeline: Pipeline, *, host: str, port: int, token: str | None, limits: Limits, folder: Path | None, urls: bool,
    names: frozenset[str], started: Callable[[str], None],
) -> str | None:  # fmt: skip
    """Serve until SIGTERM or Ctrl-C. `started` is told the address. Without a folder, results go when the service does.
    Returns the error for which it could not go on, None after an end in order. Raises `ConfigError`, `OutputError`."""
    with ExitStack() as stack:
        listening = stack.enter_context(_listen(host, port))
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hsdkit-serve-")))
        folder = folder.absolute()
        server: _Server

        def failed(error: str) -> None:
            server.should_exit = True

        service = Service(pipeline, folder, limits, urls=urls, failed=failed)
        app = create_app(service, Access(token, is_loopback(host), names))
        config = uvicorn.Config(
            app, http=_connections(limits), ws="none", lifespan="on", log_config=None, access_log=False,
            server_header=False, log_level="error", proxy_headers=False, timeout_graceful_shutdown=_LAST_ANSWERS,
        )  # fmt: skip
        server = _Server(config, service)
        at = listening.getsockname()
        started(f"http://{f'[{at[0]}]' if ':' in at[0] else at[0]}:{at[1]}")
        server.run([listening])
        if not service.runner.drain(0.0):  # a page that cannot be ended must not keep the process
            stack.close()
            os._exit(0)
        return service.error


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family[0], socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(family[4])
        listening.listen(_BACKLOG)  # now: two that are started at once may both bind
    except OSError as e:
        raise ConfigError(f"--host {host} --port {port}: cannot listen there: {e.strerror or e}") from None
    return listening


class _Server(uvicorn.Server):
    """On the first signal the service is drained while its health says so and watchers are told; then it ends. A second
    signal does not wait."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self._draining = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._draining:
            self.should_exit = self.force_exit = True
            return
        self._draining = True
        self._service.runner.draining = True
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self) -> None:
        self._service.runner.drain(self._service.limits.grace_seconds)
        self.should_exit = True


def _connections(limits: Limits) -> type[asyncio.Protocol]:
    class Connection(H11Protocol):
        """Refused where there are too many; closed when it says nothing, never comes to the end of a request's headers,
        or does not read what it asked for."""

        _waiting: asyncio.TimerHandle | None = None
        _stalled: asyncio.TimerHandle | None = None
        _ending: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.write(_BUSY)
                transport.close()
                return
            self._wait_for_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is not h11.IDLE:
                _cancel(self._waiting)
                self._waiting = None
            elif self._waiting is None:
                self._wait_for_head()

        def _wait_for_head(self) -> None:
            self._waiting = self.loop.call_later(_HEAD_SECONDS, self._still_waiting)

        def _still_waiting(self) -> None:
            if self.conn.their_state is h11.IDLE:
                self._end()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stalled = self.loop.call_later(_STALLED, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            _cancel(self._stalled)

        def _end(self) -> None:
            """Close, also when what is left to be sent is never read."""
            self.transport.close()
            if self._ending is None:
                self._ending = self.loop.call_later(_STALLED, self.transport.abort)

        def timeout_keep_alive_handler(self) -> None:
            super().timeout_keep_alive_handler()
            self._end()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.transport.is_closing():
                self._end()
            elif self.conn.their_state is h11.SEND_BODY:
                self.loop.call_later(_LINGERING, self._still_sending, self.cycle)

        def _still_sending(self, answered: object) -> None:
            if self.cycle is answered and self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
                self._end()

        def connection_lost(self, exc: Exception | None) -> None:
            for timer in (self._waiting, self._stalled, self._ending):
                _cancel(timer)
            super().connection_lost(exc)

    return Connection


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
