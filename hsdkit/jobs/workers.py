"""The processes that work on a job: each registers, shows that it is alive, and sees which of the others are dead."""

from __future__ import annotations

import contextlib
import threading
import time

from hsdkit.errors import OutputError
from hsdkit.jobs.database import Database
from hsdkit.jobs.owner import BEAT, LEASE, Observer, Owner, this_process

#: Seconds between two looks at another's heart.
_POLL = 0.2


class Workers:
    """This process among the workers of a job; `me` is its number. Dead ones of this host are struck off at once: what
    they had claimed is free then."""

    def __init__(self, database: Database, lease: float = LEASE, beat: float = BEAT) -> None:
        self._database, self._observer, self._every = database, Observer(lease, database.local), beat
        owner = this_process()
        with database.transaction(durable=False):
            for row in database.all("SELECT * FROM workers"):
                if self._observer.is_dead(row["id"], Owner.of(row), row["beat"]):
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
        return row is None or self._observer.is_dead(row["id"], Owner.of(row), row["beat"])

    def living(self) -> Owner | None:
        """Another one that is at work. Of one elsewhere only its heart is seen: it is watched until that beats, or for
        as long as it takes to be sure that it does not."""
        first: dict[int, int] = {}
        while True:
            others = self._database.all("SELECT * FROM workers WHERE id <> ? ORDER BY id", self.me)
            others = [row for row in others if not self.is_dead(row["id"])]
            for row in others:
                owner = Owner.of(row)
                if owner.is_here or row["beat"] != first.setdefault(row["id"], row["beat"]):
                    return owner
            if not others:
                return None
            time.sleep(_POLL)

    def leave(self) -> None:
        """Strike this process off: what it has claimed is free."""
        self._stop.set()
        with self._database.transaction(durable=False):
            self._database.change("DELETE FROM workers WHERE id = ?", self.me)

    def _beat(self) -> None:
        while not self._stop.wait(self._every):
            with contextlib.suppress(OutputError), self._database.transaction(durable=False):
                self._database.change("UPDATE workers SET beat = beat + 1 WHERE id = ?", self.me)
