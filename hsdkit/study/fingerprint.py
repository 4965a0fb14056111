"""What a measurement depends on, as one short text: settings, the files they name, documents, versions, rounds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hsdkit.config_types import texts_in
from hsdkit.files import file_digest
from hsdkit.versions import PACKAGES, checkpoint_digest, folder_digest, package_version

#: Settings that do not change what is measured.
_ASIDE = frozenset({"output", "experiment", "save_drafts", "input", "password"})


def input_digests(paths: Iterable[Path]) -> dict[str, str]:
    """SHA-256 of each document, by its path."""
    return {str(path): file_digest(path) for path in paths}


def relevant(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that a measurement depends on."""
    return {k: v for k, v in settings.items() if k not in _ASIDE}


def fingerprint(settings: Mapping[str, Any], inputs: Mapping[str, str], **more: Any) -> str:
    """Sixteen hexadecimal digits that change with anything a measurement depends on."""
    kept = relevant(settings)
    content = {
        "settings": kept,
        "files": contents(kept),
        "inputs": [[Path(path).name, digest] for path, digest in inputs.items()],
        "versions": {name: package_version(name) for name in PACKAGES},
        **more,
    }
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def contents(settings: Mapping[str, Any]) -> dict[str, str]:
    """Digests of the files and of the checkpoints in folders that settings name; other folders count by name."""
    found = {name: _content(name) for name in sorted(set(texts_in(settings)))}
    return {name: digest for name, digest in found.items() if digest}


def truth_digest(options: Mapping[str, Any]) -> str:
    """Of a benchmark's ground truth, which its option `path` names: a file, or the files at the top of a folder. ""
    where it has no such option."""
    if not options.get("path"):
        return ""
    path = Path(str(options["path"]))
    return folder_digest(path) if path.is_dir() else file_digest(path)


def _content(name: str) -> str:
    try:
        return file_digest(Path(name)) if Path(name).is_file() else checkpoint_digest(name)
    except (OSError, ValueError):  # too long for a name, or with characters no name has
        return ""
