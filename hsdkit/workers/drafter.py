"""A drafter around a library that lives elsewhere: chooses the way to it, hands it pages, has its JSON converted."""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

from hsdkit.components import Environment
from hsdkit.documents import Page
from hsdkit.errors import DocumentError, DrafterError, PluginError, described
from hsdkit.regions import Draft, Region
from hsdkit.workers import environments
from hsdkit.workers.inprocess import InProcess
from hsdkit.workers.options import WorkerOptions
from hsdkit.workers.process import WorkerProcess
from hsdkit.workers.server import Served, Server
from hsdkit.workers.supervisor import Supervisor

log = logging.getLogger(__name__)


class Reader(Protocol):
    """A way to the library. `load` raises `PluginError` when it can never work, `read` also `DrafterError`."""

    version: str
    where: str

    def load(self) -> None: ...

    def read(self, path: Path) -> Any: ...

    def close(self) -> None: ...

    def take_notes(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class Library:
    """What a plugin says of its library; `drafter` is the factory of its component.

    script: the worker script, whose `load(options)` returns `read(path)`, the library's JSON for a one-page file; it
    imports nothing of hsdkit. convert: pure, from that JSON to regions in page pixels, or to a draft whose notes are
    kept; raises anything for JSON it cannot read. ask: the same JSON from the library's server. explain: what a user
    should do about an error of the library, None where there is nothing to add. feed: `pdf` hands over the page as a
    PDF where it comes from one, `image` always as PNG. seconds: a guess of what a page takes, used until one has been
    seen.
    """

    environment: Environment
    script: Path
    convert: Callable[[Any, Page], Sequence[Region] | Draft]
    ask: Callable[[Server, Path, dict[str, Any]], Any]
    explain: Callable[[str], str | None] = lambda error: None
    feed: Literal["pdf", "image"] = "image"
    seconds: float = 1.0

    def drafter(self, config: WorkerOptions) -> HeavyDrafter:
        return HeavyDrafter(self, config)


class HeavyDrafter:
    """Built at once, loaded with `load` or the first page. One instance is for one thread.

    `cache_key` is all that its drafts depend on besides the page; "" where the library's version is not known. Raises
    `PluginError` when there is no way to the library, naming all there could be.
    """

    def __init__(self, library: Library, config: WorkerOptions) -> None:
        self.name = library.environment.name
        self.config = config
        self._library = library
        self._reader = reader(library, config)
        self._seconds: list[float] = []
        self._pages = 0

    def load(self) -> None:
        """Have the library ready to draft. Raises `PluginError` when it never will be."""
        try:
            self._reader.load()
        except PluginError as e:
            raise PluginError(f"drafter {self.name!r} in {self._reader.where}: {e}") from e

    def draft(self, page: Page) -> Draft:
        where = f"{page.source}, page {page.number}"
        try:
            self._reader.load()  # not part of the page's time
            start = time.perf_counter()
            file = self._handed_over(page)
            try:
                native = self._reader.read(file)
            finally:
                file.unlink(missing_ok=True)
        except DocumentError as e:  # names file and page itself
            raise DrafterError(str(e)) from e
        except (PluginError, DrafterError) as e:
            raise DrafterError(f"{where}: {e}") from e
        try:
            found = self._library.convert(native, page)
            drafted = found if isinstance(found, Draft) else Draft(tuple(found))
        except Exception as e:  # JSON from elsewhere may be anything
            log.debug("conversion failed", exc_info=True)
            raise DrafterError(
                f"{where}: {self.name} in {self._reader.where} gave JSON that cannot be read: {described(e)}"
            ) from e
        seconds = time.perf_counter() - start
        self._seconds = [*self._seconds[-9:], seconds]
        return Draft(drafted.regions, self.name, seconds, (*drafted.notes, *self._reader.take_notes()))

    def expected_seconds(self, page: Page) -> float:
        """The mean of the last pages; a guess before the first."""
        return sum(self._seconds) / len(self._seconds) if self._seconds else self._library.seconds

    @property
    def cache_key(self) -> str:
        if not self._reader.version:
            return ""
        known = [self.name, self._reader.version, self._code, self.config.options()]
        return json.dumps(known, sort_keys=True, default=str)

    def close(self) -> None:
        """End the worker process; the next page starts another."""
        self._reader.close()

    @cached_property
    def _code(self) -> str:
        """A digest of the script and of the code that converts, with the modules beside it in its package: drafts of
        other code are other drafts."""
        convert = inspect.unwrap(self._library.convert)
        own = Path(inspect.getfile(convert))
        in_package = "." in convert.__module__
        files = [self._library.script, *(sorted(own.parent.glob("*.py")) if in_package else [own])]
        return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:16]

    def _handed_over(self, page: Page) -> Path:
        pdf = page.pdf if self._library.feed == "pdf" else None
        self._pages += 1
        try:
            file = self._folder / f"page{self._pages}.{'png' if pdf is None else 'pdf'}"
            if pdf is None:
                page.image.save(file, compress_level=1)
            else:
                file.write_bytes(pdf)
        except OSError as e:
            raise DrafterError(f"the page cannot be written for {self.name} to read (TMPDIR): {e}") from e
        return file

    @cached_property
    def _folder(self) -> Path:
        folder = tempfile.mkdtemp(prefix="hsdkit-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)


def reader(library: Library, config: WorkerOptions) -> Reader:
    """The way to the library that `config.via` asks for. Raises `PluginError` when it is not there."""
    environment = library.environment
    if config.url:
        return Served(Server(config.url, config.timeout, environment.server), library.ask, config.options())
    state = environments.state(environment)
    if config.via == "environment" or (config.via == "auto" and state == "ready"):
        if state != "ready":
            raise PluginError(f"drafter {environment.name!r} cannot run in its own environment: {missing(environment)}")
        python = environments.python(environments.folder(environment))

        def start() -> WorkerProcess:
            return WorkerProcess(python, library.script, config.options())

        def explain(error: str) -> str | None:
            broken = None if "ModuleNotFoundError" not in error else f"its environment is broken ({error}); {again}"
            return library.explain(error) or broken

        again = f"hsdkit drafter install {environment.name} --again makes it anew"
        version = environments.installed_version(environment)
        return Supervisor(environment.name, start, config, explain, version)
    if environment.importable:
        return InProcess(environment, library.script, config.options(), library.explain)
    if config.via == "process":
        raise PluginError(
            f"drafter {environment.name!r} cannot run in this process: {environment.module} cannot be imported "
            f"(pip install {environment.pins[0]}); {missing(environment)}"
        )
    raise PluginError(f"drafter {environment.name!r} is not installed: {ways(environment)}")


def missing(environment: Environment) -> str:
    """What to do about an environment that is not ready."""
    install = f"hsdkit drafter install {environment.name}"
    if environments.state(environment) == "outdated":
        return f"it was made for other versions than this hsdkit needs; {install} makes it anew"
    return f"{install} makes one"


def ways(environment: Environment) -> str:
    """All ways to get to a library that is not there, for an error."""
    server = f" ({environment.server})" if environment.server else ""
    return (
        f"`hsdkit drafter install {environment.name}` makes an environment of its own for it; or name a running server "
        f"with drafter.url=http://HOST:PORT{server}; or install {environment.pins[0]} beside hsdkit"
    )
