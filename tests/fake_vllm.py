"""As much of vLLM as our code touches: a scheduler over an oracle instead of a model, and a server in front of it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

from hsdkit_plugins.engines._vllm.scheduling import DraftingScheduler

LOOPED = "finished: stopped"


@dataclass
class FakeRequest:
    """As `vllm.v1.request.Request`: `answer` is what the model will say, an end token included."""

    request_id: str
    answer: list[int]
    extra_args: dict[str, Any] | None = None
    max_tokens: int = 4096
    output_token_ids: list[int] = field(default_factory=list)
    spec_token_ids: list[int] = field(default_factory=list)
    status: str = "running"
    is_prefill_chunk: bool = False
    prompt_tokens: int = 10

    @property
    def sampling_params(self) -> Any:
        return SimpleNamespace(extra_args=self.extra_args)

    @property
    def num_tokens(self) -> int:
        return self.prompt_tokens + len(self.output_token_ids)

    @property
    def num_output_tokens(self) -> int:
        return len(self.output_token_ids)

    def is_finished(self) -> bool:
        return self.status != "running"


class FakeStock:
    """As `vllm.v1.core.sched.scheduler.Scheduler`, for one batch of all requests."""

    def __init__(self, limit: int = 16, max_model_len: int = 4096) -> None:
        self.requests: dict[str, FakeRequest] = {}
        self.num_spec_tokens = limit
        self.max_model_len = max_model_len

    def add_request(self, request: FakeRequest) -> None:
        self.requests[request.request_id] = request

    def schedule(self) -> Any:
        drafts = {name: r.spec_token_ids for name, r in self.requests.items() if r.spec_token_ids}
        scheduled = {
            name: 1 + len(r.spec_token_ids) if r.output_token_ids else r.prompt_tokens
            for name, r in self.requests.items()
        }
        return SimpleNamespace(num_scheduled_tokens=scheduled, scheduled_spec_decode_tokens=drafts)

    def update_from_output(self, scheduled: Any, sampled: dict[str, list[int]]) -> dict[int, Any]:
        outputs = []
        for name, tokens in sampled.items():
            request = self.requests[name]
            new, stopped = self._update_request_with_output(request, list(tokens))
            if stopped:
                del self.requests[name]
            reason = "stop" if stopped else None
            outputs.append(SimpleNamespace(request_id=name, new_token_ids=new, finish_reason=reason, stop_reason=None))
        return {0: SimpleNamespace(outputs=outputs)}

    def _update_request_with_output(self, request: FakeRequest, new: list[int]) -> tuple[list[int], bool]:
        request.output_token_ids += new
        done = len(request.output_token_ids) >= min(request.max_tokens, len(request.answer))
        return new, done

    def update_draft_token_ids(self, drafts: Any) -> None:
        for name, tokens in zip(drafts.req_ids, drafts.draft_token_ids, strict=True):
            if name in self.requests:
                self.requests[name].spec_token_ids = tokens


class FakeScheduler(DraftingScheduler, FakeStock):
    hsdkit_loop_status = LOOPED

    def __init__(self, tokenizer: Any, vocabulary: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tokenizer, self.hsdkit_vocabulary = tokenizer, vocabulary

    def hsdkit_tokenizer(self) -> Any:
        if isinstance(self.tokenizer, Exception):
            raise self.tokenizer
        return self.tokenizer


def step(scheduler: FakeStock) -> list[Any]:
    """One step of vLLM's engine: schedule, run the model (which accepts what it would say itself), update, draft."""
    scheduled = scheduler.schedule()
    sampled = {}
    for name, request in scheduler.requests.items():
        rest, drafted = request.answer[len(request.output_token_ids) :], request.spec_token_ids
        accepted = 0
        while accepted < min(len(drafted), len(rest) - 1) and drafted[accepted] == rest[accepted]:
            accepted += 1
        sampled[name] = rest[: accepted + 1]
        request.spec_token_ids = []
    (outputs,) = scheduler.update_from_output(scheduled, sampled).values()
    names = list(sampled)
    scheduler.update_draft_token_ids(SimpleNamespace(req_ids=names, draft_token_ids=[[] for _ in names]))
    return list(outputs.outputs)


def finish(scheduler: FakeStock) -> dict[str, Any]:
    """Step until all requests are done; the last output of each."""
    last = {}
    while scheduler.requests:
        for output in step(scheduler):
            last[output.request_id] = output
    return last


@dataclass
class FakeServer:
    """Answers as vLLM's OpenAI-compatible server. `answer` gives the events' data of a request, strings as they are."""

    answer: Callable[[dict[str, Any]], Iterator[Any]]
    version: str = "0.32.0"
    models: list[dict[str, Any]] = field(default_factory=list)
    key: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(fake: FakeServer) -> Iterator[FakeServer]:
    class Handler(BaseHTTPRequestHandler):
        def _json(self, status: int, value: Any) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(value.encode() if isinstance(value, str) else json.dumps(value).encode())

        def _let_in(self) -> bool:
            if fake.key and self.headers.get("Authorization") != f"Bearer {fake.key}":
                self._json(401, {"error": {"message": "Unauthorized"}})
                return False
            return True

        def do_GET(self) -> None:
            if self.path == "/version":
                self._json(200, {"version": fake.version})
            elif self._let_in():
                self._json(200, {"data": fake.models})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self._let_in():
                return
            fake.asked.append(body)
            events = fake.answer(body)
            first = next(events)
            if isinstance(first, int):
                self._json(first, next(events))
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            try:
                while first is not None:
                    if isinstance(first, float):
                        time.sleep(first)
                    else:
                        said = first if isinstance(first, str) else json.dumps(first)
                        self.wfile.write(f"data: {said}\n\n".encode())
                        self.wfile.flush()
                    first = next(events, None)
            except OSError:  # the client has left
                pass

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    fake.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
