"""What the service takes at most. Every limit is an answer a client can act on (413, 429, 408), never a crash."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """body_bytes: of one request. pages: that one request may ask for. queue: documents waiting or being parsed.
    uploads: bodies being received at a time. connections: open at a time. upload_seconds: for a whole body;
    upload_rate: bytes a second a body must keep up on average, after the first seconds. document_seconds: from the
    first page's start. keep_seconds, keep_jobs, keep_bytes: how long, how many and how large finished jobs are kept.
    grace_seconds: how long a shutdown waits for pages in flight."""

    body_bytes: int = 64 * MIB
    pages: int = 500
    queue: int = 32
    uploads: int = 32
    connections: int = 512
    upload_seconds: float = 120.0
    upload_rate: int = 16_384
    document_seconds: float = 3600.0
    keep_seconds: float = 3600.0
    keep_jobs: int = 200
    keep_bytes: int = 2048 * MIB
    grace_seconds: float = 30.0
