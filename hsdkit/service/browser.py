"""The pages for people: the one to drop a document on, and the list of what can be asked (OpenAPI), both without
network."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

#: The report's own policy, and no window to the service it came from.
REPORT_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox"

_FOLDER = Path(__file__).parent / "page"
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page/api.js": ("api.js", "text/javascript; charset=utf-8"),
    "/page/draw.js": ("draw.js", "text/javascript; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
}


def add_pages(app: FastAPI) -> None:
    for path, (name, kind) in _FILES.items():
        app.add_api_route(path, _file(name, kind), include_in_schema=False)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        env = Environment(loader=PackageLoader("hsdkit.service", "page"), autoescape=True, undefined=StrictUndefined)
        return HTMLResponse(env.get_template("docs.html.j2").render(api=app.openapi()))


def _file(name: str, kind: str) -> Callable[[], Awaitable[FileResponse]]:
    async def answer() -> FileResponse:
        return FileResponse(_FOLDER / name, media_type=kind)

    return answer
