"""The decoding loop: what it reports, streams and stops at, and that with tau below 1 output and cache agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers
from hsdkit_plugins.engines.transformers import TransformersConfig, TransformersEngine
from models import SimpleTarget, page
from scripted import Scripted

from hsdkit.decoding.batch import best_tokens
from hsdkit.decoding.budget import PROBE_WIDTH, Budget, CostCurve
from hsdkit.decoding.guard import EVERY, SPAN
from hsdkit.decoding.loop import decode
from hsdkit.decoding.protocol import Prefill, Prompts
from hsdkit.errors import ConfigError, TargetError
from hsdkit.protocols import Decoded, DecodeRequest, DecodeSettings

SETTINGS = DecodeSettings(max_new_tokens=60, stop_loops=False)
REQUESTS = [DecodeRequest(page(96, 64, seed=k), "The table below lists"[: 4 + 5 * k]) for k in range(3)]
STEEP = CostCurve((1, 2, 128), (1.0, 2.0, 128.0))


@pytest.fixture(scope="module")
def engine(random_target: Callable[[str], SimpleTarget]) -> TransformersEngine:
    torch.set_num_threads(1)
    return TransformersEngine(TransformersConfig(), random_target("qwen3_vl"))


@pytest.fixture(scope="module")
def plain(engine: TransformersEngine) -> list[list[int]]:
    return [list(s.tokens) for s in run(engine, [None] * 3).sequences]


def run(
    engine: TransformersEngine,
    matchers: Sequence[Any],
    settings: DecodeSettings = SETTINGS,
    budget: Budget | None = None,
    on_text: Any = None,
) -> Decoded:
    return decode(engine.model, REQUESTS[: len(matchers)], settings, matchers, budget or Budget(16, None), (), on_text)


def test_steps_account_for_every_token(engine: TransformersEngine, plain: list[list[int]]) -> None:
    matchers = [Scripted(plain[0], "perfect"), Scripted(plain[1], "noisy"), None]
    result = run(engine, matchers)
    for sequence in result.sequences:
        assert 1 + sum(step.emitted for step in sequence.steps) == len(sequence.tokens) == 60
        assert sequence.finish_reason == "length"
        assert all(step.accepted <= step.nodes <= 15 for step in sequence.steps)
        assert all((step.source != "") == (step.accepted > 0) for step in sequence.steps)
    first, _, last = result.sequences
    assert len(first.steps) == 4  # 59 tokens after the prefill's, 16 a step
    assert last.aal == 0
    assert result.forwards == len(last.steps) == 59
    assert sum(step.seconds for step in last.steps) == pytest.approx(result.times.decode, rel=0.1)
    assert 0 < result.times.host < result.times.decode
    assert result.times.encode > 0
    assert result.times.prefill > 0
    assert matchers[0].accepted[0] == (0, "")  # the prefill's token is nobody's
    assert matchers[0].accepted[1] == (15, "draft 0")


def test_pieces_join_to_the_text_and_are_streamed_as_they_come(
    engine: TransformersEngine, plain: list[list[int]]
) -> None:
    streamed = {0: "", 1: "", 2: ""}

    def on_text(row: int, text: str) -> None:
        streamed[row] += text

    result = run(engine, [Scripted(plain[0], "noisy"), None, None], on_text=on_text)
    for row, sequence in enumerate(result.sequences):
        assert len(sequence.pieces) == len(sequence.tokens)
        assert "".join(sequence.pieces) == sequence.text
        data = b"".join(engine.model.codec.token_bytes(token) for token in sequence.tokens)
        assert sequence.text == data.decode("utf-8", "replace")
        assert sequence.text.startswith(streamed[row])
        assert len(sequence.text) - len(streamed[row]) <= 1  # a character cut by the limit


@pytest.mark.parametrize("limit", [1, 2, 7])
def test_the_limit_is_met_exactly(limit: int, engine: TransformersEngine, plain: list[list[int]]) -> None:
    result = run(engine, [Scripted(plain[0]), None, None], replace(SETTINGS, max_new_tokens=limit))
    assert [list(s.tokens) for s in result.sequences] == [row[:limit] for row in plain]


def test_finished_rows_leave_the_batch(engine: TransformersEngine, plain: list[list[int]]) -> None:
    """Rows with good drafts are done long before the last; its passes then carry one row only."""
    widths: list[int] = []
    verify = engine.model.verify

    class Spy:
        codec, eos_ids = engine.model.codec, engine.model.eos_ids
        prepare, prefill = engine.model.prepare, engine.model.prefill

        def verify(self, tokens: Any, *rest: Any) -> Any:
            widths.append(len(tokens))
            return verify(tokens, *rest)

    matchers = [Scripted(plain[0]), None, Scripted(plain[2])]
    result = decode(Spy(), REQUESTS, SETTINGS, matchers, Budget(16, None))
    assert [list(s.tokens) for s in result.sequences] == plain
    assert widths == [3] * 4 + [1] * 55


def test_drafts_that_never_pay_are_narrowed_to_single_tokens_and_probed(
    engine: TransformersEngine, plain: list[list[int]]
) -> None:
    class Hopeless(Scripted):
        def propose(self, limit: int) -> Any:
            return [replace(c, first=0.01) for c in super().propose(limit)]

    class Steep(Budget):
        def spent(self, *seconds: float) -> None:
            """The tiny model's real passes are not as steep."""

    result = run(engine, [Hopeless(plain[0], "shuffled")], budget=Steep(None, STEEP))
    assert list(result.sequences[0].tokens) == plain[0]
    nodes = [step.nodes for step in result.sequences[0].steps]
    assert set(nodes) == {0, PROBE_WIDTH - 1}
    assert nodes.count(PROBE_WIDTH - 1) == len(nodes) // 16


@pytest.mark.parametrize("architecture", ["qwen3_vl", "hunyuan_vl"])
@pytest.mark.parametrize("tau", [0.75, 0.3])
def test_with_tau_below_1_the_emitted_tokens_are_those_in_the_cache(
    architecture: str, tau: float, random_target: Callable[[str], SimpleTarget]
) -> None:
    """Teacher forcing the output: each token is the argmax there, or a draft's token within tau of it. A cache that
    held other tokens than the output would make later choices differ from these logits."""
    target = random_target(architecture)
    engine = TransformersEngine(TransformersConfig(), target)
    settings = replace(SETTINGS, tau=tau)
    greedy = [list(s.tokens) for s in run(engine, [None, None]).sequences]
    matchers = [SecondBest(target, request, greedy[k]) for k, request in enumerate(REQUESTS[:2])]
    result = run(engine, matchers, settings)
    departed = 0
    for request, sequence in zip(REQUESTS, result.sequences, strict=False):
        logits = teacher_forced(target, request, list(sequence.tokens))
        log_probabilities = logits.log_softmax(-1)
        index = 1
        for step in sequence.steps:
            for k in range(step.emitted):
                row, token = log_probabilities[index], sequence.tokens[index]
                gap = float(row.max() - row[token])
                if k < step.accepted:
                    assert gap <= -math.log(tau) + 1e-3
                    departed += gap > 1e-3
                else:
                    assert gap <= 1e-3  # the bonus is the model's own choice
                index += 1
    assert departed > 0


class SecondBest:
    """Drafts greedy output with the second likeliest token in place of each fourth one: what tau is there to accept."""

    def __init__(self, target: Any, request: DecodeRequest, greedy: list[int]) -> None:
        second = teacher_forced(target, request, greedy).topk(2).indices[:, 1].tolist()
        self.draft = [s if k % 4 == 3 else g for k, (g, s) in enumerate(zip(greedy, second, strict=True))]
        self.position = 0

    def propose(self, limit: int) -> Any:
        return Scripted(self.draft[self.position :]).propose(limit)

    def update(self, tokens: Sequence[int], accepted: int, source: str) -> None:
        self.position += len(tokens)


def teacher_forced(target: Any, request: DecodeRequest, tokens: list[int]) -> torch.Tensor:
    """(T, V) logits that judge each of the T tokens, with the model's own cache and positions."""
    cache = transformers.DynamicCache()
    with torch.inference_mode():
        first = target.model(**target.inputs([request]), cache=cache).logits[0, -1:]
        rest = target.model(input_ids=torch.tensor([tokens[:-1]]), cache=cache).logits[0]
    return torch.cat((first, rest)).float()


class Parrot:
    """A stand-in model whose next token is `script[position]`: loops can be scripted exactly."""

    def __init__(self, script: list[int]) -> None:
        self.script = script
        self.eos_ids: frozenset[int] = frozenset()
        self.codec = self

    def token_bytes(self, token: int) -> bytes:
        return b"%d " % token

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def _logits(self, positions: torch.Tensor) -> torch.Tensor:
        said = torch.tensor([self.script[p] for p in positions.flatten().tolist()])
        return torch.nn.functional.one_hot(said, 60).float().view(*positions.shape, 60)

    def prepare(self, requests: Sequence[DecodeRequest]) -> Prompts:
        return Prompts({}, [1], 0.0)

    def prefill(self, prompts: Prompts, cache: Any) -> Prefill:
        cache.begin_prompt([1], 1, capacity=4000)
        return Prefill(self._logits(torch.tensor([0])), [1], [1], [[0]], 0.0)

    def verify(self, tokens: torch.Tensor, positions: torch.Tensor, mask: Any, cache: Any) -> torch.Tensor:
        return self._logits(positions)


@pytest.mark.parametrize("width", [1, 5, 16])
def test_a_loop_stops_at_the_same_token_however_many_a_step_emits(width: int) -> None:
    before = [10 + k % 37 + k % 11 for k in range(300)]
    script = before + [3, 1, 4, 1, 5] * 600
    model, settings = Parrot(script), DecodeSettings(max_new_tokens=2000)
    result = decode(model, REQUESTS[:1], settings, [Scripted(script)], Budget(width, None))
    sequence = result.sequences[0]
    assert sequence.finish_reason == "loop"
    assert list(sequence.tokens) == script[: len(sequence.tokens)]
    assert len(sequence.tokens) == len(before) + 5  # one copy is kept
    assert len(sequence.pieces) == len(sequence.tokens)
    spent = 1 + sum(step.emitted for step in sequence.steps)
    stopped = -(-(len(before) + SPAN) // EVERY) * EVERY
    assert stopped <= spent < stopped + width
    unguarded = decode(model, REQUESTS[:1], replace(settings, stop_loops=False), [None], Budget(1, None))
    assert unguarded.sequences[0].finish_reason == "length"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (DecodeSettings(tau=0), "tau=0"),
        (DecodeSettings(tau=1.1), "tau=1.1"),
        (DecodeSettings(max_new_tokens=0), "max_new_tokens=0"),
        (DecodeSettings(max_packed=0), "max_packed=0"),
        (DecodeSettings(max_packed="lots"), "max_packed=lots"),
    ],
)
def test_settings_out_of_range_are_named(settings: DecodeSettings, named: str, engine: TransformersEngine) -> None:
    with pytest.raises(ConfigError, match=named):
        engine.decode(REQUESTS[:1], settings)


def test_more_requests_than_rows_are_decoded_in_turn(
    engine: TransformersEngine, plain: list[list[int]], random_target: Callable[[str], SimpleTarget]
) -> None:
    small = TransformersEngine(TransformersConfig(max_rows=2), random_target("qwen3_vl"))
    streamed: set[int] = set()
    result = small.decode(REQUESTS, replace(SETTINGS, self_lookup=False), lambda row, text: streamed.add(row))
    assert [list(s.tokens) for s in result.sequences] == plain
    assert result.forwards == 2 * 59
    assert streamed == {0, 1, 2}


def test_expected_seconds_grow_with_the_tokens(engine: TransformersEngine) -> None:
    assert engine.expected_seconds(200) == pytest.approx(2 * engine.expected_seconds(100))
    assert engine.expected_seconds(100) > 0


@pytest.mark.parametrize("at", [0, 3, 6])
def test_nan_anywhere_in_the_scores_of_a_token_is_an_error(at: int) -> None:
    logits = torch.zeros(2, 3, 7)
    logits[..., 4] = torch.inf
    assert best_tokens(logits) == [[4] * 3] * 2
    logits[1, 2, at] = torch.nan
    with pytest.raises(TargetError, match="NaN instead of scores, in float32"):
        best_tokens(logits)


def test_a_model_that_computes_nan_fails_the_prefill_or_the_step_in_which_it_does(
    engine: TransformersEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(pass_: Any) -> Any:
        def spoiled(*args: Any) -> Any:
            found = pass_(*args)
            logits = found if isinstance(found, torch.Tensor) else found.logits
            logits[-1, ..., 5] = torch.nan
            return found

        return spoiled

    for name in ("prefill", "verify"):
        with monkeypatch.context() as patch:
            patch.setattr(engine.model, name, broken(getattr(engine.model, name)))
            with pytest.raises(TargetError, match=r"engine\.dtype=bf16 or fp32"):
                run(engine, [None] * 2)
