"""Matching: what in the drafts, or in the text already produced, is likely to come next."""

from __future__ import annotations

from hsdkit.decoding.protocol import Codec, Matcher
from hsdkit.errors import ConfigError
from hsdkit.protocols import DecodeSettings

#: The named policies of `DecodeSettings.matching`.
POLICIES = ("aligned", "paper")


def build(settings: DecodeSettings, drafts: tuple[str, ...], codec: Codec) -> Matcher | None:
    """The matcher for one sequence, or None when there is nothing to match. Raises `ConfigError` for an unknown policy
    or a window below 1."""
    if settings.n < 1:
        raise ConfigError(f"n={settings.n}: the reference window must hold at least 1 token")
    written = tuple(draft for draft in drafts if draft.strip())
    if settings.matching == "paper":
        from hsdkit.decoding.matching.paper import PaperMatcher

        return PaperMatcher([codec.encode(draft) for draft in written], settings.n) if written else None
    if settings.matching == "aligned":
        from hsdkit.decoding.matching.aligned import AlignedMatcher

        if written or settings.self_lookup:
            return AlignedMatcher(written, codec, settings.n, settings.self_lookup)
        return None
    raise ConfigError(f"matching={settings.matching!r}: choose one of {', '.join(POLICIES)}")
