"""The options that every drafter with a library elsewhere has."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

Via = Literal["auto", "environment", "process", "server"]

#: Of seconds, pages and MB; a system's clock takes no endless waiting.
_MOST = 1_000_000


@dataclass(frozen=True)
class WorkerOptions:
    """via: where the library runs: `environment` is its own (`hsdkit drafter install NAME`), `process` is this one,
    `server` is the one at `url`; `auto` takes the first of server, environment and process that is there.
    url: address of the library's own HTTP server.
    timeout: seconds a page may take before it goes without a draft.
    start_timeout: seconds the library may take to load its models.
    max_pages: pages after which its worker process is replaced; libraries leak memory.
    max_megabytes: memory in MB above which its worker process is replaced, looked at after each page.
    """

    via: Via = "auto"
    url: str = ""
    timeout: float = 120.0
    start_timeout: float = 300.0
    max_pages: int = 500
    max_megabytes: int = 6000

    def __post_init__(self) -> None:
        if self.via == "server" and not self.url:
            raise ValueError("via=server: needs the server's address, url=http://HOST:PORT")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"url={self.url}: must begin with http:// or https://")
        if self.url and self.via not in ("auto", "server"):
            raise ValueError(f"via={self.via}: does not go with url={self.url}; leave one out")
        defaults = {f.name: f.default for f in fields(self)}
        for name in ("timeout", "start_timeout", "max_pages", "max_megabytes"):
            value = getattr(self, name)
            if not 0 < value <= _MOST:
                raise ValueError(f"{name}={value}: must be above 0 and at most {_MOST:,}")
            if self.via == "process" and value != defaults[name]:
                raise ValueError(
                    f"{name}={value}: bounds a worker, and via=process has none; the processes that prepare pages have "
                    "bounds (preparing, prepare_seconds, page_memory)"
                )

    def refuse_with_url(self, *names: str) -> None:
        """Raise `ValueError` for one of these options that is set although the server at `url` has its own."""
        defaults = {f.name: f.default for f in fields(self)}
        for name in names:
            value = getattr(self, name)
            if self.url and value != defaults[name]:
                raise ValueError(f"{name}={value}: the server at url={self.url} has its own; leave one out")

    def options(self) -> dict[str, Any]:
        """What the library is told, as plain JSON: all that changes what it says of a page, and nothing else."""
        return {}
