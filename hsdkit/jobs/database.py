"""The job's file: SQLite in the output folder, opened by any number of processes; every error of it in one line.

Journal: WAL where the folder is on a disk of this host, a rollback journal (truncated) everywhere else. Measured on an
ext4 disk, claiming and finishing a page costs 58 ms with the rollback journal, 11 ms with WAL, 6 ms with WAL where only
the finished page is synced. WAL needs memory shared between all processes, which network file systems do not have.
"""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hsdkit.errors import OutputError
from hsdkit.files import make_folder

NAME = ".hsdkit-job.sqlite"
#: "hsdk" as a number, in the head of the file; and the version of the tables.
APPLICATION, SCHEMA_VERSION = 0x6873646B, 2

#: Said of a file whose content cannot be right.
DAMAGED = "is damaged; remove it to parse everything again, or choose another folder with output=FOLDER"

#: Seconds to wait for other processes that write.
_PATIENCE = 60.0

_LOCAL = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "overlay", "bcachefs", "jfs"})

_SCHEMA = """
CREATE TABLE workers (
    id INTEGER PRIMARY KEY AUTOINCREMENT, host TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL,
    beat INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE documents (
    id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, stem TEXT NOT NULL, name TEXT, folded TEXT UNIQUE,
    size INTEGER, mtime INTEGER, hashed INTEGER, sha256 TEXT NOT NULL DEFAULT '', count INTEGER,
    state TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'open', 'assembling', 'done', 'failed')),
    fingerprint TEXT NOT NULL DEFAULT '', error TEXT, assembler INTEGER, versions TEXT,
    result_size INTEGER, result_mtime INTEGER, result_sha256 TEXT
);
CREATE INDEX documents_by_stem ON documents (stem);
CREATE INDEX documents_by_state ON documents (state);
CREATE TABLE pages (
    id INTEGER PRIMARY KEY, document INTEGER NOT NULL REFERENCES documents, number INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'todo' CHECK (state IN ('todo', 'claimed', 'done', 'failed')),
    owner INTEGER, error TEXT, payload BLOB, deaths INTEGER NOT NULL DEFAULT 0,
    UNIQUE (document, number)
);
CREATE INDEX pages_by_state ON pages (document, state, number);
"""

#: The documents that this run is asked for, in its order; this connection's own.
_SELECTION = """
CREATE TEMP TABLE selected (
    position INTEGER PRIMARY KEY, document INTEGER NOT NULL UNIQUE, given BLOB NOT NULL, pages TEXT, password TEXT,
    planned INTEGER NOT NULL DEFAULT 0, closed INTEGER NOT NULL DEFAULT 0,
    kept INTEGER NOT NULL DEFAULT 0, own INTEGER NOT NULL DEFAULT 0
);
"""


class Database:
    """One connection; may be used from any thread. Everything raises `OutputError` only."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.path = folder / NAME
        self._lock = threading.RLock()
        self._wal = False
        #: Whether all processes that see the folder run on this host, as far as is known.
        self.local = _on_local_disk(folder)
        self._connection: sqlite3.Connection | None = None
        try:
            with self._told():
                self._connection = sqlite3.connect(
                    self.path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
                )
                self._connection.row_factory = sqlite3.Row
                self._set_up()
        except BaseException:
            self.close()
            raise

    def _set_up(self) -> None:
        if not self.local:
            # With this a file in WAL mode is opened without shared memory, or refused while others have it open.
            self._run("PRAGMA locking_mode = EXCLUSIVE")
        self._run("BEGIN")  # or another process could make its tables between two of these looks
        application, version = self._pragma("application_id"), self._pragma("user_version")
        tables = self._run("SELECT count(*) FROM sqlite_master").fetchone()[0]
        self._run("COMMIT")
        if (tables or application) and application != APPLICATION:
            raise OutputError(f"{self.path}: not a job of hsdkit; choose another folder with output=FOLDER")
        if version > SCHEMA_VERSION:
            raise OutputError(
                f"{self.path}: written by a newer hsdkit (tables of version {version}, known is {SCHEMA_VERSION}); "
                "update hsdkit, or choose another folder with output=FOLDER"
            )
        if self.local:
            self._wal = self._switch_to_wal()
        else:
            self._run("PRAGMA journal_mode = TRUNCATE").fetchone()
            self._run("PRAGMA locking_mode = NORMAL")
            self._run("SELECT count(*) FROM sqlite_master").fetchone()  # only now is the lock let go
        self._run("PRAGMA synchronous = FULL")
        with self.transaction():
            if self._pragma("user_version") == 0:
                for statement in _SCHEMA.split(";"):
                    self._run(statement)
                self._run(f"PRAGMA application_id = {APPLICATION}")
            elif self._pragma("user_version") == 1:
                self._run("ALTER TABLE pages ADD COLUMN deaths INTEGER NOT NULL DEFAULT 0")
            if self._pragma("user_version") < SCHEMA_VERSION:
                self._run(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._run(_SELECTION)

    def _switch_to_wal(self) -> bool:
        """Whether the file has a WAL now. To switch needs the file alone, and SQLite does not wait for that itself."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                return bool(self._run("PRAGMA journal_mode = WAL").fetchone()[0] == "wal")
            except sqlite3.OperationalError as e:
                if e.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                    raise
                time.sleep(random.uniform(0.001, 0.02))  # not in step with another that tries the same

    def _pragma(self, name: str) -> int:
        return int(self._run(f"PRAGMA {name}").fetchone()[0])

    @contextlib.contextmanager
    def transaction(self, durable: bool = True) -> Iterator[None]:
        """All of the block or nothing; other processes wait. What is not `durable` may be lost if the power fails, and
        survives the end of the process all the same. Not to be nested."""
        with self._lock, self._told():
            if self._wal:  # the rollback journal would be open to corruption without its syncs
                self._run(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._run("BEGIN IMMEDIATE")
            try:
                yield
                self._run("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # some errors have rolled back already
                    self._run("ROLLBACK")
                raise

    def all(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        with self._lock, self._told():
            return self._run(statement, values).fetchall()

    def one(self, statement: str, *values: Any) -> sqlite3.Row | None:
        with self._lock, self._told():
            row: sqlite3.Row | None = self._run(statement, values).fetchone()
            return row

    def value(self, statement: str, *values: Any) -> Any:
        """The first column of the first row; None without a row."""
        row = self.one(statement, *values)
        return None if row is None else row[0]

    def change(self, statement: str, *values: Any) -> int:
        """How many rows were changed."""
        with self._lock, self._told():
            return self._run(statement, values).rowcount

    def insert(self, statement: str, *values: Any) -> int:
        """The number of the new row."""
        with self._lock, self._told():
            return int(self._run(statement, values).lastrowid or 0)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.close()
                self._connection = None

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        if self._connection is None:
            raise OutputError(f"{self.path}: the job is closed")
        return self._connection.execute(statement, values)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as e:
            raise OutputError(f"{self.path}: {_reason(e)}") from e


def _reason(error: sqlite3.Error) -> str:
    said = str(error)
    if "locked" in said or "busy" in said:
        return "another process has kept it locked for too long; wait for that one, or choose another output=FOLDER"
    if "full" in said:
        return "cannot be written: no space left on the disk; run again when there is, finished pages are kept"
    if "readonly" in said or "unable to open" in said:
        return "cannot be opened for writing; choose another folder with output=FOLDER"
    if "not a database" in said or "malformed" in said:
        return DAMAGED
    return f"cannot be used: {said}"


def _on_local_disk(folder: Path) -> bool:
    """Whether all processes that see this folder run on this host, as far as is known."""
    try:
        device = os.stat(folder).st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                fields = line.split()
                if fields[2] == wanted:
                    return fields[fields.index("-") + 1] in _LOCAL
    except (OSError, ValueError, AttributeError, IndexError):
        pass
    return False
