"""A request that is refused: status, one line that says why and what to do, and when to come again."""

from __future__ import annotations


class Refusal(Exception):
    """`retry_after` in seconds, for what passes (429, 503). `reason` names it in the metrics."""

    def __init__(self, status: int, message: str, reason: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.reason, self.retry_after = status, message, reason, retry_after

    @property
    def headers(self) -> dict[str, str]:
        # 400: where the request ends is not known, so that what follows is no other one.
        more = {401: {"WWW-Authenticate": "Bearer"}, 400: {"Connection": "close"}}.get(self.status, {})
        return more if self.retry_after is None else more | {"Retry-After": str(self.retry_after)}


def stopping() -> Refusal:
    return Refusal(503, "the service is being shut down", "stopping", 30)
