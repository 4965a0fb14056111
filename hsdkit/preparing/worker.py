"""The process that prepares pages; `process.py` starts it and is the other end of its pipes.

It is told a `Recipe` (pickled: that comes from the parent) and its memory bound, says `{"ready": ...}` or
`{"fatal": ...}`, and then for each task
- `{"page": ...}` with its pixels (RGB, row by row) as soon as it is rendered,
- `{"ask": "cost"}` where whether drafting pays depends on the cost of decoding, which it is told in answer,
- `{"done": ...}`: the draft, or the page's error,
or where page 0 is asked for `{"count": ...}`, the number of the file's pages, or `{"error": ...}`.
Nothing of it knows a model, and torch is never imported.
"""

from __future__ import annotations

import contextlib
import os
import pickle
from pathlib import Path
from typing import IO, Any

from hsdkit.documents import Page
from hsdkit.errors import ConfigError, DocumentError, PluginError
from hsdkit.pays import Experience, PlainCost
from hsdkit.plugins import plugins
from hsdkit.preparing.local import Local, Recipe
from hsdkit.preparing.page import Opening, PageTask, Prepared
from hsdkit.preparing.wire import WireError, receive, send
from hsdkit.results_json import draft_to_json
from hsdkit.workers.serve import describe, end_with_parent, resident_bytes, take_channels

#: Most bytes of a recipe.
_MOST = 10_000_000


def main() -> None:
    at_answers, at_requests = take_channels()
    end_with_parent()
    with contextlib.suppress(WireError, OSError):  # the parent needs no more
        _serve(os.fdopen(at_answers, "wb"), os.fdopen(at_requests, "rb"))


def _serve(answers: IO[bytes], requests: IO[bytes]) -> None:
    told, pickled = receive(requests, _MOST)
    try:
        recipe: Recipe = pickle.loads(pickled)
        bound_memory(told["megabytes"])
        drafter = recipe.build(plugins())
        if load := getattr(drafter, "load", None):
            load()
    except (ConfigError, PluginError) as e:
        send(answers, {"fatal": type(e).__name__, "error": str(e)})
        return
    local = Local(recipe.opening, drafter)
    send(answers, {"ready": True})

    def cost() -> PlainCost:
        send(answers, {"ask": "cost"})
        known, _ = receive(requests)
        return PlainCost(**(known | {"experience": Experience(**known["experience"])}))

    def seen(page: Page) -> None:
        send(answers, {"page": _described(page)}, page.image.tobytes())

    while True:
        asked, _ = receive(requests)
        with contextlib.suppress(OSError):  # not there any more
            os.chdir(asked["folder"])
        task = PageTask(Path(asked["path"]), asked["number"], "", asked["rotate"], asked["password"])
        if task.number == 0:
            send(answers, _count(recipe.opening, task) | {"rss": resident_bytes()})
            continue
        try:
            prepared = local.prepare(task, cost if asked["judge"] else None, seen)
        except (ConfigError, PluginError) as e:
            send(answers, {"fatal": type(e).__name__, "error": str(e)})
            return
        send(answers, {"done": _outcome(prepared), "rss": resident_bytes()})


def _count(opening: Opening, task: PageTask) -> dict[str, Any]:
    try:
        with opening.open(task.path, password=task.password) as document:
            return {"count": document.count}
    except DocumentError as e:
        return {"error": str(e)}
    except Exception as e:  # whatever a file does to its reader
        return {"error": f"{task.path.name}: {describe(e)}"}


def _described(page: Page) -> dict[str, Any]:
    return {
        "width": page.width,
        "height": page.height,
        "source": page.source,
        "dpi": page.dpi,
        "notes": list(page.notes),
        "pdf": page.read_pdf is not None,
    }


def _outcome(prepared: Prepared) -> dict[str, Any]:
    return {
        "draft": draft_to_json(prepared.draft),
        "notes": list(prepared.notes),
        "characters": prepared.characters,
        "error": prepared.error,
        "seconds": prepared.seconds,
    }


def bound_memory(megabytes: int) -> None:
    """Asking for more fails (`MemoryError`, or the library at fault ends the process). Not on Windows."""
    try:
        import resource
    except ImportError:
        return
    # Not the address space, of which threads and allocators reserve far more than they use. And the soft limit only: a
    # drafter's own worker process has a bound of its own.
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = megabytes * 1_000_000
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    with contextlib.suppress(ValueError, OSError):  # systems that know no such limit
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
