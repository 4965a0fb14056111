"""What Prometheus is told: counters of the work done and refused, gauges of what waits and runs."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest

from hsdkit.results import PageResult
from hsdkit.totals import Totals

_PAGE_SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """A registry of its own, so that two services in one process do not mix."""

    def __init__(self) -> None:
        disable_created_metrics()  # when each counter began: twice the lines, and Prometheus knows
        self._registry = r = CollectorRegistry()
        self.requests = Counter("hsdkit_requests", "Answers by status code.", ["status"], registry=r)
        self.refused = Counter("hsdkit_refused", "Requests refused, by reason.", ["reason"], registry=r)
        self.jobs = Counter("hsdkit_jobs", "Jobs ended, by how.", ["status"], registry=r)
        self.pages = Counter("hsdkit_pages", "Pages parsed or failed, by how they ended.", ["outcome"], registry=r)
        self.seconds = Histogram("hsdkit_page_seconds", "Seconds a page took.", buckets=_PAGE_SECONDS, registry=r)
        self.tokens = Counter("hsdkit_tokens", "Tokens of the page outputs.", registry=r)
        self.steps = Counter("hsdkit_steps", "Verification steps of both stages.", registry=r)
        self.accepted = Counter("hsdkit_accepted_tokens", "Drafted tokens that were accepted.", registry=r)
        for reason in ("body_size", "page_count", "queue", "uploads", "disk", "slow", "token", "host", "document"):
            self.refused.labels(reason)  # there from the start, as 0
        for outcome in ("eos", "length", "loop", "time", "draft", "error"):
            self.pages.labels(outcome)

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A gauge whose value is looked up when it is asked for."""
        Gauge(name, text, registry=self._registry).set_function(value)

    def page(self, result: PageResult) -> None:
        totals = Totals.of(result)
        ended = "draft" if result.origin == "draft" else result.finish_reason
        self.pages.labels("error" if result.error else ended).inc()
        self.seconds.observe(result.seconds)
        self.tokens.inc(totals.page_tokens)
        self.steps.inc(totals.steps)
        self.accepted.inc(totals.accepted)

    def text(self) -> bytes:
        return generate_latest(self._registry)
