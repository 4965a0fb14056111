"""The little of HTTP that a vLLM server is asked with: JSON, and answers as server-sent events."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from hsdkit.errors import TargetError, described

#: Most of a refusal that is quoted.
_QUOTED = 300


class Unreachable(TargetError):
    """Nothing answers there."""


class Refused(TargetError):
    """The server's own error, with its status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Http:
    """`url` is the server's root; `seconds` how long it may say nothing. Every method raises `TargetError`."""

    def __init__(self, url: str, api_key: str | None, seconds: float) -> None:
        root = url.rstrip("/")
        self.url = root.removesuffix("/v1")  # what clients of the OpenAI interface are given
        self._seconds = seconds
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        with self._open(path, None) as answer:
            said = self._guarded(path, answer.read)
        try:
            return json.loads(said)
        except ValueError as e:
            raise TargetError(f"{self.url}{path} answers something that is not JSON: {said[:60]!r}") from e

    def events(self, path: str, payload: Any) -> Iterator[dict[str, Any]]:
        """Post JSON; each event of the answer. Closed early, it closes the connection, which ends the request."""
        with self._open(path, json.dumps(payload).encode()) as answer:
            while line := self._guarded(path, answer.readline):
                kind, _, data = line.partition(b":")
                data = data.strip()
                if kind != b"data":
                    continue
                if data == b"[DONE]":
                    return
                event = self._event(path, data)
                if "error" in event:
                    error = event["error"]
                    said = error.get("message") if isinstance(error, dict) else error
                    raise TargetError(f"{self.url}{path}: {str(said)[:_QUOTED]}")
                yield event
        raise TargetError(f"{self.url}{path} broke off in the middle of an answer")

    def _event(self, path: str, data: bytes) -> dict[str, Any]:
        try:
            event = json.loads(data)
        except ValueError:
            event = None
        if not isinstance(event, dict):
            raise TargetError(f"{self.url}{path} answers an event that is not JSON: {data[:60]!r}")
        return event

    def _open(self, path: str, body: bytes | None) -> Any:
        import urllib.error  # `hsdkit plugins` needs none of it
        import urllib.request

        from hsdkit.workers.server import opened

        address = self.url + path
        headers = self._headers | ({"Content-Type": "application/json"} if body is not None else {})
        try:
            request = urllib.request.Request(address, body, headers)
            return opened(request, self._seconds)
        except urllib.error.HTTPError as e:
            raise Refused(f"{address} answers {e.code} {e.reason}: {_refusal(e)}", e.code) from e
        except TimeoutError as e:
            raise self._silent(path) from e
        except (OSError, ValueError) as e:  # URLError, an address that is none
            reason = getattr(e, "reason", e)
            if isinstance(reason, TimeoutError):
                raise self._silent(path) from e
            raise Unreachable(f"no server can be reached at {self.url}: {reason}") from e
        except Exception as e:  # http.client has errors of its own
            raise Unreachable(f"{address} broke off: {described(e)}") from e

    def _guarded(self, path: str, read: Any) -> bytes:
        try:
            said: bytes = read()
            return said
        except TimeoutError as e:
            raise self._silent(path) from e
        except Exception as e:  # http.client has errors of its own
            raise TargetError(f"{self.url}{path} broke off: {described(e)}") from e

    def _silent(self, path: str) -> TargetError:
        return Unreachable(f"{self.url}{path} said nothing for {self._seconds:g} s (engine.timeout)")


def _refusal(error: Any) -> str:
    """What the server says to it: vLLM's own message where there is one."""
    try:
        with error:
            said = error.read(16 * _QUOTED).decode("utf-8", "replace")
    except Exception:  # cut short, or too late: the error itself is known
        return "nothing more"
    with contextlib.suppress(ValueError, KeyError, TypeError):
        said = json.loads(said)["error"]["message"]
    return " ".join(str(said).split())[:_QUOTED] or "nothing more"
