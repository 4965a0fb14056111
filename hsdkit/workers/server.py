"""The library behind its own HTTP server: files and JSON posted to it, with errors that say what to do."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hsdkit.errors import DrafterError, HsdkitError, PluginError, described

_TYPES = {".pdf": "application/pdf", ".png": "image/png"}

#: Most of a server's refusal that is quoted.
_QUOTED = 300

#: Most bytes of an answer: no page's JSON is longer.
MOST_BYTES = 200_000_000

#: Pages in a row to which a server gives no answer, after which it is not asked again.
MOST_SILENCES = 5


class ServerSilent(DrafterError):
    """It did not answer in time."""


class Server:
    """`url` is the server's root. Every method raises `DrafterError` naming the address and what went wrong.

    start: the command that starts such a server, told when none answers. seconds: how long an answer may take.
    """

    def __init__(self, url: str, seconds: float, start: str = "") -> None:
        self.url, self.seconds, self._hint = url.rstrip("/"), seconds, start

    def get(self, path: str) -> Any:
        """The JSON at that path."""
        return self._json(path)

    def post(self, path: str, payload: Any) -> Any:
        """Post JSON, return JSON."""
        return self._json(path, json.dumps(payload).encode(), "application/json")

    def upload(
        self, path: str, file: Path, fields: Mapping[str, str | list[str]] | None = None, name: str = "files"
    ) -> Any:
        """Post a file and fields as a form (multipart), return JSON. A list is a field given several times."""
        mark = secrets.token_hex(16)
        parts: list[bytes] = []
        for key, value in (fields or {}).items():
            for one in [value] if isinstance(value, str) else value:
                parts.append(f'--{mark}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{one}\r\n'.encode())
        head = f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; filename="{file.name}"\r\n'
        kind = _TYPES.get(file.suffix, "application/octet-stream")
        parts += [f"{head}Content-Type: {kind}\r\n\r\n".encode(), file.read_bytes(), f"\r\n--{mark}--\r\n".encode()]
        return self._json(path, b"".join(parts), f"multipart/form-data; boundary={mark}")

    def _json(self, path: str, body: bytes | None = None, kind: str = "") -> Any:
        import urllib.error  # the commands that only list components need none of it
        import urllib.request

        address = self.url + path
        deadline = time.monotonic() + self.seconds
        try:
            request = urllib.request.Request(address, body, {"Content-Type": kind} if kind else {})
            with opened(request, self.seconds) as answer:
                said = _read(answer, deadline)
        except urllib.error.HTTPError as e:
            raise DrafterError(f"{address} answers {e.code} {e.reason}: {_refusal(e, deadline)}") from e
        except (OSError, ValueError) as e:  # URLError, a connection cut, an address that is none
            reason = getattr(e, "reason", e)
            if isinstance(reason, TimeoutError):
                raise ServerSilent(
                    f"{address} gave no answer in {self.seconds:g} s (drafter.timeout={self.seconds:g})"
                ) from e
            start = f"; start one with: {self._hint}" if self._hint else ""
            raise DrafterError(f"no server can be reached at {address} (drafter.url): {reason}{start}") from e
        except Exception as e:  # http.client has errors of its own
            raise DrafterError(f"{address} broke off: {described(e)}") from e
        if len(said) > MOST_BYTES:
            raise DrafterError(f"{address} answers more than {MOST_BYTES / 1e6:g} MB")
        try:
            return json.loads(said)
        except (ValueError, RecursionError) as e:
            raise DrafterError(f"{address} answers something that is not JSON: {said[:60]!r}") from e


def opened(request: Any, seconds: float) -> Any:
    """The answer to a `urllib.request.Request`, each piece of it in so many seconds. To be sent elsewhere is an
    `HTTPError`: what was posted would be lost on the way."""
    import urllib.request

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    return urllib.request.build_opener(NoRedirects).open(request, timeout=seconds)


def _read(answer: Any, deadline: float, most: int = MOST_BYTES) -> bytes:
    """The body, or a little more than `most` of it. Raises `TimeoutError` at the deadline, however steadily it drips
    (the socket's own time limit is for each piece)."""
    from http.client import IncompleteRead

    found = bytearray()
    while len(found) <= most:
        if not (piece := answer.read1(65536)):
            if answer.length:  # bytes that were announced and have not come
                raise IncompleteRead(bytes(found), answer.length)
            break
        found += piece
        if time.monotonic() > deadline:
            raise TimeoutError
    return bytes(found)


def _refusal(error: Any, deadline: float) -> str:
    """What a server says to an error, as far as it does; where it would send us instead."""
    if to := error.headers.get("Location"):
        return f"it sends to {to}; name that server in drafter.url"
    try:
        with error:
            said = _read(error, deadline, 4 * _QUOTED)
    except Exception:  # cut short, or too late: the error itself is known
        said = b""
    return " ".join(said.decode("utf-8", "replace").split())[:_QUOTED] or "nothing more"


class Served:
    """Same interface as `Supervisor`."""

    def __init__(self, server: Server, ask: Callable[[Server, Path, dict[str, Any]], Any], options: dict[str, Any]):
        self._server, self._ask, self._options = server, ask, options
        self._silences = 0
        self.where = f"the server {server.url}"
        self.version = ""  # nor what models it was started with: its drafts are not kept

    def load(self) -> None:
        """The server loads its models itself; whether it is there shows with the first page."""

    def read(self, path: Path) -> Any:
        """Raises `DrafterError`, and `PluginError` when the server has been given up: each silence costs its time."""
        if self._silences >= MOST_SILENCES:
            raise PluginError(f"{self._server.url} gave no answer to {MOST_SILENCES} pages in a row")
        try:
            found = self._ask(self._server, path, self._options)
        except ServerSilent:
            self._silences += 1
            raise
        except HsdkitError:
            self._silences = 0
            raise
        except Exception as e:  # an answer may be any JSON
            raise DrafterError(f"{self._server.url} answers nonsense: {described(e)}") from e
        self._silences = 0
        return found

    def close(self) -> None:
        pass

    def take_notes(self) -> tuple[str, ...]:
        return ()
