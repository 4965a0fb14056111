"""Degrades any drafter: a poorer image before it drafts, misplaced boxes and misread text after (paper, Fig. 3)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

from hsdkit_plugins.drafters._noise.image import ImageNoise, degraded, turned_upright
from hsdkit_plugins.drafters._noise.layout import LayoutNoise, disturbed
from hsdkit_plugins.drafters._noise.recognition import RecognitionNoise, misread_region
from hsdkit_plugins.drafters._noise.seeds import numbers, page_key

from hsdkit import hookimpl
from hsdkit.component_options import typed_options
from hsdkit.components import Component
from hsdkit.documents import Page
from hsdkit.drafting import sound
from hsdkit.errors import PluginError
from hsdkit.plugins import plugins
from hsdkit.protocols import Drafter
from hsdkit.regions import Draft
from hsdkit.textlayer import TextLayer


@dataclass(frozen=True)
class NoiseConfig:
    """base: the drafter whose drafts are degraded.
    base_options: its options, such as drafter.base_options.least_score=0.9.
    seed: another seed, other errors; the same seed makes the same errors on a page whenever it is drafted.
    """

    base: str = "auto"
    base_options: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    image: ImageNoise = field(default_factory=ImageNoise)
    layout: LayoutNoise = field(default_factory=LayoutNoise)
    recognition: RecognitionNoise = field(default_factory=RecognitionNoise)

    def __post_init__(self) -> None:
        self.base_config()

    def base_config(self) -> Any:
        """The typed options of the base. Raises `PluginError` or `ConfigError` for a base or option that is not
        there."""
        try:
            component = plugins().component("drafter", self.base)
        except PluginError as e:
            raise PluginError(f"drafter.base={self.base}: {e}") from None
        return typed_options(component, self.base_options, "drafter.base_options")


class Noise:
    """Image noise does not reach drafters that read the PDF's text layer; the draft's notes say so. With all strengths
    at 0 the draft is the base's own. Pages share nothing, so their order does not matter. Where drafts are kept on
    disk, those of the base are, and serve every strength and seed."""

    name = "noise"

    def __init__(self, config: NoiseConfig) -> None:
        self.config = config
        self.base: Drafter = plugins().build("drafter", config.base, config.base_config())

    def load(self) -> None:
        getattr(self.base, "load", lambda: None)()

    def close(self) -> None:
        getattr(self.base, "close", lambda: None)()

    def expected_seconds(self, page: Page) -> float:
        """That of the base. Raises `AttributeError` if the base does not say."""
        expect: Callable[[Page], float] = getattr(self.base, "expected_seconds")  # noqa: B009 (no part of Drafter)
        return expect(page)

    def draft(self, page: Page) -> Draft:
        start = time.perf_counter()
        c = self.config
        said = strengths(c)
        if not said:
            return self.base.draft(page)
        key = page_key(page.image)
        seen, layer = self._seen(page, key)
        draft, notes = sound(self.base.draft(seen))
        regions = draft.regions
        if c.image.skew:
            regions = tuple(
                replace(r, box=turned_upright(r.box, c.image.skew, page.width, page.height)) for r in regions
            )
        regions = tuple(misread_region(r, c.recognition, c.seed, key, i) for i, r in enumerate(regions))
        regions = disturbed(regions, c.layout, lambda what: numbers(c.seed, key, what), page.width, page.height)
        notes = (*draft.notes, *notes, f"noise: {said} (seed {c.seed})")
        if seen is not page and layer.read:
            notes += (f"drafter {c.base!r} read the PDF's text layer, which image noise does not change",)
        return Draft(regions, f"noise({draft.drafter})", time.perf_counter() - start, notes)

    def _seen(self, page: Page, key: str) -> tuple[Page, _Layer]:
        """The page as the base sees it: itself, or a copy with a degraded image."""
        layer = _Layer(page)
        if self.config.image == ImageNoise():
            return page, layer
        image = degraded(page.image, self.config.image, numbers(self.config.seed, key, "image"))
        # A drafter that is fed the page's PDF would not see the image; it is fed the image then.
        return replace(page, image=image, read_text=layer if page.read_text else None, read_pdf=None), layer


class _Layer:
    """A page's text layer, and whether it was asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.read = False

    def __call__(self) -> TextLayer:
        assert self.page.read_text is not None
        self.read = True
        return self.page.read_text()


def strengths(config: NoiseConfig) -> str:
    """What is not at 0, as options; "" for a config that changes nothing."""
    said = []
    for group in (f.name for f in fields(config) if is_dataclass(getattr(config, f.name))):
        values = asdict(getattr(config, group))
        shares = {"deletions", "insertions"}  # they divide char_error_rate and do nothing alone
        if any(v for k, v in values.items() if k not in shares):
            said += [
                f"{group}.{k}={v:g}" for k, v in values.items() if v and (k not in shares or values["char_error_rate"])
            ]
    return ", ".join(said)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    summary = "any other drafter (drafter.base=NAME) made worse on purpose, for studies of robustness"
    return [Component("drafter", "noise", summary, NoiseConfig, Noise)]
