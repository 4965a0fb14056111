"""`engine=vllm` in a real vLLM (vllm-cpu will do): outputs are those of plain vLLM, whatever the drafts.

Run where vLLM is installed; see docs/vllm.md. Each engine takes half a minute to start.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed here: its environment is one of its own (docs/vllm.md)")

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hsdkit_plugins.engines._vllm.asked import ask
from hsdkit_plugins.engines._vllm.offline import OfflineVllm
from hsdkit_plugins.engines._vllm.reading import read
from hsdkit_plugins.engines._vllm.support import config_overrides
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from hsdkit_plugins.engines.vllm import VllmConfig, VllmEngine
from hsdkit_plugins.targets.qwen2_5_vl import PROFILE
from hsdkit_plugins.targets.tiny import TinyConfig, TinyTarget
from models import make, mrope, page, target_of
from PIL import Image, ImageDraw, ImageFont

from hsdkit.decoding.codec import TokenizerCodec
from hsdkit.errors import ConfigError, TargetError
from hsdkit.protocols import DecodeRequest, DecodeSettings

ROOT = Path(__file__).parents[2]
SMALL = {"max_model_len": 2048, "max_num_seqs": 16, "enforce_eager": True}
LIMIT = 96
TARGETS = ["tiny", "qwen2_5_vl"]
PRINTED = (
    ("The harbour received 1,204 ships in the year 2024,", "of which 311 were ferries and 90 were yachts."),
    ("Dredging of the northern channel was completed", "in March, two months later than it was planned."),
    ("The lighthouse was painted in the same summer;", "the total cost of all works was 12.5 million."),
    ("Houses by the river were built long before that", "and have been rented to the families of pilots."),
)


def make_target(name: str, folder: Path) -> Any:
    if name == "tiny":
        return TinyTarget(TinyConfig())
    # On CPUs vLLM's attention has no heads of 16.
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "rope_parameters": mrope([4, 6, 6])}
    return target_of(PROFILE, make(name, folder, **heads))


def images(target: Any) -> list[Any]:
    """What the target has much to say about: anything for random weights, for the embedded model something printed."""
    if target.name == "tiny":
        return [printed(lines) for lines in PRINTED]
    return [page(192 + 32 * (i % 3), 96, seed=i) for i in range(4)]


def printed(lines: tuple[str, ...]) -> Image.Image:
    image = Image.new("RGB", (384, 32 + 24 * len(lines)), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(13)
    for i, line in enumerate(lines):
        draw.text((24, 16 + 24 * i), line, "black", font)
    return image


def requests(target: Any, drafts: list[tuple[str, ...]]) -> list[DecodeRequest]:
    return [DecodeRequest(image, target.prompt(None), d) for image, d in zip(images(target), drafts, strict=True)]


@pytest.fixture(scope="module", params=TARGETS)
def stock(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Any]]:
    """A target, and what vLLM as it comes writes for each image: no scheduler of ours, no speculation."""
    target = make_target(request.param, tmp_path_factory.mktemp(request.param))
    codec = TokenizerCodec(target.tokenizer, target.written_tokens)
    token = target.model_config.image_token_id
    settings = DecodeSettings(max_new_tokens=LIMIT)
    overrides = config_overrides(target.checkpoint.description, target.name)
    arguments = {"model": str(target.checkpoint.folder), "dtype": "float32", "hf_overrides": overrides, **SMALL}
    with closing(OfflineVllm(arguments)) as vllm:
        return target, [
            read(vllm.ask, ask(r, target, settings, LIMIT), settings, codec, token, lambda _: None).sequence
            for r in requests(target, [()] * 4)
        ]


@pytest.fixture(scope="module")
def engine(stock: tuple[Any, list[Any]]) -> Iterator[VllmEngine]:
    made = VllmEngine(VllmConfig(dtype="fp32", draft_tokens=24, arguments=SMALL), stock[0])
    yield made
    made.close()


def kinds_of_drafts(texts: list[str]) -> dict[str, list[tuple[str, ...]]]:
    return {
        "good": [(text,) for text in texts],
        "none": [()] * len(texts),
        "another page's": [(text,) for text in texts[1:] + texts[:1]],
        "noisy": [(text.replace("a", "o").replace("1", "7"), "\x00" * 40) for text in texts],
        "of one only": [(texts[0],), *[()] * (len(texts) - 1)],
    }


def check_exact(engine: VllmEngine, plain: list[Any], drafts: list[tuple[str, ...]], copies: int = 1) -> Any:
    settings = DecodeSettings(max_new_tokens=LIMIT)
    decoded = engine.decode(requests(engine.target, drafts) * copies, settings)
    assert [s.tokens for s in decoded.sequences] == [s.tokens for s in plain] * copies
    assert [s.text for s in decoded.sequences] == [s.text for s in plain] * copies
    for sequence in decoded.sequences:
        assert 1 + sum(step.emitted for step in sequence.steps) == len(sequence.tokens)
        assert sequence.image_tokens > 0
    return decoded


def test_outputs_are_those_of_plain_vllm_whatever_the_drafts(stock: Any, engine: VllmEngine) -> None:
    plain = stock[1]
    for name, drafts in kinds_of_drafts([s.text for s in plain]).items():
        decoded = check_exact(engine, plain, drafts)
        if name == "good":
            assert sum(s.aal > 0 for s in decoded.sequences) >= 3


def test_vllm_reads_what_transformers_reads(stock: Any) -> None:
    """The same model with the same image and prompt; arithmetic differs, so one of four may part at a near-tie."""
    target, plain = stock
    engine = TransformersEngine(TransformersConfig(dtype="fp32"), target)
    decoded = engine.decode(requests(target, [()] * 4), DecodeSettings(max_new_tokens=LIMIT))
    same = [a.tokens == b.tokens for a, b in zip(decoded.sequences, plain, strict=True)]
    assert sum(same) >= 3, [(a.text, b.text) for a, b in zip(decoded.sequences, plain, strict=True)]
    assert [s.image_tokens for s in decoded.sequences] == [s.image_tokens for s in plain]


def test_batches_of_sixteen_are_exact_too(stock: Any, engine: VllmEngine) -> None:
    plain = stock[1]
    check_exact(engine, plain, [(s.text,) for s in plain], copies=4)
    check_exact(engine, plain, [()] * 4, copies=4)


def test_plain_decoding_through_our_scheduler_takes_a_step_a_token(stock: Any, engine: VllmEngine) -> None:
    settings = DecodeSettings(max_packed=1, self_lookup=False, max_new_tokens=LIMIT)
    decoded = engine.decode(requests(stock[0], [("ignored",)] * 4), settings)
    for sequence, plain in zip(decoded.sequences, stock[1], strict=True):
        assert sequence.tokens == plain.tokens
        assert len(sequence.steps) == len(sequence.tokens) - 1
        assert all(step.nodes == 0 for step in sequence.steps)


def test_a_cancelled_call_leaves_the_engine_ready(stock: Any, engine: VllmEngine) -> None:
    class Enough(Exception):
        pass

    def enough(row: int, text: str) -> None:
        raise Enough

    settings = DecodeSettings(max_new_tokens=LIMIT)
    with pytest.raises(Enough):
        engine.decode(requests(stock[0], [()] * 4), settings, enough)
    check_exact(engine, stock[1], [()] * 4)


def test_a_deadline_leaves_the_beginning_and_frees_the_engine(stock: Any, engine: VllmEngine) -> None:
    settings = DecodeSettings(max_packed=1, self_lookup=False, max_new_tokens=LIMIT, deadline=0.0)
    for sequence, plain in zip(engine.decode(requests(stock[0], [()] * 4), settings).sequences, stock[1], strict=True):
        assert sequence.finish_reason == "time"
        assert sequence.tokens == plain.tokens[: len(sequence.tokens)]
        assert 0 < len(sequence.tokens) < len(plain.tokens)
    check_exact(engine, stock[1], [()] * 4)


def test_a_prompt_too_long_for_the_model_is_that_pages_error(stock: Any, engine: VllmEngine) -> None:
    if stock[0].name == "tiny":
        pytest.skip("its prompt has no words")
    with pytest.raises(TargetError, match="engine=vllm"):
        engine.decode([DecodeRequest(images(stock[0])[0], "word " * 4000)], DecodeSettings())
    check_exact(engine, stock[1], [()] * 4)


def test_costs_of_steps_are_known_after_loading(engine: VllmEngine) -> None:
    engine.load()
    assert 0 < engine.expected_seconds(1) < engine.expected_seconds(100)
    assert 0 < engine.pass_seconds(1) <= engine.pass_seconds(64)
    assert engine.facts["dtype"] == "float32"


# -- over HTTP


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """A server, started as `hsdkit serve-command` says."""
    target = TinyTarget(TinyConfig())
    port = free_port()
    said = VllmEngine(VllmConfig(dtype="fp32", draft_tokens=24, arguments={**SMALL, "port": port}), target)
    with running([*shlex.split(said.serve_command())], port) as url:
        yield url


def free_port() -> int:
    with closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class running:
    """A vLLM server, until it is no longer needed."""

    def __init__(self, command: list[str], port: int) -> None:
        self.command, self.url = command, f"http://127.0.0.1:{port}"

    def __enter__(self) -> str:
        import sys
        import urllib.request

        assert self.command[0] == "python"
        self.process = subprocess.Popen([sys.executable, *self.command[1:], "--host", "127.0.0.1"])
        for _ in range(600):
            assert self.process.poll() is None, "the server ended"
            try:
                urllib.request.urlopen(f"{self.url}/health", timeout=5)
                return self.url
            except OSError:
                time.sleep(1)
        raise AssertionError("the server does not answer")

    def __exit__(self, *_: Any) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()


@pytest.mark.parametrize("stock", ["tiny"], indirect=True)
def test_over_http_outputs_are_those_of_plain_vllm(stock: Any, server: str) -> None:
    target = TinyTarget(TinyConfig())
    remote = VllmEngine(VllmConfig(url=server), target)
    plain = stock[1]
    for name, drafts in kinds_of_drafts([s.text for s in plain]).items():
        decoded = check_exact(remote, plain, drafts)
        if name == "good":
            assert sum(s.aal > 0 for s in decoded.sequences) >= 3
    check_exact(remote, plain, [(s.text,) for s in plain], copies=4)
    assert "model" not in vars(target)
    hostile(server, target)
    check_exact(remote, plain, [()] * 4)
    with pytest.raises(ConfigError, match="tau"):
        remote.decode(requests(target, [()] * 4), DecodeSettings(tau=0.5))


def hostile(url: str, target: Any) -> None:
    """Messages that are none: answered as any request is."""
    from hsdkit_plugins.engines._vllm.http import Http
    from hsdkit_plugins.engines._vllm.message import KEY, read_record

    model = Http(url, None, 60).get("/v1/models")["data"][0]["id"]
    for value in ("{", "[" * 9999, '{"format": 1, "drafts": 7}', 12345, ["a", "b"]):
        body = {
            "model": model,
            "messages": [{"role": "user", "content": "x"}],
            "max_tokens": 4,
            "stream": True,
            "ignore_eos": True,
            "temperature": 0,
            "vllm_xargs": {KEY: value},
        }
        *_, last = [e for e in Http(url, None, 60).events("/v1/chat/completions", body) if e.get("choices")]
        record = read_record(last["choices"][0]["stop_reason"])
        assert record is not None
        assert record.note.startswith("drafts ignored")


def test_the_registry_has_the_models_we_say_it_has() -> None:
    """Every target of ours whose model type we take for served."""
    from hsdkit_plugins.engines._vllm.support import MODEL_TYPES
    from vllm.model_executor.models import ModelRegistry

    architectures = {
        "deepseek_ocr2": "DeepseekOCR2ForCausalLM",
        "deepseek_vl_v2": "DeepseekOCRForCausalLM",
        "dots_ocr": "DotsOCRForCausalLM",
        "glm_ocr": "GlmOcrForConditionalGeneration",
        "hunyuan_vl": "HunYuanVLForConditionalGeneration",
        "idefics3": "Idefics3ForConditionalGeneration",
        "lighton_ocr": "LightOnOCRForConditionalGeneration",
        "paddleocr_vl": "PaddleOCRVLForConditionalGeneration",
        "qwen2_5_vl": "Qwen2_5_VLForConditionalGeneration",
        "qwen3_vl": "Qwen3VLForConditionalGeneration",
        "unlimited_ocr": "UnlimitedOCRForCausalLM",
    }
    assert set(architectures) == set(MODEL_TYPES)
    assert set(architectures.values()) <= set(ModelRegistry.get_supported_archs())
