"""The processes that work on a job: each registers, shows that it is alive, and sees which of the others are dead."""

from __future__ import annotations

import contextlib
import threading

from hsdkit.errors import OutputError
from hsdkit.jobs.database import Database
from hsdkit.jobs.owner import BEAT, LEASE, Observer, Owner, this_process


class Workers:
    """This process among the workers of a job; `me` is its number. Dead ones of this host are struck off at once: what
    they had claimed is free then."""

    def __init__(self, database: Database, lease: float = LEASE, beat: float = BEAT) -> None:
        self._database, self._observer, self._every = database, Observer(lease), beat
        owner = this_process()
        with database.transaction(durable=False):
            for row in database.all("SELECT * FROM workers"):
                if self._observer.is_dead(row["id"], Owner(row["host"], row["pid"], row["started"]), row["beat"]):
                    database.change("DELETE FROM workers WHERE id = ?", row["id"])
            self.me = database.insert(
                "INSERT INTO workers (host, pid, started) VALUES (?, ?, ?)", owner.host, owner.pid, owner.started
            )
        self._stop = threading.Event()
        threading.Thread(target=self._beat, name="hsdkit-job-heartbeat", daemon=True).start()

    def is_dead(self, worker: int | None) -> bool:
        """Whether nobody of that number is at work any more."""
        if worker == self.me:
            return False
        row = self._database.one("SELECT * FROM workers WHERE id = ?", worker)
        return row is None or self._observer.is_dead(
            row["id"], Owner(row["host"], row["pid"], row["started"]), row["beat"]
        )

    def others(self) -> list[str]:
        """The living others, in words."""
        rows = self._database.all("SELECT * FROM workers WHERE id <> ?", self.me)
        return [str(Owner(r["host"], r["pid"], r["started"])) for r in rows if not self.is_dead(r["id"])]

    def leave(self) -> None:
        """Strike this process off: what it has claimed is free."""
        self._stop.set()
        with self._database.transaction(durable=False):
            self._database.change("DELETE FROM workers WHERE id = ?", self.me)

    def _beat(self) -> None:
        while not self._stop.wait(self._every):
            with contextlib.suppress(OutputError), self._database.transaction(durable=False):
                self._database.change("UPDATE workers SET beat = beat + 1 WHERE id = ?", self.me)
