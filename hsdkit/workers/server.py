"""The library behind its own HTTP server: files and JSON posted to it, with errors that say what to do."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hsdkit.errors import DrafterError

_TYPES = {".pdf": "application/pdf", ".png": "image/png"}

#: Most of a server's refusal that is quoted.
_QUOTED = 300


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
        try:
            request = urllib.request.Request(address, body, {"Content-Type": kind} if kind else {})
            with urllib.request.urlopen(request, timeout=self.seconds) as answer:
                said = answer.read()
        except urllib.error.HTTPError as e:
            with e:
                quoted = " ".join(e.read().decode("utf-8", "replace").split())[:_QUOTED]
            raise DrafterError(f"{address} answers {e.code} {e.reason}: {quoted or 'nothing more'}") from e
        except TimeoutError as e:
            raise DrafterError(
                f"{address} gave no answer in {self.seconds:g} s (drafter.timeout={self.seconds:g})"
            ) from e
        except (OSError, ValueError) as e:  # URLError, a connection cut, an address that is none
            reason = getattr(e, "reason", e)
            if isinstance(reason, TimeoutError):
                reason = f"no answer in {self.seconds:g} s (drafter.timeout={self.seconds:g})"
            start = f"; start one with: {self._hint}" if self._hint else ""
            raise DrafterError(f"no server can be reached at {address} (drafter.url): {reason}{start}") from e
        except Exception as e:  # http.client has errors of its own
            raise DrafterError(f"{address} broke off: {type(e).__name__}: {e}") from e
        try:
            return json.loads(said)
        except (ValueError, RecursionError) as e:
            raise DrafterError(f"{address} answers something that is not JSON: {said[:60]!r}") from e


class Served:
    """Same interface as `Supervisor`."""

    def __init__(self, server: Server, ask: Callable[[Server, Path, dict[str, Any]], Any], options: dict[str, Any]):
        self._server, self._ask, self._options = server, ask, options
        self.where = f"the server {server.url}"
        self.version = server.url

    def load(self) -> None:
        """The server loads its models itself; whether it is there shows with the first page."""

    def read(self, path: Path) -> Any:
        """Raises `DrafterError`."""
        return self._ask(self._server, path, self._options)

    def close(self) -> None:
        pass

    def take_notes(self) -> tuple[str, ...]:
        return ()
