"""Messages between this process and those that prepare pages: a JSON object and raw bytes (pixels) each.

JSON and not pickle: a process that has read a hostile file must not be able to make this one run code.
"""

from __future__ import annotations

import json
import struct
from typing import IO, Any

_HEAD = struct.Struct(">IQ")

#: Most bytes of a message's JSON: a draft of 300,000 characters in 2,000 regions takes less.
_MOST_JSON = 64_000_000


class WireError(Exception):
    """The other end is gone, or sends what is no message."""


def send(to: IO[bytes], message: dict[str, Any], blob: bytes = b"") -> None:
    """Raises `OSError` when the other end is gone."""
    said = json.dumps(message).encode()
    to.write(_HEAD.pack(len(said), len(blob)) + said)
    to.write(blob)
    to.flush()


def receive(at: IO[bytes], most: int = 0) -> tuple[dict[str, Any], bytes]:
    """The next message, with at most so many raw bytes. Raises `WireError`."""
    said, blob = _HEAD.unpack(_exactly(at, _HEAD.size))
    if said > _MOST_JSON or blob > most:
        raise WireError("sent a message that is too long")
    try:
        message = json.loads(_exactly(at, said))
    except (ValueError, RecursionError) as e:
        raise WireError(f"sent something that is no message ({type(e).__name__})") from None
    if not isinstance(message, dict):
        raise WireError("sent something that is no message")
    return message, _exactly(at, blob)


def _exactly(at: IO[bytes], count: int) -> bytes:
    try:
        found = at.read(count)
    except (OSError, ValueError):  # closed at this end
        found = b""
    if len(found) < count:
        raise WireError("ended")
    return found
