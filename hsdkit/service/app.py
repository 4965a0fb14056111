"""The routes. What they do is `service.Service`'s; here are paths, documentation and the shapes of answers."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from hsdkit.errors import OutputError
from hsdkit.results_json import dumps
from hsdkit.service import browser, results
from hsdkit.service.access import Access
from hsdkit.service.events import events, wait_over
from hsdkit.service.guard import Guard, refused_with
from hsdkit.service.job import Job, State
from hsdkit.service.refusal import Refusal
from hsdkit.service.schemas import Facts, Health, JobFacts, Parsed, ParsedPage, failures
from hsdkit.service.service import Service

ABOUT = """Documents in, Markdown out: PDF, PNG, JPEG, WebP, BMP and TIFF, parsed by a vision-language model.

Errors are {"error": "one line"}. 413, 422: the document or an option is at fault. 429 and 503: come again after the
seconds that Retry-After says."""

_REFUSED = failures(400, 401, 403, 408, 413, 415, 422, 429, 503)

#: What both routes take; read by hand (`upload.receive`), so that limits hold while the body comes.
_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "The document."},
                        "url": {
                            "type": "string",
                            "description": "Its address instead; only where the service allows it.",
                        },
                        "pages": {"type": "string", "description": "Pages to parse, counted from 1: 1-3,7 or 5-."},
                        "password": {"type": "string", "description": "Of an encrypted PDF; kept until it is parsed."},
                        "format": {"type": "string", "enum": ["json", "markdown"], "default": "json"},
                        "async": {"type": "boolean", "default": False, "description": "Answer at once with a job."},
                    },
                }
            }
        },
    }
}


def create_app(service: Service, access: Access) -> FastAPI:
    """The service as an ASGI application; parsing starts with its lifespan and ends with it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with service.running():
            yield

    app = FastAPI(
        title="hsdkit", version=version("hsdkit"), description=ABOUT, lifespan=lifespan, docs_url=None, redoc_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    app.add_middleware(Guard, access=access, metrics=service.metrics)
    _errors(app, service)
    _parsing(app, service)
    _jobs(app, service)
    _state(app, service)
    browser.add_pages(app)
    if access.token is not None:
        described = app.openapi()  # kept by the application
        described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"token": []}]
        described["paths"]["/v1/health"]["get"]["security"] = []
    return app


def _errors(app: FastAPI, service: Service) -> None:
    @app.exception_handler(Refusal)
    async def refused(request: Request, e: Refusal) -> JSONResponse:
        service.metrics.refused.labels(e.reason).inc()
        return refused_with(e)

    @app.exception_handler(FileNotFoundError)
    async def gone(request: Request, e: FileNotFoundError) -> JSONResponse:
        return JSONResponse({"error": "these results are not there, or no longer"}, 404)

    @app.exception_handler(HTTPException)
    async def http(request: Request, e: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(e.detail)}, e.status_code, dict(e.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, e: RequestValidationError) -> JSONResponse:
        first = e.errors()[0]
        return JSONResponse({"error": f"{first['loc'][-1]}: {first['msg']}"}, 422)


def _parsing(app: FastAPI, service: Service) -> None:
    @app.post(
        "/v1/parse", response_model=Parsed, openapi_extra=_FORM, tags=["parse"],
        responses=_REFUSED | failures(404, 409) | {202: {"model": JobFacts}} | _of_kind("text/markdown"),
    )  # fmt: skip
    async def parse(request: Request) -> Response:
        """Parse a document and wait for it. Whoever goes away meanwhile gives it up."""
        job, options = await service.accept(request)
        if options.get("async", "false").lower() in ("true", "1"):
            return _taken(job)
        with service.jobs.held(job):
            while not await wait_over(job, 1.0):
                if await request.is_disconnected():
                    await asyncio.to_thread(service.runner.cancel, job)
            if options.get("format") == "markdown" and job.state is State.DONE:
                return _file(job.markdown, "text/markdown; charset=utf-8")
            status = {State.DONE: 200, State.FAILED: 422, State.STOPPED: 503, State.CANCELLED: 409}[job.state]
            answer = await asyncio.to_thread(lambda: dumps(_parsed(job)))
            return Response(answer, status, {"X-Job": job.id}, "application/json")

    @app.post(
        "/v1/jobs", status_code=202, response_model=JobFacts, responses=_REFUSED, openapi_extra=_FORM, tags=["jobs"]
    )
    async def submit(request: Request) -> Response:
        """Hand in a document and get its job at once."""
        job, _ = await service.accept(request)
        return _taken(job)


def _of_kind(kind: str) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`: what it answers is (also) a file of that kind."""
    return {200: {"content": {kind: {"schema": {"type": "string"}}}}}


def _taken(job: Job) -> JSONResponse:
    return JSONResponse(job.facts(), 202, {"Location": f"/v1/jobs/{job.id}", "X-Job": job.id})


def _parsed(job: Job) -> dict[str, Any]:
    pages = []
    for number in sorted(job.finished):
        view = json.loads(job.file(number, ".view.json").read_text(encoding="utf-8"))
        pages.append({k: v for k, v in view.items() if k in ParsedPage.model_fields})
    markdown = job.markdown.read_text(encoding="utf-8") if job.markdown.exists() else ""
    return job.facts() | {"markdown": markdown, "results": pages}


def _jobs(app: FastAPI, service: Service) -> None:
    one_at_a_time = asyncio.Semaphore(1)  # reports: they take long, and threads that others need
    gone = failures(401, 403, 404, 422)
    early = failures(401, 403, 404, 409, 422)

    @app.get("/v1/jobs", response_model=list[JobFacts], responses=failures(401, 403), tags=["jobs"])
    async def list_jobs() -> Any:
        """The jobs that are kept, newest first."""
        return [job.facts() for job in service.jobs.all()]

    @app.get("/v1/jobs/{id}", response_model=JobFacts, responses=gone, tags=["jobs"])
    async def status(id: str) -> Any:
        """How far a job is."""
        return service.jobs.get(id).facts()

    @app.delete("/v1/jobs/{id}", status_code=204, responses=gone, tags=["jobs"])
    async def delete(id: str) -> Response:
        """Give a job up and delete all that is kept of it."""
        job = service.jobs.get(id)
        await asyncio.to_thread(service.runner.cancel, job)
        await asyncio.to_thread(service.jobs.remove, job)
        return Response(status_code=204)

    @app.get(
        "/v1/jobs/{id}/events", responses=gone | _of_kind("application/x-ndjson"), tags=["jobs"],
        response_class=StreamingResponse,
    )  # fmt: skip
    async def watch(id: str) -> StreamingResponse:
        """The job as it happens, a JSON object a line: `job`, `text` as it grows, `page` when one is finished, `end`.
        Whoever comes late is told everything from the start."""
        return StreamingResponse(events(service.jobs.get(id)), media_type="application/x-ndjson")

    @app.get(
        "/v1/jobs/{id}/markdown", responses=early | _of_kind("text/markdown"), tags=["results"],
        response_class=StreamingResponse,
    )  # fmt: skip
    async def markdown(id: str) -> StreamingResponse:
        """The text of all pages."""
        job = _ended(service.jobs.get(id))
        return _file(job.markdown, "text/markdown; charset=utf-8", f"{job.source}.md")

    @app.get("/v1/jobs/{id}/json", responses=early, tags=["results"])
    async def as_json(id: str) -> StreamingResponse:
        """The complete result, as `hsdkit run` writes it: tokens, steps, drafts, times."""
        job = _ended(service.jobs.get(id))
        return _file(job.json, "application/json", f"{job.source}.json")

    @app.get(
        "/v1/jobs/{id}/report", responses=early | failures(429) | _of_kind("text/html"), tags=["results"],
        response_class=StreamingResponse,
    )  # fmt: skip
    async def report(id: str) -> StreamingResponse:
        """The visual report: one HTML file without scripts."""
        job = _ended(service.jobs.get(id))
        async with one_at_a_time:
            try:
                path = await asyncio.to_thread(results.report, job)
            except FileNotFoundError:
                raise
            except (OSError, OutputError):
                raise Refusal(429, "no room for the report; try again later", "disk", 30) from None
        answer = _file(path, "text/html; charset=utf-8", f"{job.source}.html")
        answer.headers["Content-Security-Policy"] = browser.REPORT_POLICY
        return answer

    @app.get(
        "/v1/jobs/{id}/pages/{number}/image", responses=gone | _of_kind("image/jpeg"), tags=["results"],
        response_class=StreamingResponse,
    )  # fmt: skip
    async def image(id: str, number: int) -> StreamingResponse:
        """The page as the model saw it, in a size for screens (JPEG)."""
        return _file(service.jobs.get(id).file(number, ".jpg"), "image/jpeg")


def _ended(job: Job) -> Job:
    if not job.state.over:
        raise Refusal(
            409, f"{len(job.finished)} of {len(job.numbers)} pages are finished; watch the job's events", "early"
        )
    return job


def _file(path: Path, kind: str, name: str | None = None) -> StreamingResponse:
    """The file, to be saved under that name. It is opened now, and may be deleted while it is sent."""
    try:
        file = path.open("rb")
    except OSError:
        raise Refusal(404, "nothing was parsed of it (yet)", "not_found") from None

    def chunks() -> Iterator[bytes]:
        with file:
            while chunk := file.read(1 << 16):
                yield chunk

    headers = {"Content-Length": str(os.fstat(file.fileno()).st_size)}
    if name is not None:
        headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return StreamingResponse(chunks(), media_type=kind, headers=headers)


def _state(app: FastAPI, service: Service) -> None:
    config = service.pipeline.config

    @app.get("/v1/health", response_model=Health, responses={503: {"model": Health}}, tags=["state"])
    async def health() -> JSONResponse:
        """200 when documents are parsed, 503 while the model is being loaded and while the service shuts down."""
        status = service.status
        body = Health(
            status=status, error=service.error, version=version("hsdkit"), target=config.target.name,
            verifier=config.verifier.name, queued_pages=service.runner.queue.pages,
            pages_in_flight=service.runner.in_flight, jobs=len(service.jobs),
        )  # fmt: skip
        return JSONResponse(body.model_dump(), 200 if status == "ready" else 503)

    @app.get("/v1/limits", response_model=Facts, responses=failures(401, 403), tags=["state"])
    async def limits() -> Any:
        """What is taken at most."""
        return Facts(body_bytes=service.limits.body_bytes, pages=service.limits.pages, urls=service.urls)

    @app.get("/metrics", responses=failures(401, 403), tags=["state"], response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        """For Prometheus."""
        return PlainTextResponse(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
