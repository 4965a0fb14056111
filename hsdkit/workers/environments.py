"""Where the environments of drafters are, and what state they are in. Making them is `install.py`'s."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Literal

from hsdkit.components import Environment
from hsdkit.home import home

#: Written into an environment when everything is in it; without this file it counts as not there.
MARKER = "hsdkit.json"

State = Literal["ready", "outdated", "absent"]


def root() -> Path:
    return home() / "environments"


def folder(environment: Environment) -> Path:
    """The folder for these very pins: other pins have another, so that a failed update leaves the old one whole."""
    digest = hashlib.sha256("\n".join(environment.pins).encode()).hexdigest()[:10]
    return root() / f"{environment.name}-{digest}"


def others(environment: Environment) -> list[Path]:
    """Folders of this environment for other pins, and what installations that were killed have left."""
    here, length = folder(environment), len(environment.name) + 11
    found = sorted(root().glob(f"{environment.name}-*"))
    return [p for p in found if p.is_dir() and p != here and len(p.name) == length]


def is_whole(path: Path) -> bool:
    return (path / MARKER).is_file() and python(path).exists()


def state(environment: Environment) -> State:
    """`outdated`: there is one, for other pins than this version of the plugin has."""
    if is_whole(folder(environment)):
        return "ready"
    return "outdated" if any(map(is_whole, others(environment))) else "absent"


def python(path: Path) -> Path:
    """The interpreter of the environment in that folder."""
    return path / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def installed_version(environment: Environment) -> str:
    """The version of the library in its ready environment; "" where the marker does not say."""
    try:
        return str(json.loads((folder(environment) / MARKER).read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
