"""Output files that are either whole or not there, and digests of input files."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from hsdkit.errors import NameTaken, OutputError


def make_folder(folder: Path) -> None:
    """Make the output folder if it is not there. Raises `OutputError`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        cause = "there is a file of that name" if isinstance(e, FileExistsError) else e.strerror
        raise OutputError(f"output={folder}: no such folder can be made: {cause}") from e


def file_digest(path: Path) -> str:
    """SHA-256 of a file; "" when it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError:
        return ""
    return digest.hexdigest()


def write_whole(path: Path, pieces: Iterable[str]) -> Path:
    """Write the pieces into a neighbour first, which then takes the file's place, so that even if the power fails there
    is the old file or the new one. Raises `OutputError`, `NameTaken` where there is a folder of that name."""
    draft = path.with_name(f".{path.name}.part")
    try:
        with draft.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        _sync_folder(path.parent)
    except OSError as e:
        raise _error(path, "written", e) from e
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    return path


def remove(path: Path) -> None:
    """Remove an output file if it is there. Raises as `write_whole`."""
    try:
        path.unlink(missing_ok=True)
    except OSError as e:
        raise _error(path, "removed", e) from e


def _error(path: Path, done: str, e: OSError) -> OutputError:
    if isinstance(e, IsADirectoryError):
        return NameTaken(f"{path}: cannot be {done}: there is a folder of that name; move it away")
    return OutputError(f"{path}: cannot be {done}: {e.strerror}; choose another folder with output=FOLDER")


def locked(path: Path) -> IO[str]:
    """That file, locked until it is closed, or the process ends however it does. Raises `BlockingIOError` when another
    process has locked it, and `OSError` when it cannot be written."""
    file = path.open("w")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    except (ImportError, OSError):  # Windows, or disks without locks: not to do it twice at once is the user's part
        pass
    return file


def _sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk, where the system can do that."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
