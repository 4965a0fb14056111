"""What drafting libraries said of a page, recorded (tests/data/native), and the same with every value made nonsense."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from PIL import Image

from hsdkit.documents import Page
from hsdkit.regions import Draft

_FOLDER = Path(__file__).parent / "data" / "native"
_NONSENSE: tuple[Any, ...] = (None, -1, 1e300, math.nan, math.inf, True, "", "x", [], [1, "y"], {}, {"type": []})


def native(name: str) -> Any:
    return json.loads((_FOLDER / name).read_text(encoding="utf-8"))


def blank_page(width: int = 1000, height: int = 1400) -> Page:
    return Page(1, Image.new("RGB", (width, height), "white"), "page.pdf")


def spoiled(recorded: Any) -> Iterator[tuple[str, Any]]:
    """The recorded JSON with one value replaced, or one key taken out, at a time; and where."""
    for path in _paths(recorded):
        for value in _NONSENSE:
            yield f"{path} = {value!r}", _changed(recorded, path, value)
        if isinstance(path[-1], str):
            yield f"{path} gone", _changed(recorded, path, ...)


def stays_sound(convert: Callable[[Any, Page], Draft], recorded: Any) -> None:
    """Whatever one value is made, the conversion gives regions on the page, or says that it cannot by `ValueError`."""
    page = blank_page()
    for where, junk in spoiled(recorded):
        try:
            regions = convert(junk, page).regions
        except ValueError as e:
            if str(e).startswith("it"):  # "it has no ..."
                continue
            raise
        for region in regions:
            assert 0 <= region.box.x0 < region.box.x1 <= page.width, where
            assert 0 <= region.box.y0 < region.box.y1 <= page.height, where
            assert isinstance(region.text, str), where


def _paths(
    value: Any, path: tuple[Any, ...] = (), kind: tuple[Any, ...] = (), seen: Counter[tuple[Any, ...]] | None = None
) -> Iterator[tuple[Any, ...]]:
    """Where there is a value, two of a kind: a hundred paragraphs are read by the same lines of code."""
    seen = Counter() if seen is None else seen
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        inside = (*kind, _kind(child) if isinstance(value, list) and isinstance(child, dict) else key)
        seen[inside] += 1
        if seen[inside] <= 2:
            yield (*path, key)
            yield from _paths(child, (*path, key), inside, seen)


def _kind(entry: dict[str, Any]) -> Any:
    return next((entry[k] for k in ("type", "block_label", "label") if k in entry), "entry")


def _changed(recorded: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at the path, `...` for none; what is not on the way to it is shared."""
    result = recorded.copy()
    if len(path) > 1:
        result[path[0]] = _changed(recorded[path[0]], path[1:], value)
    elif value is ...:
        del result[path[0]]
    else:
        result[path[0]] = value
    return result


@contextmanager
def serving(answer: Any, status: int = 200) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """A server that gives every POST this JSON; its address, and the (path, body) of the requests it has had."""
    seen: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
