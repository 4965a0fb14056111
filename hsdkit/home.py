"""Where hsdkit keeps what outlives a run: environments of drafters, cached drafts."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hsdkit.errors import ConfigError

#: Names another folder to keep it all in.
VARIABLE = "HSDKIT_HOME"


def home() -> Path:
    """The folder that HSDKIT_HOME names, or `hsdkit` in the user's data folder. It need not be there yet.

    Raises `ConfigError` when neither can be told.
    """
    try:
        if chosen := os.environ.get(VARIABLE):
            return Path(chosen).expanduser().absolute()
        user = Path.home()
    except RuntimeError as e:  # an account without a home folder, as containers have
        raise ConfigError(f"{VARIABLE}=FOLDER must name a folder: {e}") from e
    if sys.platform == "win32":
        data = Path(os.environ.get("LOCALAPPDATA") or user / "AppData" / "Local")
    elif sys.platform == "darwin":
        data = user / "Library" / "Application Support"
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or user / ".local" / "share")
    return data / "hsdkit"
