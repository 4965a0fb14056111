"""What the result of a page depends on, as one short text: settings, files they name, versions, the input's content."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from hsdkit.components import KINDS
from hsdkit.config import RunConfig
from hsdkit.config_types import texts_in
from hsdkit.files import file_digest
from hsdkit.plugins import plugins
from hsdkit.versions import package_version

#: Options that do not change what is written for a page. Components are told apart by all of theirs.
ASIDE = frozenset(
    {"input", "output", "experiment", "pages", "password", "save_drafts", "reuse_drafts"}
    | {"concurrency", "preparing", "page_memory", "prepare_seconds"}
)

#: Of a large file, such as weights, its size and this many bytes at three places stand for its content.
_SAMPLE = 1 << 16
_WHOLE = 1 << 22


def settings_fingerprint(config: RunConfig) -> str:
    """Changes with every setting that changes results, with the version of hsdkit and of the plugins in use, and with
    what the files and checkpoints that settings name hold. Loads no model."""
    settings = {k: v for k, v in config.composed.items() if k not in ASIDE}
    content = {
        "hsdkit": package_version("hsdkit"),
        "settings": settings,
        "plugins": dict(_plugins(config)),
        "named": {text: found for text in sorted(set(texts_in(settings))) if (found := _identity(text))},
    }
    return _short(json.dumps(content, sort_keys=True, default=str).encode("utf-8", "surrogatepass"))


def page_fingerprint(settings: str, digest: str) -> str:
    """Of the pages of a document with this SHA-256, parsed with settings of that fingerprint."""
    return _short(f"{settings} {digest}".encode())


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]


def _plugins(config: RunConfig) -> Iterator[tuple[str, str]]:
    for kind in KINDS:
        name = getattr(config, kind).name
        for component, plugin in plugins().components(kind):
            if component.name == name:
                yield kind, f"{plugin.package} {plugin.version}"


def _identity(text: str) -> str | None:
    """What is at that path: a file, or a checkpoint (a folder with a config.json). Other folders count by name only:
    the output folder may be one of them."""
    if not text:  # as a path it would be the current folder
        return None
    try:
        path = Path(text).expanduser()
        if path.is_file():
            return _content(path)
        if (path / "config.json").is_file():
            return _short("".join(f"{p.name} {_content(p)} " for p in sorted(path.iterdir()) if p.is_file()).encode())
    except (OSError, ValueError, RuntimeError):  # no path at all
        pass
    return None


def _content(path: Path) -> str:
    size = path.stat().st_size
    if size <= _WHOLE:
        return file_digest(path)
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for at in (0, size // 2, size - _SAMPLE):
            file.seek(at, os.SEEK_SET)
            digest.update(file.read(_SAMPLE))
    return digest.hexdigest()
