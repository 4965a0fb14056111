"""Processes seen from outside, by what /proc says of them (Linux only)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def resident(pid: int) -> int:
    """Bytes of memory; 0 for a process that has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def descendants(pid: int) -> Iterator[int]:
    for task in Path("/proc").glob(f"{pid}/task/*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from descendants(child)
