"""The answers' shapes, for the OpenAPI page and the clients made from it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class Failure(BaseModel):
    """One line that says what is wrong and what to do."""

    error: str


class JobFacts(BaseModel):
    id: str
    source: str = Field(description="The document's name.")
    status: Literal["queued", "running", "done", "failed", "cancelled", "stopped"]
    error: str | None
    pages: int = Field(description="Pages asked for.")
    pages_finished: int
    pages_failed: int
    tokens: int = Field(description="Of the pages' text, so far.")
    steps: int = Field(description="Passes of the model it took.")
    tokens_per_step: float
    created: float = Field(description="Seconds since 1970, as all times.")
    started: float | None
    ended: float | None


class FoundRegion(BaseModel):
    box: list[float] = Field(description="x0, y0, x1, y1 in page pixels, origin top left.")
    label: str
    text: str
    left_out: bool


class ParsedPage(BaseModel):
    number: int = Field(description="Counts from 1 in the document.")
    error: str | None
    origin: Literal["model", "draft"] = Field(description="draft: the model did not read it, this is a draft's text.")
    saved_by: str = Field(description="What helped where the first attempt failed; empty where nothing had to.")
    finish_reason: str
    markdown: str
    width: int
    height: int
    seconds: float
    tokens: int
    steps: int
    tokens_per_step: float
    aal: float = Field(description="Average accepted length: drafted tokens accepted in a step.")
    tau: float
    exact: bool = Field(description="The text is that of plain decoding.")
    verifier: str
    notes: list[str]
    regions: list[FoundRegion] = Field(description="Regions the model names, for models that write boxes.")


class Parsed(JobFacts):
    """A document that has been parsed while the client waited."""

    markdown: str
    results: list[ParsedPage]


class Health(BaseModel):
    status: Literal["ready", "loading", "stopping", "failed"]
    error: str | None = None
    version: str
    target: str
    verifier: str
    queued_pages: int
    pages_in_flight: int
    jobs: int


class Facts(BaseModel):
    """What the service takes, for clients that want to know before they send."""

    body_bytes: int
    pages: int
    urls: bool


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """For a route's `responses`."""
    return {status: {"model": Failure} for status in statuses}
