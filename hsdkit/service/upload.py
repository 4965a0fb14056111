"""The body of `POST /v1/parse` and `/v1/jobs`: one file or address, a few options, within limits of size and time."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from starlette.datastructures import FormData, Headers, UploadFile
from starlette.formparsers import FormParser, MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from hsdkit.service.limits import MIB, Limits
from hsdkit.service.refusal import Refusal

#: What a client may set, and how many characters a value may have.
OPTIONS, _MOST_VALUE = ("pages", "password", "format", "async", "url"), 2000

#: Seconds before a body must keep up its rate, and the longest pause within it.
_FIRST_SECONDS, _LONGEST_PAUSE = 5.0, 20.0

#: Longest file name in bytes; file systems take 255.
_MOST_NAME = 150


@dataclass(frozen=True, slots=True)
class Upload:
    """`file` is None where an address (`url`) is to be fetched instead."""

    name: str
    file: UploadFile | None
    options: dict[str, str]

    async def move_to(self, folder: Path) -> Path:
        """The file in that folder, under its own name."""
        assert self.file is not None
        path = folder / self.name
        await asyncio.to_thread(_copy, self.file.file, path)
        return path

    async def close(self) -> None:
        if self.file is not None:
            await self.file.close()


def _copy(source: BinaryIO, path: Path) -> None:
    with path.open("wb") as out:
        shutil.copyfileobj(source, out, MIB)


async def receive(request: Request, limits: Limits) -> Upload:
    """Raises `Refusal`: 413 for a body that is too large, 408 for one that is too slow, 422 for one that cannot be
    understood, 415 for one of another kind. Options in the query string count like fields of the form."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.body_bytes:
        raise _too_large(limits)
    try:
        form = await _form(request.headers, _body(request, limits))
    except MultiPartException as e:
        raise Refusal(422, f"the form cannot be read: {e.message}", "form") from None
    except UnicodeError:  # of the `charset` it says it is in
        raise Refusal(422, "the form cannot be read: send it in UTF-8", "form") from None
    try:
        return _upload(form, request)
    except Refusal:
        await form.close()
        raise


async def _form(headers: Headers, body: AsyncIterator[bytes]) -> FormData:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await MultiPartParser(headers, body, max_files=1, max_fields=8, max_part_size=4096).parse()  # type: ignore[arg-type]
    if kind == "application/x-www-form-urlencoded":
        return await FormParser(headers, body, max_fields=8, max_part_size=4096).parse()  # type: ignore[arg-type]
    raise Refusal(
        415, "send a form (multipart/form-data) with the document as `file`: curl -F file=@report.pdf", "form"
    )


async def _body(request: Request, limits: Limits) -> AsyncIterator[bytes]:
    """The body's chunks; whoever sends too much or too slowly is refused as soon as it shows."""
    start, size = time.monotonic(), 0
    chunks = request.stream().__aiter__()
    while True:
        spent = time.monotonic() - start
        wait = min(_LONGEST_PAUSE, limits.upload_seconds - spent)
        try:
            chunk = await asyncio.wait_for(anext(chunks), max(wait, 0.01))
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise _too_slow() from None
        except ClientDisconnect:
            raise Refusal(400, "the connection was closed before the end of the body", "disconnected") from None
        size += len(chunk)
        if size > limits.body_bytes:
            raise _too_large(limits)
        spent = time.monotonic() - start
        if spent > _FIRST_SECONDS and size < limits.upload_rate * (spent - _FIRST_SECONDS):
            raise _too_slow()
        yield chunk


def _upload(form: FormData, request: Request) -> Upload:
    options: dict[str, str] = {}
    file: UploadFile | None = None
    for name, value in [*request.query_params.multi_items(), *form.multi_items()]:
        if name == "file" and isinstance(value, UploadFile):
            file = value
        elif name not in OPTIONS or not isinstance(value, str):
            raise Refusal(422, f"no option {name[:60]!r}; known: file, {', '.join(OPTIONS)}", "option")
        elif len(value) > _MOST_VALUE:
            raise Refusal(422, f"{name}: longer than {_MOST_VALUE} characters", "option")
        elif not value.isprintable():
            raise Refusal(422, f"{name}: holds signs that cannot be shown, such as ends of lines", "option")
        else:
            options[name] = value
    if (file is None) == ("url" not in options):
        raise Refusal(422, "send the document as `file` (or its address as `url`), one of them", "form")
    return Upload(safe_name(file.filename if file else options["url"].partition("?")[0]), file, options)


def safe_name(name: str | None) -> str:
    """The last part of a name that a client gave, as one that can be a file's here and shown anywhere."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name or "").rstrip("/\\"))[-1]
    kept = "".join(c for c in last if c.isprintable()).strip().lstrip(".").strip()
    return kept.encode()[:_MOST_NAME].decode("utf-8", "ignore") or "document"


def _too_large(limits: Limits) -> Refusal:
    return Refusal(413, f"the body is larger than {limits.body_bytes / MIB:g} MiB", "body_size")


def _too_slow() -> Refusal:
    return Refusal(408, "the body came too slowly", "slow")
