"""Page -> drafter -> verifier(target, engine) -> PageResult, page by page; a failing page is a result, not a stop."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hsdkit.attempts import read_page
from hsdkit.config import RunConfig, compose
from hsdkit.deadline import until
from hsdkit.document_result import DocumentResult
from hsdkit.documents import Document, Page
from hsdkit.errors import ConfigError, PluginError, described
from hsdkit.files import file_digest
from hsdkit.page_reader import Listener, PageReader, blank_result
from hsdkit.pays import Experience, PlainCost
from hsdkit.plugins import Plugins, plugins
from hsdkit.preparing.local import Recipe, build_drafter
from hsdkit.preparing.page import AskCost, Opening, Prepared, drafted, prepare
from hsdkit.protocols import DecodeRequest, DecodeSettings, Drafter, Engine, OnText, Target, Verifier
from hsdkit.regions import Draft
from hsdkit.results import PageResult
from hsdkit.versions import versions

log = logging.getLogger(__name__)

#: Called with each page while its image is in memory; the page is None when it could not be read.
OnPage = Callable[[Page | None, PageResult], None]

#: Any prose: how many tokens the target's tokenizer makes of a character, before a page has shown it.
_SAMPLE = (
    "Page after page, the same model reads the same words; only the number of steps it takes is smaller. 1,024 (3.5%)"
)

#: Of so many tokens the engine is asked what plain decoding takes.
_TOKENS = 1000


class Pipeline:
    """A drafter, a target, an engine and a verifier, built once and kept for many documents.

        pipeline = Pipeline(compose(["drafter=pdftext", "verifier.tau=0.75"]))
        for path in paths:
            print(pipeline.parse(path).markdown)

    Building is lazy: nothing is loaded before the first page is asked for. Raises `PluginError` or `TargetError` then,
    if a component lacks something or the checkpoint cannot be loaded.
    """

    def __init__(self, config: RunConfig | None = None, *, registry: Plugins | None = None) -> None:
        self._registry = registry or plugins()
        self.config = config or compose(registry=self._registry)
        self._experience = Experience()
        self._learning = threading.Lock()

    @cached_property
    def drafter(self) -> Drafter:
        chosen = self.config.drafter
        return build_drafter(self._registry, chosen.name, chosen.options, self.config.reuse_drafts)

    @cached_property
    def target(self) -> Target:
        return self._registry.build("target", self.config.target.name, self.config.target.options)

    @cached_property
    def engine(self) -> Engine:
        return self._registry.build("engine", self.config.engine.name, self.config.engine.options, target=self.target)

    @cached_property
    def verifier(self) -> Verifier:
        return self._registry.build("verifier", self.config.verifier.name, self.config.verifier.options)

    def with_config(self, config: RunConfig) -> Pipeline:
        """A pipeline for another configuration. It shares the loaded model and the drafter where their settings are the
        same; verifier and experience are its own."""
        other = Pipeline(config, registry=self._registry)
        old, new = self.config.composed, config.composed
        shared = ["drafter"] if all(old[k] == new[k] for k in ("drafter", "reuse_drafts")) else []
        shared += ["target", "engine"] if all(old[k] == new[k] for k in ("target", "engine")) else []
        for name in shared:
            if name in self.__dict__:  # where cached_property keeps it, once it is built
                other.__dict__[name] = self.__dict__[name]
        return other

    def load(self, *, drafter: bool = True) -> None:
        """Build every component now, the model included (and the drafter, unless other processes draft), and let the
        engine measure what a step costs if that is to set the budget, so that the first page does not pay for it."""
        if drafter and self.verifier.uses_draft and (load := getattr(self.drafter, "load", None)):
            load()
        if "draft" in self.config.on_failure and not self.verifier.uses_draft:
            raise ConfigError(f"on_failure=draft: verifier={self.verifier.name} makes no drafts; take it from the list")
        self.engine.load()
        if self.verifier.settings.max_packed == "auto":
            self.engine.expected_seconds(1)

    def load_for_threads(self) -> None:
        """Have the target load what it loads at its first page: two threads at their first page would both do it."""
        from PIL import Image

        blank = Image.new("RGB", (64, 64), "white")
        try:
            self.target.inputs([DecodeRequest(self.target.view(blank), self.target.prompt(None))])
            self.target.logits_processors()
        except Exception:  # a page will say so, if it needs it at all
            log.debug("the target is not ready for threads", exc_info=True)

    def open(self, path: str | os.PathLike[str], *, pages: str | None = None, password: str | None = None) -> Document:
        """The document as this run sees it (`pages`, `dpi`, `password`, ...), or these `pages` of it, or with this
        `password`. Raises `DocumentError`."""
        return self.opening.open(path, pages=pages or self.config.pages, password=password)

    @property
    def opening(self) -> Opening:
        """How documents are opened, `pages` aside."""
        c = self.config
        return Opening(c.dpi if c.dpi is not None else self.target.dpi, c.password, c.rotate, c.max_pixels)

    @property
    def recipe(self) -> Recipe:
        """What another process needs to prepare this run's pages. Raises `ConfigError` where it would not have the
        drafter."""
        name, options = self.config.drafter.name, self.config.drafter.options
        if not self.verifier.uses_draft:
            return Recipe(self.opening)
        if not self.drafts_elsewhere:
            raise ConfigError(f"preparing: drafter {name!r} is registered in this process alone; choose preparing=0")
        return Recipe(self.opening, name, options, self.config.reuse_drafts)

    @property
    def drafts_elsewhere(self) -> bool:
        """Whether other processes have this run's drafter. Raises `PluginError` where this one has none."""
        name = self.config.drafter.name
        self._registry.component("drafter", name)
        return not self.verifier.uses_draft or self._registry.installed("drafter", name)

    def parse(
        self, path: str | os.PathLike[str], *, on_page: OnPage | None = None, on_text: OnText | None = None
    ) -> DocumentResult:
        """All pages of a document. Raises `DocumentError` when the file cannot be opened; a page that fails is in the
        result with its `error`."""
        pages = tuple(self.pages(path, on_page=on_page, on_text=on_text))
        made_with = self.versions() | {"input_sha256": file_digest(Path(path))}
        return DocumentResult(str(path), pages, self.config.settings(), made_with)

    def pages(
        self, path: str | os.PathLike[str], *, on_page: OnPage | None = None, on_text: OnText | None = None
    ) -> Iterator[PageResult]:
        """Results in page order as they are ready; never more than one page image is held. Raises as `parse` does."""
        with self.open(path) as document:
            yield from self.run(document, on_page=on_page, on_text=on_text)

    def run(
        self, document: Document, *, on_page: OnPage | None = None, on_text: OnText | None = None
    ) -> Iterator[PageResult]:
        """`pages` of a document that is open already."""
        self.load()
        for number in document.numbers:
            page, result = self.page(document, number, on_text)
            if on_page:
                on_page(page, result)
            del page
            self.tell_observers(str(document.path), result)
            yield result

    def tell_observers(self, source: str, result: PageResult) -> None:
        """Tell the plugins that observe (`hsdkit_page_finished`) of a finished page of the file `source`."""
        for tell, plugin in self._registry.observers():
            try:
                tell(source=source, result=result)
            except KeyboardInterrupt:
                raise
            except BaseException as e:  # an observer may stop neither what it observes nor the other observers
                log.warning("hsdkit_page_finished of plugin %r failed: %s", plugin, described(e))
                log.debug("hsdkit_page_finished failed", exc_info=True)

    def versions(self) -> dict[str, str]:
        """What makes the results: packages, model, device. Loads the model, or asks the engine that has it."""
        return versions(self.target, getattr(self.engine, "facts", None))

    def draft(self, page: Page) -> tuple[Draft, tuple[str, ...]]:
        """The draft this run would decode the page with, and notes on it: empty for a verifier that uses none, and
        where drafting would not pay."""
        draft, notes, _ = drafted(page, self.used_drafter, self.ask_cost)
        return draft, notes

    def page(self, document: Document, number: int, on_text: OnText | None = None) -> tuple[Page | None, PageResult]:
        """One page of an open document, and its image (None when it could not be read). Whatever goes wrong with it is
        the result's `error`. Raises `ConfigError` or `PluginError` for what would fail every page alike."""
        prepared = prepare(document, number, self.used_drafter, self.ask_cost)
        return self.decode_page(prepared, document.name, on_text)

    def decode_page(
        self, prepared: Prepared, name: str, on_text: OnText | None = None
    ) -> tuple[Page | None, PageResult]:
        """A prepared page of the file `name`, decoded by whatever attempts `on_failure` allows within `page_seconds`,
        and its image as it was read (perhaps turned); an unreadable one gives a result with its error. May be called
        from several threads. Raises as `page` does."""
        start = time.perf_counter()
        page = prepared.page
        if page is None or prepared.error is not None:
            return page, self.unread(prepared)
        deadline = None
        if self.config.page_seconds is not None:
            deadline = time.monotonic() + self.config.page_seconds - prepared.draft.seconds
        engine = until(self.engine, deadline)
        listener = Listener(on_text) if on_text else None
        reader = PageReader(self.target, engine, self.verifier, self.substitute, name, prepared.notes, listener)
        try:
            page, result = read_page(page, prepared.draft, reader, self.config.on_failure, deadline)
            if prepared.characters is not None and not result.error and not result.attempts:
                speedup = self._speedup(result)
                with self._learning:
                    self._experience = self._experience.after(prepared.characters, result.page_tokens, speedup)
        except (ConfigError, PluginError):  # would fail every page alike: it is the run's error
            raise
        except Exception as e:  # whatever else happens between attempts is that page's result
            log.debug("%s, page %d failed", name, prepared.number, exc_info=True)
            result = reader.failed(page, prepared.draft, e)
        return page, replace(result, seconds=prepared.seconds + time.perf_counter() - start)

    def unread(self, prepared: Prepared) -> PageResult:
        """The result of a page that is not decoded, with its `error`."""
        blank = blank_result(prepared.number, prepared.page, self.verifier)
        return replace(blank, error=prepared.error, seconds=prepared.seconds)

    def substitute(self, name: str) -> Verifier | None:
        """Another verifier, with the limits and the threshold of this run's. None where it is the run's own, or is not
        to be had."""
        if name == self.verifier.name:
            return None
        try:
            component = self._registry.component("verifier", name)
        except PluginError:
            log.debug("no verifier %r to fall back on", name, exc_info=True)
            return None
        shared = {f.name for f in fields(DecodeSettings)} & {f.name for f in fields(component.config)}
        options = component.config(**{option: getattr(self.verifier.settings, option) for option in shared})
        verifier: Verifier = self._registry.build("verifier", name, options)
        return verifier

    @property
    def used_drafter(self) -> Drafter | None:
        """The drafter; None for a verifier that uses no drafts."""
        return self.drafter if self.verifier.uses_draft else None

    @property
    def ask_cost(self) -> AskCost | None:
        """What plain decoding costs, for those who judge whether a draft pays; None where drafts are always made."""
        return None if self.config.draft == "always" else self._plain_cost

    def _plain_cost(self) -> PlainCost:
        limit = self.verifier.settings.max_new_tokens
        return PlainCost(self._seconds_per_token, self._tokens_per_character, limit, self._experience)

    def _speedup(self, result: PageResult) -> float | None:
        """How much faster the page was decoded than plainly, the drafter not counted; None without a draft."""
        page_stage = [s for s in result.stages if s.name == "page"]
        if not result.draft.readable or not page_stage:
            return None
        # The page's own prefill is paid either way; region crops are the price of speculation.
        spent = sum(s.times.total for s in result.stages) - sum(s.times.encode + s.times.prefill for s in page_stage)
        return self._seconds_per_token * result.page_tokens / spent if spent > 0 else None

    @cached_property
    def _seconds_per_token(self) -> float:
        """Of plain decoding; may have to be measured."""
        return self.engine.expected_seconds(_TOKENS) / _TOKENS

    @cached_property
    def _tokens_per_character(self) -> float:
        return len(self.target.tokenizer(_SAMPLE)["input_ids"]) / len(_SAMPLE)


def parse(
    path: str | os.PathLike[str],
    *,
    drafter: Any = None,
    target: Any = None,
    verifier: Any = None,
    engine: Any = None,
    **overrides: Any,
) -> DocumentResult:
    """Parse one document: `hsdkit.parse("report.pdf", drafter="pdftext", pages="1-3")`.

    Components are names, or mappings with options: `verifier={"name": "hsd", "tau": 0.75}`; other options are those
    of `hsdkit run`. Raises `ConfigError`, `PluginError`, `TargetError` or `DocumentError`. Every call loads the model
    anew: keep a `Pipeline` to parse more than one document.
    """
    chosen = {"drafter": drafter, "target": target, "verifier": verifier, "engine": engine}
    given = {k: v for k, v in chosen.items() if v is not None}
    return Pipeline(compose(given | overrides)).parse(Path(path))
