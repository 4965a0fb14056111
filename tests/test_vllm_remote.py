"""`engine=vllm engine.url=...` against a server of our own making: what is asked, what comes back, what goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_vllm import FakeServer, serving
from hsdkit_plugins.engines._vllm.message import KEY, Record, read_message
from hsdkit_plugins.engines.vllm import TRIAL, VllmConfig, VllmEngine
from hsdkit_plugins.targets.qwen2_5_vl import PROFILE
from models import page, target_of

from hsdkit.errors import ConfigError, HsdkitError, PluginError, TargetError
from hsdkit.protocols import DecodeRequest, DecodeSettings
from hsdkit.results import Step

TEXT = "The harbour received 1,204 ships."
IMAGE_TOKENS = 6


@pytest.fixture(scope="module")
def folder(checkpoint: Callable[[str], Path]) -> Path:
    return checkpoint("qwen2_5_vl")


@pytest.fixture
def target(folder: Path) -> Any:
    return target_of(PROFILE, folder)


class Model:
    """What the server says: to each request the text that `says` gives for its prompt, a few tokens an event."""

    def __init__(self, target: Any, text: str = TEXT, record: bool = True, limit: int = 64) -> None:
        self.target, self.text, self.record, self.limit = target, text, record, limit
        self.prompt: list[int] | None = None
        self.pause = 0.0
        self.answering, self.most = 0, 0

    def __call__(self, body: dict[str, Any]) -> Iterator[Any]:
        self.answering += 1
        self.most = max(self.most, self.answering)
        yield from self.events(body)
        self.answering -= 1

    def events(self, body: dict[str, Any]) -> Iterator[Any]:
        words = [p["text"] for p in body["messages"][-1]["content"] if p["type"] == "text"]
        ours = self.target.prompt_ids(words[0])
        at = ours.index(self.target.model_config.image_token_id)
        prompt = ours[:at] + [ours[at]] * IMAGE_TOKENS + ours[at + 1 :]
        tokens = [*self.target.tokenizer.encode(self.text, add_special_tokens=False), min(self.target.eos_ids)]
        if body["ignore_eos"]:
            tokens = (tokens * TRIAL)[: body["max_tokens"]]
        cut = tokens[: body["max_tokens"]]
        yield {"prompt_token_ids": self.prompt or prompt, "choices": [{"delta": {"role": "assistant"}}]}
        for start in range(0, len(cut) - 1, 5):
            yield self.pause
            yield {"choices": [{"token_ids": cut[start : min(start + 5, len(cut) - 1)], "finish_reason": None}]}
        steps = (Step(5, 5, True, "draft", 0.5, ""),)
        reason = Record(steps, 0.1, 0.01, self.limit, (0.02, 0.001)).to_text() if self.record else None
        finish = "stop" if len(cut) == len(tokens) and not body["ignore_eos"] else "length"
        yield {"choices": [{"token_ids": cut[-1:], "finish_reason": finish, "stop_reason": reason}]}
        yield "[DONE]"


@pytest.fixture
def server(target: Any, folder: Path) -> Iterator[FakeServer]:
    models = [{"object": "model", "id": "served", "root": str(folder), "max_model_len": 500}]
    with serving(FakeServer(Model(target), models=models)) as fake:
        yield fake


def engine(server: FakeServer, target: Any, **options: Any) -> VllmEngine:
    return VllmEngine(VllmConfig(url=server.url, **options), target)


def decode(made: VllmEngine, *drafts: str, number: int = 1, on_text: Any = None, **settings: Any) -> Any:
    requests = [DecodeRequest(page(seed=i), "Read it.", drafts) for i in range(number)]
    return made.decode(requests, DecodeSettings(**settings), on_text)


def test_the_text_the_steps_and_the_prompt_come_back(server: FakeServer, target: Any) -> None:
    told: list[str] = []
    decoded = decode(engine(server, target), TEXT, on_text=lambda _, text: told.append(text))
    (sequence,) = decoded.sequences
    assert sequence.text == "".join(sequence.pieces) == "".join(told) == TEXT
    assert sequence.finish_reason == "eos"
    assert sequence.tokens[-1] in target.eos_ids
    assert [s.accepted for s in sequence.steps] == [5]
    assert sequence.image_tokens == IMAGE_TOKENS
    assert decoded.times.total > 0
    assert decoded.forwards == 1


def test_the_weights_are_not_loaded_here(server: FakeServer, folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        if file.suffix != ".safetensors":
            (tmp_path / file.name).symlink_to(file)
    target = target_of(PROFILE, tmp_path)
    assert decode(engine(server, target)).sequences[0].text == TEXT
    assert "model" not in vars(target)


def test_what_is_asked_is_greedy_decoding_with_the_drafts_as_text(server: FakeServer, target: Any) -> None:
    decode(engine(server, target), "one", "two", max_new_tokens=9000, max_packed=17, self_lookup=False)
    body = server.asked[-1]
    assert body["model"] == "served"
    assert body["temperature"] == 0
    assert body["max_tokens"] == 500  # more than the model's length would be refused
    assert body["stop_token_ids"] == sorted(target.eos_ids)
    assert body["repetition_penalty"] == 1
    message = read_message(body["vllm_xargs"])
    assert message is not None
    assert (message.drafts, message.width, message.self_lookup) == (("one", "two"), 16, False)
    kinds = [part["type"] for part in body["messages"][-1]["content"]]
    assert kinds == ["image_url", "text"]
    assert "max_pixels" not in str(body.get("mm_processor_kwargs"))
    assert set(body["mm_processor_kwargs"]["size"]) == {"shortest_edge", "longest_edge"}  # the profile has a bound


def test_many_requests_and_many_callers_are_asked_at_once(server: FakeServer, target: Any) -> None:
    made = engine(server, target)
    made.load()
    server.answer.pause = 0.1  # type: ignore[attr-defined]
    found: list[Any] = []
    callers = [threading.Thread(target=lambda: found.append(decode(made, number=8))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert server.answer.most > 8  # type: ignore[attr-defined]
    assert [s.text for d in found for s in d.sequences] == [TEXT] * 32


def test_the_cost_of_steps_is_the_servers(server: FakeServer, target: Any) -> None:
    made = engine(server, target)
    assert made.expected_seconds(100) == pytest.approx(100 * 0.021)
    assert made.pass_seconds(64) == pytest.approx(0.02 + 64 * 0.001)
    assert made.facts["vllm"] == "0.32.0"


def test_a_sequence_ends_at_its_limit_its_deadline_and_where_it_loops(server: FakeServer, target: Any) -> None:
    made = engine(server, target)
    assert decode(made, max_new_tokens=3).sequences[0].finish_reason == "length"
    server.answer.pause = 0.05  # type: ignore[attr-defined]
    late = decode(made, deadline=time.monotonic() + 0.07).sequences[0]
    assert late.finish_reason == "time"
    assert 0 < len(late.text) < len(TEXT)
    server.answer.pause = 0.0  # type: ignore[attr-defined]
    server.models[0]["max_model_len"] = 9000
    server.answer.text = "and again " * 2000  # type: ignore[attr-defined]
    looped = decode(engine(server, target), max_new_tokens=9000).sequences[0]
    assert looped.finish_reason == "loop"
    assert looped.text.count("again") < 5


def test_one_failure_ends_the_others_of_its_call(server: FakeServer, target: Any) -> None:
    made = engine(server, target)
    made.load()

    class Enough(Exception):
        pass

    def enough(row: int, text: str) -> None:
        raise Enough

    server.answer.pause = 0.05  # type: ignore[attr-defined]
    server.answer.text = TEXT * 40  # type: ignore[attr-defined]
    start = time.perf_counter()
    with pytest.raises(Enough):
        decode(made, number=4, on_text=enough)
    assert time.perf_counter() - start < 2


# -- what cannot work, said before or in the place where it shows


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tau": 0.75}, "verifier.tau=0.75"),
        ({"matching": "suffix"}, "verifier.matching=suffix"),
        ({"max_packed": 66}, "verifier.max_packed=66"),
        ({"n": 0}, "n=0"),
    ],
)
def test_settings_that_vllm_cannot_decode_with_are_refused(
    server: FakeServer, target: Any, settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        decode(engine(server, target), **settings)


def test_a_target_with_a_ban_on_repetition_is_refused(server: FakeServer, target: Any) -> None:
    target.generation_config.no_repeat_ngram_size = 20
    with pytest.raises(ConfigError, match=r"NoRepeatNGram.* engine=transformers"):
        engine(server, target).load()
    assert server.asked == []


def test_a_repetition_penalty_travels_with_the_request(server: FakeServer, folder: Path) -> None:
    target = target_of(PROFILE, folder, repetition_penalty=1.2)
    decode(engine(server, target))
    assert server.asked[-1]["repetition_penalty"] == 1.2


def test_a_server_that_is_down_is_named_with_the_command_that_starts_one(target: Any) -> None:
    with pytest.raises(PluginError, match=r"127.0.0.1:9.*no server can be reached.*python -m vllm"):
        VllmEngine(VllmConfig(url="http://127.0.0.1:9"), target).load()


def test_a_server_without_our_scheduler_is_told(server: FakeServer, target: Any) -> None:
    server.answer.record = False  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match=r"verifies no drafts.*--scheduler-cls hsdkit_plugins"):
        engine(server, target).load()


def test_a_server_of_another_version_is_refused(server: FakeServer, target: Any) -> None:
    server.version = "0.12.1"
    with pytest.raises(PluginError, match=r"vLLM 0.12.1: hsdkit works with vllm>="):
        engine(server, target).load()


def test_a_server_of_another_model_is_refused(server: FakeServer, target: Any) -> None:
    with pytest.raises(ConfigError, match=r"engine.model=mine: the server .* serves served"):
        engine(server, target, model="mine").load()
    server.answer.prompt = [1, 2, 3, 4]  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="another prompt"):
        engine(server, target).load()
    server.models.append({"object": "model", "id": "other", "root": "/models/x"})
    server.models[0]["root"] = "/models/y"
    with pytest.raises(ConfigError, match=r"serves served, other; name one with engine.model"):
        engine(server, target).load()


def test_another_hub_model_is_refused_by_name(server: FakeServer, target: Any) -> None:
    from dataclasses import replace

    server.models[0]["root"] = "Qwen/Qwen2.5-VL-7B-Instruct"
    target.config = replace(target.config, model="Qwen/Qwen2.5-VL-3B-Instruct")
    with pytest.raises(ConfigError, match=r"serves Qwen/Qwen2.5-VL-7B-Instruct, and the target is Qwen/Qwen2.5-VL-3B"):
        engine(server, target).load()


def test_a_key_is_sent_and_a_missing_one_is_told(
    server: FakeServer, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.key = "secret"
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=r"engine.api_key_env"):
        engine(server, target).load()
    monkeypatch.setenv("MY_KEY", "secret")
    assert decode(engine(server, target, api_key_env="MY_KEY")).sequences[0].text == TEXT


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([500, {"error": {"message": "out of memory"}}], "500 .*out of memory"),
        ([502, "<html>"], "502 .*<html>"),
        (["no json"], "not JSON"),
        ([{"error": {"message": "engine died"}}], "engine died"),
        ([{"choices": []}], "broke off"),
        ([{"choices": [{"finish_reason": "abort"}]}], "another prompt"),
        (["[DONE]"], "broke a sequence off"),
        ([5.0, {"choices": []}], "said nothing for 0.5 s"),
    ],
)
def test_a_server_that_fails_midway_costs_the_page(
    server: FakeServer, target: Any, events: list[Any], said: str
) -> None:
    made = engine(server, target, timeout=0.5)
    made.load()
    server.answer = lambda _: iter(events)
    with pytest.raises(TargetError, match=said):
        decode(made)


def test_an_address_that_is_no_vllm_server_is_told(server: FakeServer, target: Any) -> None:
    server.models = "nonsense"  # type: ignore[assignment]
    with pytest.raises(PluginError, match="not a vLLM server"):
        engine(server, target).load()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": "localhost:8000"}, "must begin with http"),
        ({"timeout": 0}, "timeout=0"),
        ({"draft_tokens": 129}, "draft_tokens=129"),
        ({"url": "http://x", "dtype": "fp32"}, "decided where the server starts"),
        ({"model": "m"}, "engine.url"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        VllmConfig(**options)


def test_without_vllm_and_without_a_server_the_error_says_how_to_get_either(target: Any) -> None:
    try:
        import vllm  # noqa: F401
    except ImportError:
        with pytest.raises(HsdkitError, match=r'pip install "hsdkit\[vllm\]".*engine.url'):
            VllmEngine(VllmConfig(), target).load()
    else:
        pytest.skip("vLLM is installed here")


def test_a_message_is_what_the_server_needs_and_no_more(server: FakeServer, target: Any) -> None:
    decode(engine(server, target))
    assert list(server.asked[-1]["vllm_xargs"]) == [KEY]
