"""Matching: what in the drafts, or in the text already produced, is likely to come next."""

from __future__ import annotations

from hsdkit.decoding.protocol import Codec, Matcher
from hsdkit.errors import ConfigError
from hsdkit.protocols import BLANK_LINE, DecodeSettings


def build(
    settings: DecodeSettings, drafts: tuple[str, ...], codec: Codec, separator: str = BLANK_LINE
) -> Matcher | None:
    """The matcher for one sequence whose drafts are divided by `separator`, or None when there is nothing to match.
    Raises `ConfigError` for settings that cannot work."""
    if settings.problem:
        raise ConfigError(settings.problem)
    written = tuple(draft for draft in drafts if draft.strip())
    if settings.matching == "paper":
        from hsdkit.decoding.matching.paper import PaperMatcher

        return PaperMatcher([codec.encode(draft) for draft in written], settings.n) if written else None
    if settings.matching == "suffix":
        from hsdkit.decoding.matching.suffix import SuffixMatcher

        ids = codec.encode(separator.join(written)) if written else []
        return SuffixMatcher(ids, settings.self_lookup) if ids or settings.self_lookup else None
    if written or settings.self_lookup:
        from hsdkit.decoding.matching.aligned import AlignedMatcher

        return AlignedMatcher(written, codec, settings.n, settings.self_lookup, separator)
    return None
