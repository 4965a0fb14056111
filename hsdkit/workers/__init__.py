"""Drafters whose library lives elsewhere: in an environment of its own, in this process if it happens to be importable,
or behind an HTTP server. All three ways give the library's own JSON, which one pure function makes regions of."""

from hsdkit.workers.drafter import HeavyDrafter, Library
from hsdkit.workers.options import WorkerOptions
from hsdkit.workers.server import Server

__all__ = ["HeavyDrafter", "Library", "Server", "WorkerOptions"]
