"""Who works on a job: a process on a host, and whether it is still alive.

On the same host a process is known by its number and the time it started, so that a dead one is noticed at once. Of
one elsewhere only its heartbeat is seen, a number in the job's file that goes up; when it has not moved for `LEASE`
seconds of the observer's own clock, the process counts as dead. Clocks are never compared between hosts.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass, field
from functools import cache
from sqlite3 import Row

#: Seconds between heartbeats, and without one until a process elsewhere counts as dead.
BEAT, LEASE = 10.0, 60.0


@dataclass(frozen=True, slots=True)
class Owner:
    """A process. `host` tells machines, their boots and their process namespaces apart; `started` is "" where the
    system does not say."""

    host: str
    pid: int
    started: str

    @classmethod
    def of(cls, row: Row) -> Owner:
        """The worker of a row in the job's file."""
        return cls(row["host"], row["pid"], row["started"])

    @property
    def is_here(self) -> bool:
        """Whether it can be seen from this process."""
        return self.host == _host()

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host.partition(' ')[0]}"


def this_process() -> Owner:
    return Owner(_host(), os.getpid(), _started(os.getpid()) or "")


@cache
def _host() -> str:
    """The host's name, its boot and its process namespace: process numbers mean something only within these."""
    parts = [platform.node() or "unknown"]
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            parts.append(file.read().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    except OSError:
        pass
    return " ".join(parts)


def _boot(host: str) -> str:
    """The boot in what `_host` gives; "" where the system does not say."""
    return "".join(host.split(" ")[1:2])


def _started(pid: int) -> str | None:
    """When a process started, in ticks since the boot; None when there is no such process (a zombie is none), "" where
    that cannot be found out."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *rest = file.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return None if os.path.isdir("/proc/self") else _running(pid)
    except OSError:
        return None
    return None if state in b"ZX" else rest[18].decode()


def _running(pid: int) -> str | None:
    if os.name != "posix":
        return ""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        pass
    return ""


@dataclass(slots=True)
class Observer:
    """Tells the dead from the living, as seen from this process. `local`: the folder is on a disk of this host, so that
    whoever worked there before the host was started anew is dead."""

    lease: float = LEASE
    local: bool = False
    _seen: dict[int, tuple[int, float]] = field(default_factory=dict)

    def is_dead(self, worker: int, owner: Owner, beat: int) -> bool:
        """Whether the worker with that number in the job's file is dead. `beat` is its heartbeat as it reads now."""
        if owner.is_here:
            started = _started(owner.pid)
            return started is None or bool(started and owner.started and started != owner.started)
        if self.local and _boot(owner.host) and _boot(_host()) and _boot(owner.host) != _boot(_host()):
            return True
        now = time.monotonic()
        last, since = self._seen.setdefault(worker, (beat, now))
        if last != beat:
            self._seen[worker] = (beat, now)
            return False
        return now - since > self.lease
